package session

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/mutate/traffic"
)

// collecting has all open calls in the table, always.
type collecting struct{ *Recorder }

func (c collecting) Message(tx *transaction.Transaction, reply bool, s *rdma.Send) {
	c.Recorder.Message(tx, reply, s)
	c.collect()
}

// sessions is the report on a capture that was changed: with few calls beside the table, and connections that are copies, or with
// neither.
func sessions(t *testing.T, which uint8, program []byte, none bool) string {
	s := New(nil)
	s.Apart()
	opt := decode.Options{Observer: s}
	if none {
		opt.Observer = collecting{s}
	} else {
		opt.Concurrent = true
		s.Copies()
	}
	opt.Transactions.Ended = s.Ended
	v := rpc.View{Names: &rpc.Names{}}
	traffic.Run(decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		v.Learn()
		s.Transaction(&v)
	}), traffic.Apply(which, program), 64)
	held, open := s.held, s.pending()
	b, err := json.Marshal(s.Report(nil))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(held, open, string(b))
}

// TestFew: calls are counted the same in the table and beside it, in captures that were changed at random, so that replies are
// missing, calls come again, and connections are merged.
func TestFew(t *testing.T) {
	for which := range traffic.Count() {
		rng := rand.New(rand.NewPCG(uint64(which), 23))
		for round := range 20 {
			var program []byte
			for range 5 * round {
				program = append(program, byte(rng.Uint32()))
			}
			if table, beside := sessions(t, uint8(which), program, true), sessions(t, uint8(which), program, false); table != beside {
				t.Fatalf("capture %d, program %v: in the table\n%s\nbeside it\n%s", which, program, table, beside)
			}
		}
	}
}

func FuzzFew(f *testing.F) {
	for which := range traffic.Count() {
		f.Add(uint8(which), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, program []byte) {
		if table, beside := sessions(t, which, program, true), sessions(t, which, program, false); table != beside {
			t.Fatalf("in the table\n%s\nbeside it\n%s", table, beside)
		}
	})
}
