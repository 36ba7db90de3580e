package onepass

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/connections"
	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

func open(t *testing.T, name string) capture.Reader {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// alone makes the sections of a report and of a check by decoders of their own, as the commands do.
func alone(t *testing.T, name string) []state.Section {
	t.Helper()
	c, sessions := latency.NewCollector(latency.Options{Top: 10}), session.New(nil)
	opt := decode.Options{Concurrent: true, Observers: []decode.Observer{c.Observer()}}
	why := diagnosis.New(diagnosis.Limited(16 << 20))
	why.Attach(&opt, 0, sessions)
	opt.Observe(decode.Observer{Closed: why.Closed})
	view := rpc.View{Names: &rpc.Names{}}
	d := decode.New(opt, func(tx *transaction.Transaction) {
		view.Set(tx)
		c.Add(&view)
		why.Transaction(&view)
		view.Learn()
		sessions.Transaction(&view)
	})
	if err := d.Run(open(t, name)); err != nil {
		t.Fatal(err)
	}
	st, account := d.Stats(), d.Account()
	s := c.State(latency.Source{Account: &account, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last})
	list := []state.Section{s.Section()}

	k := check.New(check.Options{Rules: check.All(), Apart: true}, func(*check.Finding) {})
	other := rpc.View{Names: &rpc.Names{}}
	conns := &connections.Recorder{}
	o := k.Observer()
	o.Headers = nil
	d = decode.New(decode.Options{Observers: []decode.Observer{o, {Closed: conns.Closed}}}, func(tx *transaction.Transaction) {
		other.Set(tx)
		conns.Transaction(tx)
		k.Transaction(&other)
		other.Learn()
	})
	if err := d.Run(open(t, name)); err != nil {
		t.Fatal(err)
	}
	k.Finish()
	cause, err := why.Report().Section(nil)
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, k.Section(""), conns.Section(nil, &account), cause)
	if x, ok := why.Calls(); ok {
		list = append(list, x)
	}
	if rep := sessions.Report(nil); !rep.Empty() {
		x, err := rep.Section()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

// TestSame compares what one pass finds with what a decoder for each finds.
func TestSame(t *testing.T) {
	names := sampled.Captures(t, "*")
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			rows := uint64(0)
			p := New(Options{
				Check: check.Options{Rules: check.All()}, Report: latency.Options{Top: 10},
				Row: func(*rpc.View) error { rows++; return nil },
			})
			if err := p.Feed(open(t, name)); err != nil {
				t.Fatal(err)
			}
			if err := p.Flush(); err != nil {
				t.Fatal(err)
			}
			got, err := p.Sections(nil)
			if err != nil {
				t.Fatal(err)
			}
			want := alone(t, name)
			if len(got) != len(want) {
				t.Fatalf("%d sections, and not %d", len(got), len(want))
			}
			for i := range want {
				if got[i].Kind != want[i].Kind || !bytes.Equal(got[i].Body, want[i].Body) {
					t.Errorf("section %s differs", want[i].Kind)
				}
			}
			if n := p.Decoder().Stats().Transactions; rows != n {
				t.Errorf("%d rows of %d transactions", rows, n)
			}
		})
	}
}
