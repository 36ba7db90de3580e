package nfs4

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// A result that is too long becomes an error, for which there is always room.
func TestReplyLimit(t *testing.T) {
	const head = 4 + 4 + 4 // status, empty tag, number of operations
	for _, c := range []struct {
		minor   uint32
		result  int // bytes
		reserve int // > 0: the operation was allowed to be executed with this
		limit   int // above the header of the RPC reply
		st      status
		want    status
	}{
		{1, 8, 0, head + 16, ok, ok},
		{1, 12, 0, head + 16, ok, nfs4.NFS4ERR_REP_TOO_BIG},
		{0, 12, 0, head + 16, ok, nfs4.NFS4ERR_RESOURCE},
		{1, 12, 12, head + 16, ok, ok},
		{1, 8, 0, head + 16, nfs4.NFS4ERR_IO, nfs4.NFS4ERR_IO}, // of an error only the status stays
	} {
		call := &nfsserver.Call{}
		r := &reply{}
		r.reset(call)
		r.head(nil, c.minor, c.limit+replyHeader)
		r.open(uint32(nfs4.OP_READ))
		call.Out = append(call.Out, make([]byte, c.result)...)
		st := r.close(uint32(nfs4.OP_READ), c.st, &opInfo{reserve: c.reserve})
		size := 4
		if st == ok {
			size += c.result
		}
		if st != c.want || len(r.encoded()) != size || xdrUint32(r.encoded()) != uint32(c.want) {
			t.Errorf("%+v: %s, % x", c, st, r.encoded())
		}
		kept := r.end(1, st)
		if len(kept) != head+4+size || xdrUint32(kept) != uint32(st) || xdrUint32(kept[8:]) != 1 {
			t.Errorf("%+v: % x", c, kept)
		}
	}
}

func xdrUint32(b []byte) uint32 {
	var r xdr.Reader
	r.Reset(b, len(b))
	return r.Uint32()
}

// What is taken back leaves no trace, and the room for an error stays free.
func TestReplyUndo(t *testing.T) {
	call := &nfsserver.Call{}
	r := &reply{}
	r.reset(call)
	r.head([]byte("tag"), 1, 200+replyHeader)
	before := bytes.Clone(call.Out)
	r.open(uint32(nfs4.OP_READLINK))
	call.Out = xdr.AppendOpaque(call.Out, []byte("text"))
	if room := r.room(); room != 200-call.Len()-errorReserve || !r.fits(room) || r.fits(200) {
		t.Errorf("room for %d bytes", room)
	}
	r.undo()
	if !bytes.Equal(call.Out, before) {
		t.Errorf("% x", call.Out)
	}
	r.limit = call.Len()
	if r.open(uint32(nfs4.OP_READLINK)); r.room() != 0 || r.fits(0) {
		t.Error("room in a full reply")
	}
}

// SAVEFH and RESTOREFH move the stateid along with the filehandle; a new filehandle has none.
func TestObjects(t *testing.T) {
	a, b := store.Handle{ID: 1}, store.Handle{ID: 2}
	one := nfs4.Stateid4{Seqid: 7}
	current := nfs4.Stateid4{Seqid: 1}
	o := &objects{request: &request{minor: 1}}
	o.reset()
	check := func(fh store.Handle, sid *nfs4.Stateid4) {
		t.Helper()
		got, st := o.stateid(&current)
		if o.fh != fh || (st == ok) != (sid != nil) || sid != nil && *got != *sid {
			t.Errorf("%v %v %s", o.fh, got, st)
		}
	}
	o.setFH(a)
	check(a, nil)
	o.setStateid(one)
	check(a, &one)
	o.savefh()
	o.setFH(b)
	check(b, nil)
	if !o.moved {
		t.Error("not moved")
	}
	o.moved = false
	o.restorefh()
	check(a, &one)
	if !o.moved {
		t.Error("not moved back")
	}
	o.minor = 0
	if got, _ := o.stateid(&current); *got != current {
		t.Error("NFSv4.0 has no current stateid")
	}
	o.reset()
	if o.hasFH || o.saved.hasFH {
		t.Error("kept for another COMPOUND")
	}
}

// Which operations may be where (RFC 8881, section 2.10.6.3).
func TestPosition(t *testing.T) {
	for _, c := range []struct {
		op           nfs4.NfsOpnum4
		minor, count uint32
		index        int
		placed       bool
		retried      bool
		want         status
	}{
		{nfs4.OP_READ, 0, 3, 2, false, false, ok},
		{nfs4.OP_READ, 1, 3, 2, true, false, ok},
		{nfs4.OP_READ, 1, 3, 0, false, false, nfs4.NFS4ERR_OP_NOT_IN_SESSION},
		{nfs4.OP_READ, 1, 3, 1, true, true, nfs4.NFS4ERR_RETRY_UNCACHED_REP},
		{nfs4.OP_SEQUENCE, 1, 3, 0, false, false, ok},
		{nfs4.OP_SEQUENCE, 1, 3, 1, true, false, nfs4.NFS4ERR_SEQUENCE_POS},
		{nfs4.OP_EXCHANGE_ID, 1, 1, 0, false, false, ok},
		{nfs4.OP_EXCHANGE_ID, 1, 2, 0, false, false, nfs4.NFS4ERR_NOT_ONLY_OP},
		{nfs4.OP_EXCHANGE_ID, 1, 2, 1, true, false, ok},
		{nfs4.OP_BIND_CONN_TO_SESSION, 1, 1, 0, false, false, ok},
		{nfs4.OP_BIND_CONN_TO_SESSION, 1, 2, 1, true, false, nfs4.NFS4ERR_NOT_ONLY_OP},
	} {
		p := &place{request: &request{minor: c.minor, count: c.count, index: c.index}, placed: c.placed, retried: c.retried}
		if st := p.position(uint32(c.op)); st != c.want {
			t.Errorf("%+v: %s", c, st)
		}
	}
}
