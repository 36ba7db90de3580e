package diagnosis_test

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/simulate"
)

// TestIntervals: a report may be asked for at any time without changing the next one; it does not matter for the whole that intervals
// end; and an interval has the cause that the whole has.
func TestIntervals(t *testing.T) {
	for _, s := range simulate.Situations() {
		switch s.Name {
		case "server-threads", "path-delay", "server-time", "congestion":
		default:
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			run := s.Draw(5)
			whole := diagnose(t, simulate.Tell(run), 0)
			if len(whole.Causes) == 0 {
				t.Fatal("no cause")
			}
			want := whole.Causes[0].Code
			var b bytes.Buffer
			if err := simulate.Tell(run).WritePcap(&b, 0); err != nil {
				t.Fatal(err)
			}
			in, err := capture.NewReader(&b, "x", capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			limits := diagnosis.Limited(64 << 20)
			limits.Live = true
			r := diagnosis.New(limits)
			opt := decode.Options{Observers: []decode.Observer{{Closed: r.Closed}}}
			r.Attach(&opt, 64<<20, nil)
			var v rpc.View
			calls, found := 0, 0
			d := decode.New(opt, func(tx *transaction.Transaction) {
				v.Set(tx)
				r.Transaction(&v)
				if calls++; calls%200 == 0 {
					r.Roll()
					if rep, left := r.Interval(); left == 0 && len(rep.Causes) > 0 && rep.Causes[0].Code == want {
						found++
					}
					if a, z := text(t, r.Report()), text(t, r.Report()); a != z {
						t.Errorf("after %d calls one report says\n%s\nand the next\n%s", calls, a, z)
					}
				}
			})
			if err := d.Run(in); err != nil {
				t.Fatal(err)
			}
			if rep := r.Report(); len(rep.Causes) == 0 || rep.Causes[0].Code != want {
				t.Errorf("the whole: %s; want %s", text(t, rep), want)
			}
			if n := calls / 200; found*2 < n || n == 0 {
				t.Errorf("%d of %d intervals say %s", found, n, want)
			}
		})
	}
}

func text(t *testing.T, rep *diagnosis.Report) string {
	t.Helper()
	b, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestForget: connections that have ended make room for others.
func TestForget(t *testing.T) {
	opt := diagnosis.Limited(0)
	opt.Live = true
	r := diagnosis.New(opt)
	for id := range 10 * opt.Connections {
		c := &rdma.Connection{ID: id + 1, Ends: [2]rdma.End{{Addr: netip.MustParseAddr("10.0.0.1")}, {Addr: netip.MustParseAddr("10.0.0.2")}}}
		tx := &transaction.Transaction{Connection: c, XID: uint32(id)}
		tx.Call.First = rdma.Ref{Number: uint64(id + 1), Time: int64(id + 1)}
		tx.Call.Last = tx.Call.First
		var v rpc.View
		v.Set(tx)
		r.Transaction(&v)
		r.Closed(c)
		r.Roll()
	}
	if n := r.Beyond(); n != 0 {
		t.Errorf("%d calls were left out", n)
	}
}
