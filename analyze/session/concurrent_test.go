package session_test

import (
	"encoding/json"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// TestConcurrent: what is found is the same on one goroutine and on two.
func TestConcurrent(t *testing.T) {
	names := sampled.Captures(t, "*")
	report := func(name string, concurrent bool) string {
		r, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s := session.New(nil)
		opt := decode.Options{Observers: []decode.Observer{s.Observer()}, Concurrent: concurrent}
		opt.Transactions.Ended = s.Ended
		v := rpc.View{Names: &rpc.Names{}}
		if err := decode.New(opt, func(tx *transaction.Transaction) {
			v.Set(tx)
			v.Learn()
			s.Transaction(&v)
		}).Run(r); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(s.Report(nil))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, name := range names {
		if one, two := report(name, false), report(name, true); one != two {
			t.Errorf("%s: on one goroutine\n%s\non two\n%s", name, one, two)
		}
	}
}
