package session

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Most calls and replies of sessions have everything at fixed places behind what differs in length: the credential of the
// caller, and the tag. It is found with one look at each of these lengths, while words reads one word after the other.

// opening holds the arguments of a COMPOUND behind its tag: the minor version, the number of operations, and the first of
// them. If that is SEQUENCE, its session, sequence number, slot and highest slot follow.
type opening [40]byte

func (o *opening) minor() uint32   { return binary.BigEndian.Uint32(o[0:]) }
func (o *opening) slot() uint32    { return binary.BigEndian.Uint32(o[32:]) }
func (o *opening) highest() uint32 { return binary.BigEndian.Uint32(o[36:]) }
func (o *opening) id() *[16]byte   { return (*[16]byte)(o[12:28]) }
func (o *opening) sequences() bool { return o.first() == uint32(nfs4.OP_SEQUENCE) && o.count() > 0 }
func (o *opening) first() uint32   { return binary.BigEndian.Uint32(o[8:]) }
func (o *opening) count() uint32   { return binary.BigEndian.Uint32(o[4:]) }

// longest is the longest credential, and tag, that openingOf looks behind.
const longest = 1 << 12

// openingOf finds it in a call without RPCSEC_GSS and with an empty verifier. It is nil if it is not there, or not known to be.
func openingOf(b []byte) *opening {
	if len(b) < 32 || binary.BigEndian.Uint32(b[24:]) == flavorGSS {
		return nil
	}
	at := (uint(binary.BigEndian.Uint32(b[28:]))+3)&^3 + 36 // the length of the verifier, and that of the tag
	if at > longest || at+8+uint(len(opening{})) > uint(len(b)) {
		return nil
	}
	lengths := binary.BigEndian.Uint64(b[at : at+8])
	if at += 8; lengths != 0 {
		if lengths > longest { // or a verifier
			return nil
		}
		at += uint(lengths+3) &^ 3
	}
	if end := at + uint(len(opening{})); at < end && end <= uint(len(b)) {
		return (*opening)(b[at:end])
	}
	return nil
}

// answer holds the results of a COMPOUND behind its tag, if they begin with SEQUENCE: the number of results, the operation, its status, and
// the session, sequence number, slot, highest slot and target (RFC 8881, section 18.46).
type answer [44]byte

// target is the highest slot that the server wants to be used.
func (a *answer) target() uint32 { return binary.BigEndian.Uint32(a[40:]) }

// answerOf finds it in a reply without a verifier. It is nil if it is not there, or not known to be, and if the call, or its SEQUENCE, failed.
func answerOf(b []byte) *answer {
	if len(b) < 32 {
		return nil
	}
	if h := (*[32]byte)(b); binary.BigEndian.Uint64(h[4:]) != 1<<32 || binary.BigEndian.Uint64(h[16:]) != 0 {
		return nil
	}
	n := uint(binary.BigEndian.Uint32(b[28:]))
	at := 32 + (n+3)&^3
	end := at + uint(len(answer{}))
	if at >= end || end > uint(len(b)) {
		return nil
	}
	a := (*answer)(b[at:end])
	if binary.BigEndian.Uint32(a[0:]) == 0 || binary.BigEndian.Uint64(a[4:]) != uint64(nfs4.OP_SEQUENCE)<<32 {
		return nil
	}
	return a
}
