package monitor

import (
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

const samples = "../../samples"

// report is the report of package latency on a file, and the troubles of its connections, made without this package.
func report(t *testing.T, file string) (*latency.Report, Health) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rec := latency.New(latency.Options{})
	view := rpc.View{Names: &rpc.Names{}}
	var health Health
	closed := func(c *rdma.Connection) {
		if c.MergedInto == nil {
			health.add(c)
		}
	}
	d := decode.New(decode.Options{Observers: []decode.Observer{{Closed: closed}}}, func(tx *transaction.Transaction) {
		view.Set(tx)
		rec.Add(&view)
		view.Learn()
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	st := d.Stats()
	return rec.Report(latency.Source{Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last}), health
}

// feed runs a file through a Feed and returns its last snapshot.
func feed(t *testing.T, file string, opt Options) (*Model, *Snapshot) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := New(opt)
	f := Start(m, r, FeedOptions{})
	if err := f.Wait(); err != nil {
		t.Fatal(err)
	}
	f.Stop()
	r.Close()
	return m, f.Latest()
}

// TestTotals compares the totals at the end of each sample with a report.
func TestTotals(t *testing.T) {
	for _, file := range sampled.Captures(t, "*") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, health := report(t, file)
			_, s := feed(t, file, Options{})
			if !s.Ended || s.Err != nil || s.Decoder.Packets != want.Packets || s.Decoder.Bytes != want.Bytes {
				t.Errorf("%d packets, want %d", s.Decoder.Packets, want.Packets)
			}
			byName := make(map[string]*latency.Group)
			for _, g := range want.Groups {
				byName[g.Key[0]] = g
			}
			if len(s.Ops) != len(byName) {
				t.Errorf("%d operations, want %d", len(s.Ops), len(byName))
			}
			var points uint64
			for _, o := range s.Ops {
				g, x := byName[o.Name], o.Total
				if g == nil || x == nil {
					t.Errorf("%s: not in the report", o.Name)
					continue
				}
				for _, p := range o.Points {
					points += p.Count
				}
				if x.Count != g.Count || x.Errors != g.Errors || x.CallBytes != g.CallBytes || x.ReplyBytes != g.ReplyBytes ||
					x.ReadBytes != g.ReadBytes || x.WriteBytes != g.WriteBytes || x.Retransmits != g.Retransmits ||
					x.NoReply != g.NoReply || x.Incomplete != g.Incomplete || x.NoCall != g.NoCall {
					t.Errorf("%s: %+v\nwant %+v", o.Name, x, g)
				}
				a, b := x.Latency, g.Latency
				if a.Count != b.Count || a.Sum != b.Sum || a.Min != b.Min || a.Max != b.Max ||
					a.P50 != b.P50 || a.P90 != b.P90 || a.P99 != b.P99 || a.P999 != b.P999 {
					t.Errorf("%s: latency %+v\nwant %+v", o.Name, a, b)
				}
				for p := range transaction.AllPhases() {
					if x.Phase(p).Sum != g.Phase(p).Sum || x.Phase(p).P99 != g.Phase(p).P99 {
						t.Errorf("%s: %v differs", o.Name, p)
					}
				}
			}
			if len(s.History) < 240 && points != want.All.Count {
				t.Errorf("%d transactions over time, want %d", points, want.All.Count)
			}
			var clients uint64
			for _, c := range s.Clients {
				clients += c.Count
			}
			if clients != want.All.Count {
				t.Errorf("%d transactions by client, want %d", clients, want.All.Count)
			}
			if s.Open != 0 || s.Unacked != 0 {
				t.Errorf("%d open, %d not acknowledged after the end", s.Open, s.Unacked)
			}
			if s.Health != health {
				t.Errorf("%+v, want %+v", s.Health, health)
			}
		})
	}
}
