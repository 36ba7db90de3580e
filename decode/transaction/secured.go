package transaction

import "encoding/binary"

// A client that sends a call of RPCSEC_GSS once more gives it a new sequence number (RFC 2203, section 5.3.3.1). The credential, the verifier, and
// the arguments if they are protected, have other bytes then. Which of the copies a reply answers is told by its verifier alone, so each copy
// is a transaction of its own.

// Offsets in a call (RFC 5531, section 9) whose credential is of RPCSEC_GSS (RFC 2203, section 5.3.1).
const (
	credAt     = 24 // flavor, length
	gssAt      = 32 // version, procedure
	sequenceAt = 40
	serviceAt  = 44 // and the handle

	secGSS = 6 // the flavor
	data   = 0 // the procedure
)

// Services of RPCSEC_GSS that hide what two copies have in common (RFC 2203, section 5.3.1).
const (
	integrity = 2
	privacy   = 3
)

// sameSecured reports whether two RPC messages of length bytes, of which a and b were captured, are copies of one call of RPCSEC_GSS with
// different sequence numbers: everything that a sequence number does not change is equal, as far as it can be seen.
func sameSecured(a, b []byte, length int) bool {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	if n < serviceAt || string(a[:sequenceAt]) != string(b[:sequenceAt]) || string(a[sequenceAt:serviceAt]) == string(b[sequenceAt:serviceAt]) ||
		binary.BigEndian.Uint32(a[credAt:]) != secGSS || binary.BigEndian.Uint32(a[gssAt+4:]) != data {
		return false
	}
	verifier, ok := opaqueEnd(a, credAt+4, length)
	if !ok || verifier < serviceAt+4 || n < verifier+8 || string(a[serviceAt:verifier+8]) != string(b[serviceAt:verifier+8]) {
		return false
	}
	args, ok := opaqueEnd(a, verifier+4, length)
	if !ok {
		return false
	}
	end := n
	switch binary.BigEndian.Uint32(a[serviceAt:]) {
	case privacy:
		return true
	case integrity: // the length, then the sequence number and the arguments, then a checksum
		if n < args+4 {
			return true
		}
		if end, ok = opaqueEnd(a, args, length); !ok || string(a[args:args+4]) != string(b[args:args+4]) {
			return false
		}
		args, end = args+8, min(end, n)
	}
	return args >= end || string(a[args:end]) == string(b[args:end])
}

// opaqueEnd is where the opaque of variable length ends whose length is at off of b, which was captured. The message has length bytes.
func opaqueEnd(b []byte, off, length int) (end int, ok bool) {
	n := (uint64(binary.BigEndian.Uint32(b[off:])) + 3) &^ 3
	if n > uint64(length-off-4) {
		return 0, false
	}
	return off + 4 + int(n), true
}
