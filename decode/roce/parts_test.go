package roce

import (
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestClock: unused connections go first, the largest of the next ones if memory is short.
func TestClock(t *testing.T) {
	var k clock
	if k.heaviest() != nil {
		t.Fatal("there is none")
	}
	list := make([]*connection, 20)
	for i := range list {
		list[i] = &connection{size: 100 + i, used: true}
		k.add(list[i])
	}
	list[5].used = false
	if c := k.unused(); c != list[5] {
		t.Errorf("connection %d", c.index)
	}
	if c := k.heaviest(); c != list[13] { // of 6 to 13
		t.Errorf("connection %d", c.index)
	}
	list[15].used = false
	if c := k.heaviest(); c != list[15] {
		t.Errorf("connection %d", c.index)
	}
	k.remove(list[3])
	if k.all[3] != list[19] || list[19].index != 3 || len(k.all) != 19 {
		t.Error("the last one is not in its place")
	}
}

// TestFlowTable: a flow is found until it is dropped, also if another one has its place in the cache.
func TestFlowTable(t *testing.T) {
	x := flowTable{byKey: make(map[flowKey]*flow)}
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	var list [2]*flow
	for i := range list {
		list[i] = &flow{key: flowKey{src, dst, uint64(i), 7}} // tenants share a place
		x.add(list[i])
	}
	for i, fl := range list {
		if x.find(&fl.key) != fl || x.fast(&FastPacket{Route: NewRoute(src, dst), DestQP: 7}, uint64(i)) != fl {
			t.Errorf("flow %d is not found", i)
		}
	}
	x.drop(list[1])
	if x.find(&list[1].key) != nil || x.find(&list[0].key) != list[0] {
		t.Error("not the right one was dropped")
	}
}

// TestAssembler: the memory of Sends is counted, limited, used again and given back.
func TestAssembler(t *testing.T) {
	account := new(account)
	x := assembler{limits: &Limits{SendBytes: 64, Assembly: 64}, account: account}
	p := &Packet{Payload: []byte("0123456789"), PayloadLen: 10}
	a := x.begin(p, rdma.Ref{Number: 1})
	x.put(a, 0, p)
	x.put(a, 20, p)
	x.gathered(a)
	if string(a.buf) != "0123456789\x00\x00\x00\x00\x00\x00\x00\x00\x00\x000123456789" || x.bytes != cap(a.buf) || account.used != a.size {
		t.Errorf("%q, %d bytes under way, %d used", a.buf, x.bytes, account.used)
	}
	b := x.begin(p, rdma.Ref{Number: 2})
	x.put(b, 50, p)
	if b.cut != 50 || b.buf != nil {
		t.Errorf("cut at %d, %d bytes are kept", b.cut, len(b.buf))
	}
	x.end(a)
	if x.bytes != 0 || x.begin(p, rdma.Ref{Number: 3}) != a || len(a.buf) != 0 {
		t.Error("not used again")
	}
	x.end(a)
	if !x.clear() || x.clear() || account.used != 0 {
		t.Errorf("%d bytes are left", account.used)
	}
}

// TestEarlyPackets: packets of a flow are found in the order of their PSNs, once it is known what they belong to.
func TestEarlyPackets(t *testing.T) {
	e := earlyPackets{account: new(account)}
	fl := &flow{c: &connection{Connection: new(rdma.Connection)}}
	for _, psn := range []uint32{12, 11, 40} {
		e.keep(fl, &Packet{Opcode: RCSendMiddle, PSN: psn, Payload: []byte{byte(psn)}}, rdma.Ref{Number: uint64(psn)})
	}
	found := e.find(nil, fl, 11, 10, false)
	if len(found) != 2 || found[0].p.Payload[0] != 11 || found[1].p.Payload[0] != 12 {
		t.Errorf("%d found", len(found))
	}
	if len(e.find(nil, fl, 11, 10, true)) != 0 {
		t.Error("they are no responses")
	}
	if e.drop(fl); fl.early != 0 || len(e.find(nil, fl, 11, 10, false)) != 0 {
		t.Error("not dropped")
	}
	for range maxEarlyPackets + 1 {
		e.keep(fl, &Packet{Opcode: RCSendMiddle}, rdma.Ref{})
	}
	if fl.early != maxEarlyPackets {
		t.Errorf("%d are kept", fl.early)
	}
}
