package fabric_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
	d := decode.New(decode.Options{Observers: []decode.Observer{rec.Observer(), {Closed: func(c *rdma.Connection) {
		if c.MergedInto == nil && c.Fabric != rdma.TCP && c.Fabric != rdma.UDP {
			f.conns = append(f.conns, c)
		}
	}}}}, func(*transaction.Transaction) {})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	f.report = rec.Report(nil)
	return f
}

// TestCounters compares the operations, one by one, with the counters of the trackers.
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
			t.Logf("%d operations, %d episodes", len(f.ops), len(f.episodes))
			open := 0
			for i := range f.ops {
				if f.ops[i].Status != fabric.Completed {
					open++
				}
			}
			if open > len(f.conns)*2 { // the last of each side may be under way at the end
				t.Errorf("%d of %d operations were not completed", open, len(f.ops))
			}
			if want, ok := kernelNAKs(t, file); ok {
				got := uint64(0)
				for i := range f.episodes {
					got += uint64(f.episodes[i].NAKs)
				}
				if got != want {
					t.Errorf("%d sequence NAKs; the kernels counted %d requests out of sequence", got, want)
				}
			}
			if len(f.episodes) > 0 && !lossy.MatchString(file) {
				for i := range f.episodes {
					t.Errorf("%+v", f.episodes[i])
				}
			}
		})
	}
}

// lossy are the captures from networks in which packets were lost or overtaken. A short
// acknowledgement timer makes the peers of three others send packets again: Linux's probe for a
// lost tail (RFC 8985) over slow emulated hosts, and one Send of rxe.
var lossy = regexp.MustCompile("loss|reorder|iwarp-nfs3-p2p|iwarp-nfs42-basic|rocev2-nfs3-mtu2200")

var outOfSequence = regexp.MustCompile("out_of_seq_request ([0-9]+)")

// kernelNAKs is how many out-of-sequence requests rxe counted on both hosts, if that was recorded
// with a capture.
func kernelNAKs(t *testing.T, file string) (n uint64, ok bool) {
	t.Helper()
	if !strings.HasPrefix(filepath.Base(file), "rocev2") {
		return 0, false
	}
	dir := file[:strings.Index(file, ".pcap")]
	for _, more := range []string{".client", ".both"} {
		dir = strings.TrimSuffix(dir, more)
	}
	for _, host := range []string{"client", "server"} {
		after, err := os.ReadFile(filepath.Join(dir+".truth", "rdma."+host+".after"))
		if err != nil {
			return 0, false
		}
		m := outOfSequence.FindSubmatch(after)
		if m == nil {
			t.Fatalf("no counter of %s", host)
		}
		x, _ := strconv.ParseUint(string(m[1]), 10, 64)
		n += x
	}
	return n, true
}
