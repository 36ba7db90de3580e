package holds

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// verdict is a T that remembers whether it was failed.
type verdict struct{ why string }

func (v *verdict) Helper() {}
func (v *verdict) Fatalf(format string, args ...any) {
	if v.why == "" {
		v.why = fmt.Sprintf(format, args...)
	}
}

// each calls f for the transactions of all seeds.
func each(f func(name string, tx *transaction.Transaction)) {
	for i, name := range traffic.Names() {
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) { f(name, tx) })
		traffic.Run(d, traffic.Apply(uint8(i), nil), 16)
	}
}

// Real traffic is found consistent, and encodes to what it was.
func TestSeedsHold(t *testing.T) {
	n, bodies := 0, 0
	var v rpc.View
	each(func(name string, tx *transaction.Transaction) {
		n++
		Transaction(t, tx)
		v.Set(tx)
		Messages(t, &v)
		if v.Args() != nil && v.Result() != nil {
			bodies++
		}
	})
	if n < 100 || bodies < 70 {
		t.Errorf("%d transactions, %d with arguments and results", n, bodies)
	}
}

// Whatever is broken in a good transaction is noticed.
func TestContradictions(t *testing.T) {
	for name, spoil := range map[string]func(tx *transaction.Transaction){
		"state without reply":     func(tx *transaction.Transaction) { tx.State = transaction.NoReply },
		"state without call":      func(tx *transaction.Transaction) { tx.State = transaction.NoCall },
		"complete without a call": func(tx *transaction.Transaction) { tx.Call = transaction.Message{} },
		"payload too long":        func(tx *transaction.Transaction) { tx.Call.PayloadLength = len(tx.Call.Payload) - 1 },
		"Send too short":          func(tx *transaction.Transaction) { tx.Reply.SendBytes = 3 },
		"no packets":              func(tx *transaction.Transaction) { tx.Reply.Packets = 0 },
		"no first packet":         func(tx *transaction.Transaction) { tx.Call.First = rdma.Ref{} },
		"written too much": func(tx *transaction.Transaction) {
			tx.WriteBytes++
			tx.Operations[0].Bytes++
			tx.Call.Header.Writes = nil
		},
		"written unlisted":  func(tx *transaction.Transaction) { tx.WriteBytes-- },
		"read unlisted":     func(tx *transaction.Transaction) { tx.ReadBytes++ },
		"operation missing": func(tx *transaction.Transaction) { tx.Operations = tx.Operations[:0] },
		"operation of another list": func(tx *transaction.Transaction) {
			tx.Operations[0].Chunk = transaction.ReadList
		},
		"operation without a packet": func(tx *transaction.Transaction) { tx.Operations[0].Last = rdma.Ref{} },
		"negative count":             func(tx *transaction.Transaction) { tx.Retransmits = -1 },
		"note of no kind":            func(tx *transaction.Transaction) { tx.Notes = []transaction.Note{{}} },
		"control characters": func(tx *transaction.Transaction) {
			tx.Notes = []transaction.Note{{Kind: transaction.HeaderMalformed, Why: "a\x1bb"}}
		},
	} {
		tried := 0
		each(func(_ string, tx *transaction.Transaction) {
			if tried > 0 || tx.State != transaction.Complete || tx.Writes != 1 || len(tx.Call.Header.Writes) == 0 || tx.Reads > 0 {
				return
			}
			tried++
			var good, bad verdict
			Transaction(&good, tx)
			spoilt := *tx
			spoilt.Operations = append([]transaction.Operation(nil), tx.Operations...)
			spoil(&spoilt)
			Transaction(&bad, &spoilt)
			if good.why != "" || bad.why == "" {
				t.Errorf("%s: before %q, after %q", name, good.why, bad.why)
			}
		})
		if tried == 0 {
			t.Fatal("no seed has an RDMA Write")
		}
	}
}

// Two transactions that differ have different digests.
func TestDigest(t *testing.T) {
	seen := map[string]bool{}
	each(func(name string, tx *transaction.Transaction) {
		seen[name+string(Digest(nil, tx))] = true
		before := string(Digest(nil, tx))
		tx.Reply.Last.Number++
		if string(Digest(nil, tx)) == before {
			t.Fatal("the digest does not depend on the reply's last packet")
		}
	})
	if len(seen) < 100 {
		t.Errorf("%d digests", len(seen))
	}
}

// What is not encoded as it was is noticed.
func TestBody(t *testing.T) {
	var v rpc.View
	tried := 0
	each(func(_ string, tx *transaction.Transaction) {
		if tried > 0 {
			return
		}
		v.Set(tx)
		if v.Args() == nil || v.ArgsErr != nil || len(v.CallBody().Data) < 8 {
			return
		}
		tried++
		var bad verdict
		v.CallBody().Data = v.CallBody().Data[:len(v.CallBody().Data)-4]
		v.CallBody().Length -= 4
		Messages(&bad, &v)
		if bad.why == "" {
			t.Error("four bytes too few were not noticed")
		}
	})
	if tried == 0 {
		t.Fatal("no arguments")
	}
}

// An allocation in proportion to a number that was only told is noticed.
func TestMemory(t *testing.T) {
	var m Memory
	var v verdict
	m.Start()
	sink = make([]byte, 1<<20)
	m.End(&v)
	if v.why != "" {
		t.Error(v.why)
	}
	m.Start()
	sink = make([]byte, MaxAllocated+1<<20)
	m.End(&v)
	if v.why == "" {
		t.Error("not noticed")
	}
	sink = nil
}

var sink []byte
