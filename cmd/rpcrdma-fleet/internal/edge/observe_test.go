package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	fleet "github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
)

// observed are the sums of what an observer says of a capture: of the summaries, and of the connections and clients in them.
func observed(t *testing.T, file string, interval time.Duration) (all fleet.Counts, conns, clients uint64, summaries int) {
	t.Helper()
	var out bytes.Buffer
	o := &Orders{Tap: "t", Agent: agent, Files: []string{file}, Interval: interval}
	if err := Observe(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	ended := false
	err := Records(&out, func(r *Record) error {
		if len(r.Summary) == 0 {
			return nil
		}
		s, err := fleet.Decode(r.Summary)
		if err != nil {
			return err
		}
		summaries++
		if ended = s.End; s.Number != uint64(summaries) {
			t.Errorf("summary %d has number %d", summaries, s.Number)
		}
		all.Transactions += s.Transactions
		all.Errors += s.Errors
		all.Bytes += s.Bytes
		all.Data += s.Data
		all.Time += s.Time
		all.Max = max(all.Max, s.Max)
		for i := range s.Conn {
			conns += s.Conn[i].Transactions
		}
		for i := range s.Clients {
			clients += s.Clients[i].Transactions
		}
		return nil
	})
	if err != nil || !ended {
		t.Fatalf("%v; the last summary says that it is the last: %v", err, ended)
	}
	return all, conns, clients, summaries
}

// TestNothingIsLost: summaries of short intervals add up to that of a long one, also if the clock is set back before the end.
func TestNothingIsLost(t *testing.T) {
	const sample = "../../../../samples/rocev2-nfs41-recall.pcap"
	for _, back := range []time.Duration{0, time.Hour} {
		r, err := capture.Open([]string{sample}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "a.pcap")
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w := capture.NewWriter(f, capture.WriterOptions{Format: capture.Pcap})
		for n := 0; err == nil; {
			var b capture.Batch
			if err = r.Read(&b); err != nil {
				break
			}
			for i := range b.Packets {
				p := &b.Packets[i]
				if n++; n > 250 { // of 281
					p.Time -= int64(back)
				}
				if e := w.Write(p); e != nil {
					t.Fatal(e)
				}
			}
		}
		if !errors.Is(err, io.EOF) || w.Flush() != nil || f.Close() != nil || r.Close() != nil {
			t.Fatal(err)
		}
		want, _, _, _ := observed(t, name, 24*time.Hour)
		if want.Transactions == 0 {
			t.Fatal("no transactions")
		}
		for _, interval := range []time.Duration{100 * time.Millisecond, time.Second} {
			got, conns, clients, n := observed(t, name, interval)
			if got != want || conns != want.Transactions || clients != want.Transactions {
				t.Errorf("set back by %v, %v: %d summaries have %+v, their connections %d transactions, their clients %d; want %+v",
					back, interval, n, got, conns, clients, want)
			}
		}
	}
}

// TestNoPackets: an agent that sees no packet says so each interval.
func TestNoPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		x := &observation{Observer: fleet.Observer{Tap: "t", Agent: agent}, w: &output{enc: json.NewEncoder(&out)}}
		done := make(chan struct{})
		time.AfterFunc(3500*time.Millisecond, func() { close(done) })
		x.until(t.Context(), done, &Orders{Interfaces: []string{"eth0"}, Interval: time.Second})
		n := uint64(0)
		err := Records(&out, func(r *Record) error {
			s, err := fleet.Decode(r.Summary)
			if err != nil {
				return err
			}
			if n++; s.Number != n || s.Packets != 0 || s.Span != 1e9 || s.End {
				t.Errorf("%+v", s)
			}
			return nil
		})
		if err != nil || n != 3 {
			t.Errorf("%d summaries, %v", n, err)
		}
	})
}

// TestNoRoom: transactions that cannot be written are an error at the end.
func TestNoRoom(t *testing.T) {
	var out bytes.Buffer
	o := &Orders{
		Tap: "t", Agent: agent, Files: []string{"../../../../samples/rocev2-nfs41-recall.pcap"}, Interval: time.Second,
		Folder: filepath.Join(t.TempDir(), "gone"), Every: time.Minute,
	}
	if err := Observe(t.Context(), o, &out); err == nil || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "50 transactions could not be written") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestPassed: a file whose end lies ahead by more than its time is not waited for.
func TestPassed(t *testing.T) {
	p := &Parts{Every: time.Minute}
	for now, want := range map[int64]bool{100e9: true, 99e9: false, 40e9: false, 39e9: true, -7200e9: true} {
		if got := p.passed(100e9, now); got != want {
			t.Errorf("%d: %v", now, got)
		}
	}
}
