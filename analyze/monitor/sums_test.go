package monitor

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// TestIntervalsAddUp: what the intervals of a capture show adds up to what there is at its end, for all transactions and for each
// operation, connection, file and client; connections and clients that end, or become part of others, included.
func TestIntervalsAddUp(t *testing.T) {
	intervals := []time.Duration{20 * time.Millisecond, time.Second}
	if testing.Short() {
		intervals = []time.Duration{150 * time.Millisecond}
	}
	for _, file := range sampled.Captures(t, "*") {
		for _, interval := range intervals {
			t.Run(fmt.Sprint(filepath.Base(file), " ", interval), func(t *testing.T) {
				r, err := capture.Open([]string{file}, capture.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				got := make(map[string]*Tally)
				add := func(kind string, name any, now Tally) {
					key := fmt.Sprint(kind, " ", name)
					if got[key] == nil {
						got[key] = &Tally{}
					}
					got[key].merge(&now)
				}
				f := Start(New(Options{Interval: interval}), r, FeedOptions{Interval: func(s *Snapshot) bool {
					add("all", "", Tally{s.Now.Count, s.Now.Errors, s.Now.Bytes, s.Now.Data, s.Now.Time, s.Now.Max})
					for i := range s.Ops {
						o := &s.Ops[i]
						add("operation", o.Name, Tally{o.Now.Count, o.Errors, o.Now.Bytes, o.Data, o.Time, o.Max})
					}
					for i := range s.Connections {
						add("connection", s.Connections[i].ID, s.Connections[i].Now)
					}
					for i := range s.Files {
						add("file", s.Files[i].Name, s.Files[i].Now)
					}
					for i := range s.Clients {
						add("client", s.Clients[i].Name, s.Clients[i].Now)
					}
					return true
				}})
				if err := f.Wait(); err != nil {
					t.Fatal(err)
				}
				f.Stop()
				s := f.Latest()
				want := func(kind string, name any, total Tally) {
					key := fmt.Sprint(kind, " ", name)
					if x := got[key]; x == nil || *x != total {
						t.Errorf("%s: the intervals have %+v, want %+v", key, x, total)
					}
				}
				var conns, clients Tally
				for i := range s.Ops {
					o := s.Ops[i].Total
					want("operation", s.Ops[i].Name, Tally{o.Count, o.Errors, o.CallBytes + o.ReplyBytes, o.ReadBytes + o.WriteBytes, o.Latency.Sum, o.Latency.Max})
				}
				for i := range s.Connections {
					want("connection", s.Connections[i].ID, s.Connections[i].Tally)
					conns.merge(&s.Connections[i].Tally)
				}
				if s.FilesRest == 0 {
					for i := range s.Files {
						want("file", s.Files[i].Name, s.Files[i].Tally)
					}
				}
				for i := range s.Clients {
					want("client", s.Clients[i].Name, s.Clients[i].Tally)
					clients.merge(&s.Clients[i].Tally)
				}
				want("all", "", clients)
				want("all", "", conns)
			})
		}
	}
}

// TestSetBack: if the clock was set back and has not caught up at the end, a capture ends with its last packet, as in a report.
func TestSetBack(t *testing.T) {
	for _, back := range []time.Duration{0, time.Second, time.Minute} {
		r, err := capture.Open([]string{filepath.Join(samples, "rocev2-nfs41-recall.pcap")}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := New(Options{})
		n, last := 0, int64(0)
		for {
			var b capture.Batch
			if err := r.Read(&b); err != nil {
				break
			}
			for i := range b.Packets {
				if n++; n > 250 { // of 281
					b.Packets[i].Time -= int64(back)
				}
				last = b.Packets[i].Time
			}
			m.Packets(b.Packets)
		}
		r.Close()
		m.Flush(nil)
		if s := m.Snapshot(); s.Time != last || n != 281 {
			t.Errorf("set back by %v: the end of %d packets is %d, want %d", back, n, s.Time, last)
		}
	}
}
