package simulate

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// manySlots is the number of slots of a session that does not limit its client.
const manySlots = 64

// sessionSlots is how many calls a client has under way in its session.
func (n *network) sessionSlots(other bool) int {
	if n.SessionSlots != nil && !other {
		return n.SessionSlots.Slots
	}
	return manySlots
}

// highestSlot is what the server allows.
func (n *network) highestSlot(c *Call) uint32 {
	return uint32(n.sessionSlots(c.client.base > 0) - 1)
}

// channel says how many calls at a time one asks for when it creates a session, and what it gets.
func (n *network) channel(c *Call, asks bool) nfs4.ChannelAttrs4 {
	slots := n.sessionSlots(c.client.base > 0)
	if s := n.SessionSlots; asks && s != nil && !s.ByClient {
		slots = manySlots
	}
	return nfs4.ChannelAttrs4{CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 4096, CaMaxoperations: 16, CaMaxrequests: uint32(slots)}
}

func session(c *Call) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:], 0x6655443300000000|uint64(c.client.h.index))
	id[8] = 1
	return id
}

// appendOp appends the number of an operation, and its arguments.
func appendOp(b []byte, op nfs4.NfsOpnum4, args interface{ Append([]byte) []byte }) []byte {
	return args.Append(xdr.AppendUint32(b, uint32(op)))
}

// appendResult appends the number of an operation, NFS4_OK, and its results.
func appendResult(b []byte, op nfs4.NfsOpnum4, res interface{ Append([]byte) []byte }) []byte {
	b = xdr.AppendUint32(b, uint32(op))
	b = xdr.AppendUint32(b, 0)
	if res != nil {
		b = res.Append(b)
	}
	return b
}

var stateid = nfs4.Stateid4{Seqid: 1, Other: [12]byte{1, 2, 3, 4}}

// opnums are the operations of NFSv4.
var opnums = [...]nfs4.NfsOpnum4{
	Getattr: nfs4.OP_GETATTR, Lookup: nfs4.OP_GETATTR, Read: nfs4.OP_READ, Write: nfs4.OP_WRITE, Commit: nfs4.OP_COMMIT,
	Open: nfs4.OP_OPEN, Delegreturn: nfs4.OP_DELEGRETURN, CreateSession: nfs4.OP_CREATE_SESSION,
}

// compound appends the arguments of a COMPOUND: SEQUENCE, PUTFH and what the call is for.
func (n *network) compound(b []byte, c *Call) []byte {
	b = xdr.AppendOpaque(b, nil)
	b = xdr.AppendUint32(b, 1)
	if c.Op == CreateSession {
		x := n.channel(c, true)
		b = appendOp(xdr.AppendUint32(b, 1), nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4args{CsaClientid: 1, CsaForeChanAttrs: x, CsaBackChanAttrs: x})
		return b
	}
	b = xdr.AppendUint32(b, 3)
	b = appendOp(b, nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{
		SaSessionid: session(c), SaSequenceid: c.sequence, SaSlotid: uint32(c.slot), SaHighestSlotid: c.client.highest(),
	})
	b = appendOp(b, nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: handle(c)})
	op := opnums[c.Op]
	switch op {
	case nfs4.OP_READ:
		return appendOp(b, op, &nfs4.READ4args{Stateid: stateid, Offset: c.offset(), Count: uint32(c.Size)})
	case nfs4.OP_WRITE:
		return appendOp(b, op, &nfs4.WRITE4args{
			Stateid: stateid, Offset: c.offset(), Data: xdr.Data{Length: uint32(c.Size), Chunk: 1},
		})
	case nfs4.OP_COMMIT:
		return appendOp(b, op, &nfs4.COMMIT4args{})
	}
	if c.Op == Open {
		open := &nfs4.OPEN4args{ShareAccess: nfs4.OPEN4_SHARE_ACCESS_READ, Owner: nfs4.StateOwner4{Clientid: 1, Owner: []byte("owner")}}
		open.Claim.Claim = nfs4.CLAIM_FH
		return appendOp(b, op, open)
	}
	if c.Op == Delegreturn {
		return appendOp(b, op, &nfs4.DELEGRETURN4args{DelegStateid: stateid})
	}
	return appendOp(b, op, &nfs4.GETATTR4args{AttrRequest: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(1, 4)}})
}

// highest is the highest slot in use.
func (cl *client) highest() uint32 {
	for i := len(cl.slots) - 1; i >= 0; i-- {
		if cl.slots[i] {
			return uint32(i)
		}
	}
	return 0
}

// compoundReply appends the results of a COMPOUND.
func (n *network) compoundReply(b []byte, c *Call) []byte {
	op := opnums[c.Op]
	status, count := uint32(0), uint32(3)
	if c.delayed {
		status, count = uint32(nfs4.NFS4ERR_DELAY), 2
		if w := n.AskedToWait; w != nil && w.Grace {
			status = uint32(nfs4.NFS4ERR_GRACE)
		}
	}
	b = xdr.AppendUint32(b, status)
	b = xdr.AppendOpaque(b, nil)
	if c.Op == CreateSession {
		x := n.channel(c, false)
		return appendResult(xdr.AppendUint32(b, 1), nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4resok{CsrSessionid: session(c), CsrForeChanAttrs: x, CsrBackChanAttrs: x})
	}
	b = xdr.AppendUint32(b, count)
	b = appendResult(b, nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4resok{
		SrSessionid: session(c), SrSequenceid: c.sequence, SrSlotid: uint32(c.slot),
		SrHighestSlotid: n.highestSlot(c), SrTargetHighestSlotid: n.highestSlot(c),
	})
	if c.delayed {
		return xdr.AppendUint32(xdr.AppendUint32(b, uint32(nfs4.OP_PUTFH)), status)
	}
	b = appendResult(b, nfs4.OP_PUTFH, nil)
	switch op {
	case nfs4.OP_READ:
		return appendResult(b, op, &nfs4.READ4resok{Data: xdr.Data{Length: uint32(c.Size), Chunk: 1}})
	case nfs4.OP_WRITE:
		return appendResult(b, op, &nfs4.WRITE4resok{Count: uint32(c.Size)})
	case nfs4.OP_COMMIT:
		return appendResult(b, op, &nfs4.COMMIT4resok{})
	}
	if c.Op == Open {
		return appendResult(b, op, &nfs4.OPEN4resok{Stateid: stateid})
	}
	if c.Op == Delegreturn {
		return appendResult(b, op, nil)
	}
	r := nfs4.GETATTR4resok{ObjAttributes: nfs4.Fattr4{Attrmask: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(1, 4)}, AttrVals: make([]byte, 12)}}
	r.ObjAttributes.AttrVals[3] = 1 // NF4REG
	return appendResult(b, op, &r)
}
