package session

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
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
	return reported(t, s)
}

// reported is the report of a Recorder, and what it holds.
func reported(t *testing.T, s *Recorder) string {
	t.Helper()
	held, open := s.held, s.pending()
	b, err := json.Marshal(s.Report(nil))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(held, open, string(b))
}

// longWay takes no short way.
type longWay struct{ *Recorder }

func (l longWay) Message(tx *transaction.Transaction, reply bool, s *rdma.Send) {
	if callback := tx.Program >= 0x40000000 && tx.Program < 0x60000000; tx.Named && (callback || tx.Program == nfs3.NFS_PROGRAM) {
		l.message(tx, reply, callback, s)
	}
}

// sessionsInFull is sessions with everything under the lock, and with all COMPOUNDs decoded.
func sessionsInFull(t *testing.T, which uint8, program []byte) string {
	s := New(nil)
	s.Apart()
	opt := decode.Options{Observer: longWay{s}}
	opt.Transactions.Ended = s.Ended
	v := rpc.View{Names: &rpc.Names{}}
	traffic.Run(decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		v.Learn()
		s.look(&v)
	}), traffic.Apply(which, program), 64)
	return reported(t, s)
}

// checkFew compares all ways.
func checkFew(t *testing.T, which uint8, program []byte) {
	t.Helper()
	table, beside := sessions(t, which, program, true), sessions(t, which, program, false)
	if table != beside {
		t.Fatalf("capture %d, program %v: in the table\n%s\nbeside it\n%s", which, program, table, beside)
	}
	if full := sessionsInFull(t, which, program); full != beside {
		t.Fatalf("capture %d, program %v: in full\n%s\napart\n%s", which, program, full, beside)
	}
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
			checkFew(t, uint8(which), program)
		}
	}
}

func FuzzFew(f *testing.F) {
	for which := range traffic.Count() {
		f.Add(uint8(which), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, program []byte) {
		checkFew(t, which, program)
	})
}

// TestFewPaid: room for open calls is given back, also while one call at a time is open.
func TestFewPaid(t *testing.T) {
	held := func(most int, collect bool) (int, int) {
		r := New(nil)
		r.Apart()
		k := &rdma.Connection{ID: 1}
		list := make([]transaction.Transaction, most)
		tell := func(tx *transaction.Transaction, reply bool) {
			r.Message(tx, reply, &rdma.Send{})
			if collect {
				r.collect()
			}
		}
		for i := range list {
			tx := &list[i]
			tx.Connection, tx.XID, tx.Named, tx.Program, tx.Version = k, uint32(i), true, nfs3.NFS_PROGRAM, 3
			tx.Call.First.Number = uint64(i + 1)
			tell(tx, false)
		}
		for i := range list[1:] {
			tell(&list[i], true)
		}
		tell(&list[0], false) // beside the one that is still open
		tell(&list[most-1], true)
		tell(&list[0], true)
		for range 2 {
			tell(&list[0], false)
			tell(&list[0], true)
		}
		return r.held, r.paid
	}
	for _, most := range []int{2, 8, 9, 63, 64, 65, 66, 67, 100, 200} {
		held1, paid1 := held(most, false)
		held2, paid2 := held(most, true)
		if held1 != held2 || paid1 != paid2 {
			t.Errorf("%d calls: %d bytes held for %d calls, in the table %d for %d", most, held1, paid1, held2, paid2)
		}
	}
}
