package session

import (
	"encoding/binary"
	"math"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// sequence is what the first operation of a COMPOUND says about its slot. It is read from the
// bytes, since fully decoding each call as it passes would cost as much as everything else.
type sequence struct {
	session       [16]byte
	slot, highest uint32
	target, flags uint32 // of a reply
}

// words reads XDR. After an error everything is 0, and ok is false.
type words struct {
	b  []byte
	ok bool
}

func (w *words) next() uint32 {
	if len(w.b) < 4 {
		w.b, w.ok = nil, false
		return 0
	}
	v := binary.BigEndian.Uint32(w.b)
	w.b = w.b[4:]
	return v
}

// skip steps over bytes, padded to words.
func (w *words) skip(n uint32) {
	padded := uint64(n) + uint64(-n&3)
	if padded > uint64(len(w.b)) {
		w.b, w.ok = nil, false
		return
	}
	w.b = w.b[padded:]
}

func (w *words) id() (id [16]byte) {
	if len(w.b) < len(id) {
		w.b, w.ok = nil, false
		return id
	}
	copy(id[:], w.b)
	w.b = w.b[len(id):]
	return id
}

// Services of RPCSEC_GSS (RFC 2203, section 5.3.1).
const (
	flavorGSS        = 6
	serviceIntegrity = 2
	servicePrivacy   = 3
)

// guard is how the body of a call is protected.
type guard uint8

const (
	bare guard = iota
	integrity
	private
)

// unwrap skips what integrity protection puts before the body (RFC 2203, section 5.3.2.2).
func (w *words) unwrap(g guard) {
	switch g {
	case integrity:
		w.skip(8)
	case private:
		w.ok = false
	}
}

// body steps over the header of an RPC call.
func (w *words) body() guard {
	w.skip(24) // XID, type, version, program, its version, procedure
	g := bare
	flavor, n := w.next(), w.next()
	if flavor == flavorGSS && len(w.b) >= 16 {
		switch binary.BigEndian.Uint32(w.b[12:]) {
		case serviceIntegrity:
			g = integrity
		case servicePrivacy:
			g = private
		}
	}
	w.skip(n)
	w.next()
	w.skip(w.next())
	w.unwrap(g)
	return g
}

// unknownMinor is the minor version of a call that was not captured so far.
const unknownMinor = math.MaxUint32

// peekCall reads the SEQUENCE, or CB_SEQUENCE, that begins a call. ok is false if there is none; minor and g are
// valid anyway, if there is a body.
func peekCall(b []byte, callback bool) (s sequence, minor uint32, g guard, ok bool) {
	w := words{b, true}
	g = w.body()
	w.skip(w.next()) // tag
	if minor = w.next(); !w.ok {
		minor = unknownMinor
	}
	first := uint32(nfs4.OP_SEQUENCE)
	if callback {
		w.next() // callback_ident
		first = uint32(nfs4.OP_CB_SEQUENCE)
	}
	if w.next() == 0 || w.next() != first {
		return s, minor, g, false
	}
	s.session = w.id()
	w.next() // sequence number
	s.slot, s.highest = w.next(), w.next()
	return s, minor, g, w.ok
}

// results steps over the header of an RPC reply, and to the first result: its operation and status.
func (w *words) results(g guard) (operation, status uint32) {
	w.next()
	if w.next() != 1 || w.next() != 0 { // a reply, accepted
		w.ok = false
	}
	w.next()
	w.skip(w.next())
	if w.next() != 0 { // executed
		w.ok = false
	}
	w.unwrap(g)
	w.next()         // status of all
	w.skip(w.next()) // tag
	if w.next() == 0 {
		w.ok = false
	}
	return w.next(), w.next()
}

// peekReply reads the target of the server.
func peekReply(b []byte, g guard) (s sequence, ok bool) {
	w := words{b, true}
	if op, status := w.results(g); op != uint32(nfs4.OP_SEQUENCE) || status != 0 {
		return s, false
	}
	s.session = w.id()
	w.next()
	s.slot, s.highest, s.target, s.flags = w.next(), w.next(), w.next(), w.next()
	return s, w.ok
}

// peekCreated reads the slots that CREATE_SESSION granted for calls and for callbacks.
func peekCreated(b []byte, g guard) (id [16]byte, slots, back uint32, ok bool) {
	w := words{b, true}
	if op, status := w.results(g); op != uint32(nfs4.OP_CREATE_SESSION) || status != 0 {
		return id, 0, 0, false
	}
	id = w.id()
	w.skip(4 + 4 + 5*4) // sequence, flags; the attributes before the number of requests
	slots = w.next()
	w.skip(4 * min(w.next(), 1)) // RDMA Reads at a time, which are given or not; those of callbacks
	w.skip(5 * 4)
	back = w.next()
	return id, slots, back, w.ok
}
