package callback

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// exchange is a call of a server that keeps the reply.
type exchange struct {
	transport.Exchange
	call    transport.Message
	reply   []byte
	dropped bool
	replied chan struct{} // closed by the reply, unless it is nil
}

func (x *exchange) Call() *transport.Message { return &x.call }
func (x *exchange) Drop()                    { x.dropped = true }
func (x *exchange) Reply(m *transport.Message) {
	x.reply = m.AppendWhole(nil)
	if x.replied != nil {
		close(x.replied)
	}
}

func callback(procedure uint32, args xdr.Message) *exchange {
	h := oncrpc.Call{XID: 77, RPCVersion: 2, Program: 0x40000000, Version: 1, Procedure: procedure}
	return &exchange{call: transport.Message{Stream: args.Append(h.Append(nil))}}
}

func TestCallbacks(t *testing.T) {
	var got []Recall
	nulls := 0
	h := Handler{Recalled: func(r []Recall) { got = append(got, r...) }, Null: func() { nulls++ }}
	x := callback(0, xdr.Void{})
	h.ServeRPC(x)
	var r oncrpc.Reply
	if err := r.Decode(x.reply, len(x.reply)); err != nil || !r.Succeeded() || r.XID != 77 || nulls != 1 {
		t.Fatalf("CB_NULL: %v, %+v, %d told", err, r, nulls)
	}
	recalled := nfs4.Stateid4{Seqid: 3, Other: [12]byte{1, 2, 3}}
	x = callback(1, &nfs4.CbCompoundArgs{Minorversion: 1, Operations: nfs4.Operations{Ops: []nfs4.Op{
		{Number: uint32(nfs4.OP_CB_SEQUENCE), Body: &nfs4.CB_SEQUENCE4args{CsaSessionid: [16]byte{9}, CsaSequenceid: 5, CsaSlotid: 1, CsaHighestSlotid: 2}},
		{Number: uint32(nfs4.OP_CB_RECALL), Body: &nfs4.CB_RECALL4args{Stateid: recalled, Fh: []byte("handle")}},
	}}})
	h.ServeRPC(x)
	var res nfs4.CbCompoundRes
	decodeReply(t, x, &res)
	if res.Status != nfs4.NFS4_OK || len(res.Ops) != 2 {
		t.Fatalf("%+v", res)
	}
	if s := res.Ops[0].Body.(*nfs4.CB_SEQUENCE4res).CsrResok4; s.CsrSequenceid != 5 || s.CsrSlotid != 1 || s.CsrSessionid != [16]byte{9} {
		t.Errorf("%+v", s)
	}
	if len(got) != 1 || got[0].Stateid != recalled || string(got[0].Handle) != "handle" {
		t.Errorf("%+v", got)
	}
	x = callback(1, &nfs4.CbCompoundArgs{Minorversion: 1, Operations: nfs4.Operations{Ops: []nfs4.Op{
		{Number: uint32(nfs4.OP_CB_RECALL_ANY), Body: &nfs4.CB_RECALL_ANY4args{}},
	}}})
	h.ServeRPC(x)
	decodeReply(t, x, &res)
	if res.Status != nfs4.NFS4ERR_NOTSUPP {
		t.Errorf("%v", res.Status)
	}
}

func TestGetattr(t *testing.T) {
	h := Handler{Cached: func(handle []byte) (change, size uint64, ok bool) { return 7, 4096, string(handle) == "known" }}
	for _, c := range []struct {
		handle string
		ask    []uint32
		status nfs4.Nfsstat4
		want   nfs4.Bitmap4
	}{
		{"known", []uint32{nfs4.FATTR4_CHANGE, nfs4.FATTR4_SIZE, nfs4.FATTR4_TIME_DELEG_MODIFY}, nfs4.NFS4_OK, nfs4.NewBitmap4(nfs4.FATTR4_CHANGE, nfs4.FATTR4_SIZE)},
		{"known", []uint32{nfs4.FATTR4_SIZE}, nfs4.NFS4_OK, nfs4.NewBitmap4(nfs4.FATTR4_SIZE)},
		{"unknown", []uint32{nfs4.FATTR4_SIZE}, nfs4.NFS4ERR_BADHANDLE, nil},
	} {
		x := callback(1, &nfs4.CbCompoundArgs{Minorversion: 1, Operations: nfs4.Operations{Ops: []nfs4.Op{
			{Number: uint32(nfs4.OP_CB_GETATTR), Body: &nfs4.CB_GETATTR4args{Fh: []byte(c.handle), AttrRequest: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(c.ask...)}}},
		}}})
		x.replied = make(chan struct{})
		h.ServeRPC(x)
		<-x.replied
		var res nfs4.CbCompoundRes
		decodeReply(t, x, &res)
		r, ok := res.Ops[0].Body.(*nfs4.CB_GETATTR4res)
		if !ok || res.Status != c.status || r.Status != c.status {
			t.Errorf("%s: %v %+v", c.handle, res.Status, r)
			continue
		}
		if c.status != nfs4.NFS4_OK {
			continue
		}
		a, err := r.Resok4.ObjAttributes.Attrs()
		if err != nil || string(a.Mask) != string(c.want) || a.Size != 4096 || c.want.Has(nfs4.FATTR4_CHANGE) && a.Change != 7 {
			t.Errorf("%s: %v %+v", c.handle, err, a)
		}
	}
}

func decodeReply(t *testing.T, x *exchange, m xdr.Message) {
	t.Helper()
	var h oncrpc.Reply
	if err := h.Decode(x.reply, len(x.reply)); err != nil || !h.Succeeded() {
		t.Fatalf("%v, %+v", err, h)
	}
	var r xdr.Reader
	r.Reset(x.reply[h.Size():], len(x.reply)-h.Size())
	if m.Decode(&r); r.Err() != nil {
		t.Fatal(r.Err())
	}
}

// FuzzCallback takes calls of a hostile server: each is answered or dropped.
func FuzzCallback(f *testing.F) {
	for _, x := range []*exchange{
		callback(0, xdr.Void{}), callback(1, &nfs4.CbCompoundArgs{}), callback(2, xdr.Void{}),
		callback(1, &nfs4.CbCompoundArgs{Operations: nfs4.Operations{Ops: []nfs4.Op{{Number: uint32(nfs4.OP_CB_RECALL), Body: &nfs4.CB_RECALL4args{Fh: []byte("h")}}}}}),
	} {
		f.Add(x.call.Stream)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x := &exchange{call: transport.Message{Stream: b}}
		Handler{}.ServeRPC(x)
		if x.reply == nil && !x.dropped {
			t.Error("no answer")
		}
	})
}
