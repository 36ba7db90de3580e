package session

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// compounds makes COMPOUNDs of a few sessions, most of them of a SEQUENCE and what tells nothing of sessions.
type compounds struct {
	rng *rand.Rand
	xid uint32
	odd int // how seldom something is unusual
	ids [][16]byte
}

func newCompounds(seed uint64) *compounds {
	m := &compounds{rng: rand.New(rand.NewPCG(seed, 43))}
	m.odd = 4 + m.rng.IntN(60)
	m.ids = [][16]byte{{1, 15: 1}, {1, 15: 2}, {7: 9, 8: 4}}
	if seed%4 == 3 { // more than have places of their own
		for i := range byte(80) {
			m.ids = append(m.ids, [16]byte{1, 8: i})
		}
	}
	return m
}

// rarely is true now and then.
func (m *compounds) rarely() bool { return m.rng.IntN(m.odd) == 0 }

func (m *compounds) status() nfs4.Nfsstat4 {
	if m.rarely() {
		return nfs4.Nfsstat4(10000 + m.rng.Uint32N(80))
	}
	return nfs4.NFS4_OK
}

// operation is an operation behind the first one, and its results.
func (m *compounds) operation() (number nfs4.NfsOpnum4, args, res xdr.Message) {
	id := m.ids[m.rng.IntN(len(m.ids))]
	status := m.status()
	if m.rarely() {
		switch m.rng.IntN(8) {
		case 0:
			return nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{SaSessionid: id, SaSlotid: m.rng.Uint32N(5)}, &nfs4.SEQUENCE4res{SrStatus: status}
		case 1:
			return nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{DsaSessionid: id}, &nfs4.Status4res{Status: status}
		case 2:
			return nfs4.OP_BIND_CONN_TO_SESSION, &nfs4.BIND_CONN_TO_SESSION4args{BctsaSessid: id},
				&nfs4.BIND_CONN_TO_SESSION4res{BctsrStatus: status, BctsrResok4: nfs4.BIND_CONN_TO_SESSION4resok{BctsrSessid: id}}
		case 3:
			return m.create()
		case 4:
			x := nfs4.ClientOwner4{CoOwnerid: []byte{'a' + byte(m.rng.IntN(3))}}
			return nfs4.OP_EXCHANGE_ID, &nfs4.EXCHANGE_ID4args{EiaClientowner: x}, &nfs4.EXCHANGE_ID4res{EirStatus: status, EirResok4: nfs4.EXCHANGE_ID4resok{EirClientid: 7}}
		case 5:
			return nfs4.OP_GETDEVICEINFO, &nfs4.GETDEVICEINFO4args{GdiaDeviceId: id}, &nfs4.GETDEVICEINFO4res{GdirStatus: nfs4.NFS4ERR_NOENT}
		case 6:
			return nfs4.OP_LAYOUTGET, &nfs4.LAYOUTGET4args{LogaLayoutType: nfs4.LAYOUT4_FLEX_FILES}, &nfs4.LAYOUTGET4res{LogrStatus: nfs4.NFS4ERR_LAYOUTUNAVAILABLE}
		}
	}
	switch m.rng.IntN(5) {
	case 0:
		data := xdr.Data{Length: 12, Inline: make([]byte, 12)}
		return nfs4.OP_READ, &nfs4.READ4args{Count: 12}, &nfs4.READ4res{Status: status, Resok4: nfs4.READ4resok{Data: data}}
	case 1:
		data := xdr.Data{Length: 20, Inline: make([]byte, 20)}
		return nfs4.OP_WRITE, &nfs4.WRITE4args{Data: data}, &nfs4.WRITE4res{Status: status, Resok4: nfs4.WRITE4resok{Count: 20}}
	case 2:
		return nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: []byte{4, 3, 2, byte(m.rng.IntN(3))}}, &nfs4.Status4res{Status: status}
	}
	return nfs4.OP_PUTROOTFH, xdr.Void{}, &nfs4.Status4res{Status: status}
}

// create creates a session, or tells of it once more.
func (m *compounds) create() (number nfs4.NfsOpnum4, args, res xdr.Message) {
	x := nfs4.ChannelAttrs4{CaMaxrequests: 1 + m.rng.Uint32N(6)}
	k := nfs4.CREATE_SESSION4resok{CsrSessionid: m.ids[m.rng.IntN(len(m.ids))], CsrForeChanAttrs: x, CsrBackChanAttrs: x}
	return nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4args{CsaClientid: 7}, &nfs4.CREATE_SESSION4res{CsrStatus: m.status(), CsrResok4: k}
}

// sequence is the first operation.
func (m *compounds) sequence() (args, res xdr.Message) {
	id, slot := m.ids[m.rng.IntN(len(m.ids))], m.rng.Uint32N(5)
	if m.rarely() {
		slot = m.rng.Uint32N(8) * 1000
	}
	r := nfs4.SEQUENCE4res{SrStatus: m.status()}
	r.SrResok4 = nfs4.SEQUENCE4resok{SrSessionid: id, SrSlotid: slot, SrTargetHighestSlotid: 3}
	if m.rarely() {
		r.SrResok4.SrTargetHighestSlotid = m.rng.Uint32N(7) - 1
	}
	return &nfs4.SEQUENCE4args{SaSessionid: id, SaSlotid: slot, SaHighestSlotid: max(slot, m.rng.Uint32N(5))}, &r
}

// next is a call and its reply: messages of RPC.
func (m *compounds) next() (call, reply []byte) {
	m.xid++
	var args nfs4.CompoundArgs
	var res nfs4.CompoundRes
	args.Minorversion = 1 + m.rng.Uint32N(2)
	if m.rng.IntN(4) == 0 {
		args.Minorversion = 0
	}
	add := func(n nfs4.NfsOpnum4, a, r xdr.Message) {
		args.Ops = append(args.Ops, nfs4.Op{Number: uint32(n), Body: a})
		if res.Status == nfs4.NFS4_OK {
			o := nfs4.Op{Number: uint32(n), Body: r}
			code, _, _ := o.Status()
			res.Status = nfs4.Nfsstat4(code)
			res.Ops = append(res.Ops, o)
		}
	}
	switch {
	case m.rng.IntN(40) == 0:
		add(m.create())
	case args.Minorversion > 0 != m.rarely():
		a, r := m.sequence()
		add(nfs4.OP_SEQUENCE, a, r)
	}
	for range m.rng.IntN(5) {
		add(m.operation())
	}
	if m.rarely() {
		args.Tag = make([]byte, m.rng.IntN(6))
		res.Tag = args.Tag
	}
	cred := 0
	if m.rarely() {
		cred = 4 * m.rng.IntN(6)
	}
	procedure := uint32(compoundProcedure)
	if m.rarely() {
		procedure = 0 // NULL
	}
	call = xdr.AppendUint32(nil, m.xid)
	for _, w := range [...]uint32{0, 2, 100003, 4, procedure, min(uint32(cred), 1), uint32(cred)} {
		call = xdr.AppendUint32(call, w)
	}
	call = append(call, make([]byte, cred+8)...)
	reply = xdr.AppendUint32(nil, m.xid)
	for _, w := range [...]uint32{1, 0, 0, 0, 0} {
		reply = xdr.AppendUint32(reply, w)
	}
	if procedure == 0 {
		return call, reply
	}
	call, reply = args.Append(call), res.Append(reply)
	if m.rarely() { // the rest is missing, or there is more
		reply = append(reply, 0, 0, 0, 0)[:max(len(reply)-4*m.rng.IntN(9), 24)]
	}
	return call, reply
}

// onRDMA is a message of RPC behind a header of RPC-over-RDMA.
func onRDMA(xid uint32, b []byte) []byte {
	h := rpcrdma.Header{Version: rpcrdma.Version1, XID: xid, Credits: 8, Type: rpcrdma.TypeMsg}
	return append(h.Append(nil), b...)
}

// sequenced runs COMPOUNDs, several at a time, and returns what is found. With full, the operations of all are decoded.
func sequenced(t *testing.T, seed uint64, full bool) string {
	t.Helper()
	m, s := newCompounds(seed), New(nil)
	opt := transaction.Options{Message: s.Message, Detach: true, Ended: s.Ended}
	if seed%8 == 7 { // I/O goes to a server of data
		l := &layout{handle: "x", server: "192.0.2.99"}
		s.pnfs.data[string([]byte{4, 3, 2, 1})], s.pnfs.order = l, append(s.pnfs.order, l)
	}
	view := rpc.View{Names: &rpc.Names{}}
	tracker := transaction.NewTracker(opt, func(tx *transaction.Transaction) {
		view.Set(tx)
		view.Learn()
		if minor, ok := view.MinorVersion(); full && view.Clean() && ok && minor > 0 {
			s.operations(&view)
			s.pnfs.io(s, &view)
			return
		}
		s.Transaction(&view)
	})
	conns := [3]*rdma.Connection{{ID: 1, Fabric: rdma.RoCEv2}, {ID: 17, Fabric: rdma.RoCEv2}, {ID: 88, Fabric: rdma.RoCEv2}} // a session may have the same place on the first and the last
	for i, c := range conns {
		c.Ends[0].Addr, c.Ends[1].Addr = netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + i)}), netip.AddrFrom4([4]byte{192, 0, 2, 1})
	}
	var ref rdma.Ref
	send := func(c *rdma.Connection, from rdma.Side, data []byte) {
		ref.Number++
		if ref.Time += int64(m.rng.IntN(100_000)); m.rarely() {
			ref.Time += int64(m.rng.IntN(50_000_000)) - 100_000
		}
		tag := tracker.Send(c, &rdma.Send{From: from, Data: data, Length: len(data), First: ref, Last: ref, Packets: 1})
		tracker.SendAcked(c, from, tag, ref)
	}
	type open struct {
		c           *rdma.Connection
		from        rdma.Side
		call, reply []byte
	}
	var list []open
	most := 1 + m.rng.IntN(2)*m.rng.IntN(24)
	for range 300 {
		x := open{c: conns[m.rng.IntN(1+m.rng.IntN(len(conns)))]}
		if m.rarely() {
			x.from = 1
		}
		call, reply := m.next()
		x.call, x.reply = onRDMA(m.xid, call), onRDMA(m.xid, reply)
		send(x.c, x.from, x.call)
		list = append(list, x)
		for len(list) > 0 && (len(list) >= most || m.rng.IntN(3) == 0) {
			i := m.rng.IntN(len(list))
			x := list[i]
			list = slices.Delete(list, i, i+1)
			if m.rarely() && m.rng.IntN(3) == 0 {
				continue // it gets no reply
			}
			if m.rarely() {
				send(x.c, x.from, x.call) // again
			}
			send(x.c, x.from.Other(), x.reply)
		}
	}
	tracker.Flush()
	found := reportOf(t, s)
	all, _ := s.Uses(ref.Time, 100)
	for _, u := range all {
		found += fmt.Sprintln(u.ID, u.Total, u.InUse, u.Most, u.Limit)
	}
	return found
}

// TestBrief: COMPOUNDs are counted the same without being decoded.
func TestBrief(t *testing.T) {
	for seed := range uint64(sampled.Rounds(50)) {
		if full, short := sequenced(t, seed, true), sequenced(t, seed, false); full != short {
			t.Fatalf("%d: in full\n%s\nin short\n%s", seed, full, short)
		}
	}
}
