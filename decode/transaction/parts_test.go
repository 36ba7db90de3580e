package transaction

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// replied is a transaction whose reply came at a time.
func replied(at int64) *Transaction {
	tx := &Transaction{Connection: new(rdma.Connection), gen: uint64(at) + 1, replied: true}
	tx.Reply.First, tx.Reply.Last = rdma.Ref{Number: 1, Time: at}, rdma.Ref{Number: 1, Time: at}
	return tx
}

// TestAcks: replies are overdue one after the other; one whose acknowledgement was missed waits longer, one that has ended does not count.
func TestAcks(t *testing.T) {
	var a acks
	first, ended, slow := replied(10), replied(20), replied(30)
	slow.Connection.Upper = &conn{delivered: [2]delivery{{acks: true}, {acks: true}}}
	slow.Call.Last = rdma.Ref{Number: 1}
	for _, tx := range []*Transaction{first, ended, slow, first} {
		a.wait(tx, 3)
	}
	ended.finished = true
	for _, c := range []struct {
		now  int64
		want *Transaction
	}{{ackWait + 9, nil}, {ackWait + 10, first}, {ackWait + 10, nil}, {ackWait + 30, nil}, {ackWait + slowWait + 30, slow}} {
		if tx := a.overdue(c.now, 3); tx != c.want {
			t.Errorf("at %d: %v", c.now, tx)
		}
	}
	if a.any() {
		t.Error("something waits")
	}
}

// TestAhead: the reply that has waited longest goes, unless its call has come.
func TestAhead(t *testing.T) {
	var a ahead
	list := make([]*Transaction, maxAheadReplies+2)
	bytes := 0
	for i := range list {
		list[i] = replied(int64(i))
		if i == maxAheadReplies {
			list[1].Call.Last = rdma.Ref{Number: 1}
		}
		gone, grown := a.wait(list[i])
		bytes += grown
		if want := i == maxAheadReplies; (gone != nil) != want || want && gone != list[0] {
			t.Fatalf("%d: %v is gone", i, gone)
		}
	}
	if bytes != cap(a.list)*waiterSize {
		t.Errorf("%d bytes", bytes)
	}
}

// TestRecents: the latest are known, by XID, reply and call.
func TestRecents(t *testing.T) {
	var l recents
	reply := &rdma.Send{Data: []byte("the reply to the newest of the calls"), Length: 36}
	for i := range uint32(len(l.list) + 1) {
		*l.next() = recent{set: true, xid: i, sum: 7, number: 1, print: printOf(reply.Data, reply.Length)}
	}
	if l.has(0) || !l.has(1) || !l.has(32) {
		t.Error("not the latest ones")
	}
	same, _ := l.answered(32, reply)
	_, other := l.answered(32, &rdma.Send{Data: []byte("another one"), Length: 11})
	if !same || !other {
		t.Errorf("same %v, other %v", same, other)
	}
	tx := &Transaction{XID: 5, Connection: &rdma.Connection{First: rdma.Ref{Number: 2}}}
	if l.again(tx, 7) == nil || l.again(tx, 8) != nil {
		t.Error("not the call")
	}
	tx.Connection.First.Number = 1 // as old as the call
	if l.again(tx, 7) != nil {
		t.Error("came before the connection")
	}
}

// TestOrphans: an operation is found by its tag until as many others have come; the start of a Write is kept without holes.
func TestOrphans(t *testing.T) {
	var l orphans
	op := &rdma.Op{Kind: rdma.Write, Offset: 100, Length: 8}
	op.Tag = l.add(op, 1, rdma.Ref{Number: 1})
	o := l.of(op)
	grown := o.take(op, &rdma.Fragment{Offset: 100, Length: 4, Data: []byte("abcd")})
	grown += o.take(op, &rdma.Fragment{Offset: 106, Length: 2, Data: []byte("gh")}) // after a hole
	if string(o.data) != "abcd" || o.bytes != 6 || grown != l.owned() {
		t.Errorf("%q, %d bytes, %d grown, %d owned", o.data, o.bytes, grown, l.owned())
	}
	for i := range maxOrphans {
		if l.of(op) == nil {
			t.Fatalf("forgotten after %d", i)
		}
		l.add(&rdma.Op{}, uint64(i)+2, rdma.Ref{})
	}
	if l.of(op) != nil || (*orphans)(nil).of(op) != nil {
		t.Error("not forgotten")
	}
}

// TestPool: a transaction is used again with its entry; a tag of the former use is stale.
func TestPool(t *testing.T) {
	b := memory.NewBudget(1 << 20)
	p := pool{memory: b.Account(100)}
	tx := p.take()
	tx.gen = 1
	tag := tx.sendTag(true)
	if got, reply := p.entries.ofSend(tag); got != tx || !reply {
		t.Fatal("not found")
	}
	p.memory.Add(-tx.size) // as when it is emitted
	p.recycle(tx)
	if p.entries.tagged(tag) != nil || p.take() != tx {
		t.Error("stale, or not used again")
	}
	p.memory.Add(-tx.size)
	p.recycle(tx)
	if !p.clear() || p.clear() || p.memory.Used() != 0 {
		t.Errorf("%d bytes are left", p.memory.Used())
	}
}
