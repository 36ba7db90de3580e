package playback

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// split takes the eligible items out of a decoded reply, whether they travelled
// in chunks or in the stream. False if something else than data is missing.
func (r *Recording) split(v *rpc.View, rec *record) bool {
	m := &v.Tx.Reply
	var list dataList
	v.Result().Walk(&list)
	body := v.ReplyBody()
	if v.ResultErr != nil {
		// Only the last item's bytes may be missing, and only if nothing but
		// padding follows them.
		if !v.ResultCut || len(list) == 0 || list[len(list)-1].Chunk != 0 {
			return false
		}
	} else if len(m.Payload) != m.PayloadLength {
		return false
	}
	rec.stream = append(rec.stream, m.Payload[:body.Offset]...)
	from, moved := 0, 0 // place in the body, bytes of items so far
	known := make([]xdr.Reduced, 0, len(list))
	for i, d := range list {
		it := item{length: int(d.Length)}
		if d.Length == 0 {
			// Nothing to find; it only counts. Any place will do.
			it.position = uint32(len(rec.stream) + moved)
			known = append(known, xdr.Reduced{})
			rec.items = append(rec.items, it)
			continue
		}
		at, ok := 0, false
		if d.Chunk == 0 {
			at, ok = offset(body.Data, from, d.Inline)
		} else {
			at, ok = place(v, known)
		}
		if !ok || at < from {
			return false
		}
		rec.stream = append(rec.stream, body.Data[from:at]...)
		from = at
		padded := (it.length + 3) &^ 3
		if d.Chunk == 0 {
			known = append(known, xdr.Reduced{})
			it.data = body.Data[at:min(at+it.length, len(body.Data))]
			from = at + padded
			if from > len(body.Data) {
				if i != len(list)-1 || from < body.Length {
					return false
				}
				from = len(body.Data)
			}
		} else {
			known = append(known, xdr.Reduced{Length: d.Length})
			it.data = v.Tx.ReplyData(d.Chunk - 1)
			it.data = it.data[:min(len(it.data), it.length)]
		}
		it.position = uint32(len(rec.stream) + moved)
		moved += padded
		rec.items = append(rec.items, it)
	}
	rec.stream = append(rec.stream, body.Data[from:]...)
	return true
}

// offset finds where in b, from a place on, a part of it starts. XDR items start
// at multiples of four.
func offset(b []byte, from int, part []byte) (int, bool) {
	for at := from &^ 3; at < len(b) && len(part) > 0; at += 4 {
		if &b[at] == &part[0] {
			return at, true
		}
	}
	return 0, false
}

// place finds where in the body of the results the bytes of an item would stand
// that travelled in a chunk. known are the items before it. The reader is told
// that the chunk was not used, so that it takes for the item what comes in its
// place, or fails there if that is too short.
func place(v *rpc.View, known []xdr.Reduced) (int, bool) {
	b := v.ReplyBody()
	var r xdr.Reader
	r.Reset(b.Data, b.Length)
	r.StartAt(uint32(b.Offset))
	r.ReduceReply(append(known[:len(known):len(known)], xdr.Reduced{}))
	probe := v.Procedure.NewResult()
	probe.Decode(&r)
	var list dataList
	probe.Walk(&list)
	if i := len(known); i < len(list) && len(list[i].Inline) > 0 {
		return offset(b.Data, 0, list[i].Inline)
	}
	at := r.Offset() + 4
	return at, r.Failed() && at <= len(b.Data)
}

// dataList collects eligible items in the order of the wire.
type dataList []xdr.Data

func (l *dataList) Data(_ string, d xdr.Data)  { *l = append(*l, d) }
func (*dataList) Begin(string, string, int)    {}
func (*dataList) End()                         {}
func (*dataList) Uint(string, uint64)          {}
func (*dataList) Int(string, int64)            {}
func (*dataList) Bool(string, bool)            {}
func (*dataList) Enum(string, uint32, string)  {}
func (*dataList) Flags(string, uint64, string) {}
func (*dataList) Bytes(string, []byte)         {}
func (*dataList) String(string, []byte)        {}
func (*dataList) Time(string, int64, uint32)   {}

// sequenceSize is the size of SEQUENCE4resok up to the slot, in bytes: session,
// sequence number, slot.
const sequenceSize = 16 + 4 + 4

// sequenceResult finds the results of a SEQUENCE that leads a reply: where in the
// message its session ID is.
func sequenceResult(v *rpc.View) (int, bool) {
	res, ok := v.Result().(*nfs4.CompoundRes)
	if !ok {
		return 0, false
	}
	ops := v.Operations()
	if len(ops) == 0 || ops[0].Number != uint32(nfs4.OP_SEQUENCE) || ops[0].Result == nil || ops[0].Code != 0 {
		return 0, false
	}
	// status, tag, number of results, operation, status.
	return v.ReplyBody().Offset + 4 + xdr.SizeOpaque(len(res.Tag)) + 4 + 4 + 4, true
}
