package workload

import (
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Arguments decodes the arguments of ops. Symbols have made-up values: what a server
// gives (handles, state ids) means nothing in them. The zero value is ready for use, by
// one goroutine.
type Arguments struct {
	known  map[*xdr.Procedure]xdr.Message
	stream []byte
	reduce []xdr.Reduced
	reader xdr.Reader
	zeros  []byte
}

// Of returns the arguments of an op, valid until the next call; nil if its procedure is
// not known or the fields of the plan are not those of its arguments. File data are
// known by their length only.
func (a *Arguments) Of(o *plan.Op) xdr.Message {
	var err error
	if a.stream, a.reduce, err = o.AppendReduced(a.stream[:0], a.reduce[:0], a); err != nil {
		return nil
	}
	return a.Decode(Codec(o), a.stream, 0, a.reduce)
}

// Decode decodes the arguments in a call from offset at on, valid until the next call of a method; nil if they cannot be decoded.
func (a *Arguments) Decode(p *xdr.Procedure, call []byte, at int, reduced []xdr.Reduced) xdr.Message {
	if p == nil {
		return nil
	}
	if a.known == nil {
		a.known = map[*xdr.Procedure]xdr.Message{}
	}
	m := a.known[p]
	if m == nil {
		m = p.NewArgs()
		a.known[p] = m
	}
	a.reader.Reset(call[at:], len(call)-at)
	a.reader.StartAt(uint32(at))
	a.reader.ReduceCall(reduced)
	if m.Decode(&a.reader); a.reader.Failed() {
		return nil
	}
	return m
}

// maxData is how many bytes of data one call may carry.
const maxData = 64 << 20

// Append implements plan.Resolver.
func (a *Arguments) Append(dst []byte, _ *plan.Op, f *plan.Field) ([]byte, error) {
	var zeros [16]byte
	switch f.Kind {
	case plan.FieldName:
		return xdr.AppendOpaque(dst, f.Opaque()), nil
	case plan.FieldHandle:
		return xdr.AppendOpaque(dst, binary.BigEndian.AppendUint64(nil, uint64(f.Ref))), nil
	case plan.FieldState, plan.FieldSession:
		return append(dst, zeros[:]...), nil
	case plan.FieldClient, plan.FieldVerifier, plan.FieldConfirm, plan.FieldCookie, plan.FieldCookieVerf, plan.FieldCtime:
		return append(dst, zeros[:8]...), nil
	case plan.FieldCreateSeq, plan.FieldSequence, plan.FieldSlot, plan.FieldHighest, plan.FieldSeqid, plan.FieldSvid:
		return append(dst, zeros[:4]...), nil
	case plan.FieldOwnerID, plan.FieldLockHost, plan.FieldLockOwner:
		return append(dst, zeros[:4]...), nil // an empty opaque
	case plan.FieldCallback:
		return append(dst, zeros[:8]...), nil // two of them
	}
	return dst, fmt.Errorf("%w %q", plan.ErrField, f.Kind)
}

// Data implements plan.Resolver: bytes of the right number.
func (a *Arguments) Data(_ *plan.Op, f *plan.Field) ([]byte, error) {
	p := f.Data
	switch {
	case p == nil:
		return nil, nil
	case p.Text != nil:
		return p.Text, nil
	case p.Length > maxData:
		return nil, fmt.Errorf("%d bytes in one call are too many", p.Length)
	}
	if uint64(len(a.zeros)) < uint64(p.Length) {
		a.zeros = make([]byte, p.Length)
	}
	return a.zeros[:p.Length], nil
}
