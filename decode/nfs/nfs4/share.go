package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// ShareAccess4 is the share_access of OPEN and what WANT_DELEGATION wants. It
// is not a plain mask: since NFSv4.1 bits 8 to 15 hold a number (RFC 5661,
// section 18.16.3).
type ShareAccess4 uint32

var shareWants = [...]string{"", "WANT_READ_DELEG", "WANT_WRITE_DELEG", "WANT_ANY_DELEG", "WANT_NO_DELEG", "WANT_CANCEL"}

var shareFlags = []xdr.Flag{
	{Mask: OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL, Name: "OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL"},
	{Mask: OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED, Name: "OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED"},
	{Mask: OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS, Name: "OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS"},
	{Mask: OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION, Name: "OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION"},
}

// Symbols names what is set, joined with "|".
func (a ShareAccess4) Symbols() string {
	s := ""
	switch a & OPEN4_SHARE_ACCESS_BOTH {
	case OPEN4_SHARE_ACCESS_READ:
		s = "OPEN4_SHARE_ACCESS_READ"
	case OPEN4_SHARE_ACCESS_WRITE:
		s = "OPEN4_SHARE_ACCESS_WRITE"
	case OPEN4_SHARE_ACCESS_BOTH:
		s = "OPEN4_SHARE_ACCESS_BOTH"
	}
	if want := nameOf(shareWants[:], uint32(a&OPEN4_SHARE_ACCESS_WANT_DELEG_MASK)>>8); want != "" {
		s = join(s, "OPEN4_SHARE_ACCESS_"+want)
	}
	return join(s, xdr.FlagNames(uint64(a), shareFlags))
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "|" + b
}

// Decode refills a.
func (a *ShareAccess4) Decode(r *xdr.Reader) { *a = ShareAccess4(r.Uint32()) }

// Skip passes over a number.
func (*ShareAccess4) Skip(_ *xdr.Reader, off uint) uint { return off + 4 }

// Redact copies a number.
func (*ShareAccess4) Redact(x *xdr.Redactor) { x.Numbers(4) }

// Append appends a in XDR.
func (a ShareAccess4) Append(b []byte) []byte { return xdr.AppendUint32(b, uint32(a)) }

// EncodedSize is 4.
func (a ShareAccess4) EncodedSize() int { return 4 }

// WalkField visits a as a mask.
func (a ShareAccess4) WalkField(v xdr.Visitor, field string) {
	v.Flags(field, uint64(a), a.Symbols())
}

// Stateid is the state id of the delegation; nil if there is none.
func (t *OpenDelegation4) Stateid() *Stateid4 {
	switch t.DelegationType {
	case OPEN_DELEGATE_READ, OPEN_DELEGATE_READ_ATTRS_DELEG:
		return &t.Read.Stateid
	case OPEN_DELEGATE_WRITE, OPEN_DELEGATE_WRITE_ATTRS_DELEG:
		return &t.Write.Stateid
	default:
		return nil
	}
}
