package fabric_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// captures are the samples, and those of the directories that the variable
// RPCRDMA_CAPTURES names.
func captures(t testing.TB) []string {
	t.Helper()
	list, _ := filepath.Glob("../../samples/*.pcap*")
	if len(list) < 10 {
		t.Fatal(list)
	}
	for _, dir := range filepath.SplitList(os.Getenv("RPCRDMA_CAPTURES")) {
		more, _ := filepath.Glob(filepath.Join(dir, "*.pcap*"))
		if len(more) == 0 {
			t.Fatalf("no captures in %s", dir)
		}
		list = append(list, more...)
	}
	return list
}

// found is what a Recorder found in a capture.
type found struct {
	ops      []fabric.Operation
	episodes []fabric.Episode
	conns    []*rdma.Connection
	report   *fabric.Report
}

func record(t testing.TB, files ...string) *found {
	t.Helper()
	r, err := capture.Open(files, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := &found{}
	rec := fabric.New(fabric.Options{
		Top:       20,
		Operation: func(o *fabric.Operation) { f.ops = append(f.ops, *o) },
		Episode: func(e *fabric.Episode) {
			kept := *e
			kept.Lost = append([]fabric.Range{}, e.Lost...)
			f.episodes = append(f.episodes, kept)
		},
	})
	d := decode.New(decode.Options{Watcher: rec, Closed: func(c *rdma.Connection) {
		if c.MergedInto == nil && c.Fabric != rdma.TCP && c.Fabric != rdma.UDP {
			f.conns = append(f.conns, c)
		}
	}}, func(*transaction.Transaction) {})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	f.report = rec.Report(nil)
	return f
}

// TestCounters compares the operations, one by one, with what the trackers count.
func TestCounters(t *testing.T) {
	for _, file := range captures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f := record(t, file)
			type key struct {
				c    *rdma.Connection
				from rdma.Side
			}
			sums := make(map[key]*rdma.Counters)
			for i := range f.ops {
				o := &f.ops[i]
				k := key{o.Connection.Resolve(), o.From}
				if sums[k] == nil {
					sums[k] = &rdma.Counters{}
				}
				switch o.Kind {
				case rdma.WorkSend:
					sums[k].Sends++
				case rdma.WorkWrite:
					sums[k].Writes++
					sums[k].WriteBytes += o.Bytes
				case rdma.WorkRead:
					sums[k].Reads++
					sums[k].ReadBytes += o.Bytes
				case rdma.WorkAtomic:
					sums[k].Atomics++
				}
			}
			left := uint64(0)
			for _, c := range f.conns {
				for side := range c.Sent {
					want := c.Sent[side]
					got := sums[key{c, rdma.Side(side)}]
					if got == nil {
						got = &rdma.Counters{}
					}
					left += want.Sends + want.Reads + want.Writes + want.Atomics - got.Sends - got.Reads - got.Writes - got.Atomics
					if got.Sends > want.Sends || got.Writes > want.Writes || got.Reads > want.Reads || got.Atomics != want.Atomics ||
						got.WriteBytes > want.WriteBytes || got.ReadBytes > c.Sent[1-side].ReadBytes {
						t.Errorf("connection %d, side %d: %+v, counted %+v", c.ID, side, *got, want)
					}
					if f.report.Totals.NotOperations == 0 && (got.WriteBytes != want.WriteBytes || got.ReadBytes != c.Sent[1-side].ReadBytes) {
						t.Errorf("connection %d, side %d: %d bytes written, %d read; counted %d and %d", c.ID, side,
							got.WriteBytes, got.ReadBytes, want.WriteBytes, c.Sent[1-side].ReadBytes)
					}
				}
			}
			if left != f.report.Totals.NotOperations {
				t.Errorf("%d operations are not listed, %d said", left, f.report.Totals.NotOperations)
			}
			if left > 0 && !strings.Contains(file, "midstream") {
				t.Errorf("%d operations are not listed", left)
			}
			t.Logf("%d operations, %d episodes, %+v", len(f.ops), len(f.episodes), f.report.Totals)
			for i := range f.episodes {
				e := &f.episodes[i]
				d, ok := e.Duration()
				t.Logf("  #%d from %d %v resp=%v lost %v exact=%v %v %v %v start %d nak %d first %d caught %d naks %d rnr %d to %d resent %d needless %d waited %v/%v", e.Connection.ID, e.From, e.Notice, e.Responses,
					e.Lost, e.Exact, e.Repeat, d, ok, e.Start().Number, e.NAK.Number, e.First.Number, e.CaughtUp.Number, e.NAKs, e.RNRs, e.Timeouts, e.Resent, e.Needless, e.Waited, e.Announced)
			}
		})
	}
}
