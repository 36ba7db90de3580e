package session_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestUses compares what is seen interval by interval with the report on the whole.
func TestUses(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.pcap.zst")
	for _, file := range append(files, "../../samples/rocev2-nfs41-restart.pcap.zst") {
		c, err := capture.Open([]string{file}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := session.New(nil)
		r.Live()
		v := rpc.View{Names: &rpc.Names{}}
		var opt decode.Options
		opt.Observe(r.Observer())
		opt.Transactions.Ended = r.Ended
		opt.Transactions.OnCompletion, opt.Transactions.Detach = true, true
		d := decode.New(opt, func(tx *transaction.Transaction) {
			v.Set(tx)
			v.Learn()
			r.Transaction(&v)
		})
		const span = 50e6
		end := int64(0)
		sum := make(map[int]session.Tally)
		roll := func() {
			r.Roll(end, span)
			list, _ := r.Uses(end, math.MaxInt)
			for _, u := range list {
				x := sum[u.Number]
				x.Calls += u.Now.Calls
				x.Bytes += u.Now.Bytes
				x.Area += u.Now.Area
				x.Full += u.Now.Full
				x.After += u.Now.After
				sum[u.Number] = x
				if u.Now.Mean() > float64(u.Most) || u.InUse > u.Most || u.Now.Full > u.Now.Time || len(u.Past) > 64 {
					t.Errorf("%s: %+v", file, u)
				}
			}
		}
		for {
			var b capture.Batch
			if r := c.Read(&b); r != nil {
				break
			}
			for i := range b.Packets {
				p := &b.Packets[i]
				for end == 0 || p.Time >= end {
					if end > 0 {
						roll()
					}
					end = max(end+span, p.Time-p.Time%span+span)
				}
				d.Batch(&capture.Batch{Packets: b.Packets[i : i+1]})
			}
		}
		d.Flush()
		roll()
		c.Close()
		rep := r.Report(nil)
		list, rest := r.Uses(end, math.MaxInt)
		if len(list) != len(rep.Sessions)+len(rep.Clients) || rest != 0 {
			t.Fatalf("%s: %d of %d and %d", file, len(list), len(rep.Sessions), len(rep.Clients))
		}
		byID := make(map[string]*session.Session)
		for i := range rep.Sessions {
			byID[rep.Sessions[i].ID] = &rep.Sessions[i]
		}
		for _, u := range list {
			x := sum[u.Number]
			if x.Time = u.Total.Time; x != u.Total {
				t.Errorf("%s: %+v by interval, %+v in all", file, x, u.Total)
			}
			if s := byID[u.ID]; s != nil {
				if u.Total.Calls != s.Calls || u.Total.Full != s.Slots.Full || u.Total.After != s.Slots.After || u.Most != s.Slots.Most {
					t.Errorf("%s: %+v, %+v in the report", file, u, s.Slots)
				}
				continue
			}
			if u.InUse != 0 || u.Total.Area <= 0 {
				t.Errorf("%s: client %+v", file, u)
			}
		}
		// The averages equal those of the report, at the end and however long after a session was destroyed.
		later := must(r.Uses(end+3600e9, math.MaxInt))
		for i, u := range must(r.Uses(0, math.MaxInt)) {
			s := byID[u.ID]
			if s == nil {
				continue
			}
			if u.Total.Time != s.Slots.Time || u.Total.Mean() != s.Slots.Mean {
				t.Errorf("%s: %v in use in %d ns, want %v in %d ns", file, u.Total.Mean(), u.Total.Time, s.Slots.Mean, s.Slots.Time)
			}
			if same := later[i].Total == u.Total; same != s.Destroyed {
				t.Errorf("%s: destroyed %v, an hour later %+v after %+v", file, s.Destroyed, later[i].Total, u.Total)
			}
		}
		if one, more := r.Uses(end, 1); len(one) != 1 || more != len(list)-1 {
			t.Errorf("%s: %d and %d more", file, len(one), more)
		}
		r.Restart(end)
		for _, u := range must(r.Uses(end, 9)) {
			if u.Now.Calls != 0 || len(u.Past) != 0 {
				t.Errorf("%s: after the restart %+v", file, u)
			}
		}
	}
}

func must(list []session.Use, _ int) []session.Use { return list }
