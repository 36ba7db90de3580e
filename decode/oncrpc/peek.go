package oncrpc

import "encoding/binary"

// Message is what Peek reads of an RPC message.
type Message struct {
	XID  uint32
	Type MsgType
	// Program, Version and Procedure are set for calls.
	Program, Version, Procedure uint32
}

// Peek reads the start of a message: eight bytes of a reply, 24 of a call. It
// fails if fewer were captured, or if b is not an RPC message of version 2.
func Peek(b []byte) (m Message, ok bool) {
	if len(b) < 8 {
		return m, false
	}
	m.XID = binary.BigEndian.Uint32(b)
	m.Type = MsgType(binary.BigEndian.Uint32(b[4:]))
	if m.Type == TypeReply {
		return m, true
	}
	if m.Type != TypeCall || len(b) < callFixed || binary.BigEndian.Uint32(b[8:]) != Version {
		return m, false
	}
	m.Program = binary.BigEndian.Uint32(b[12:])
	m.Version = binary.BigEndian.Uint32(b[16:])
	m.Procedure = binary.BigEndian.Uint32(b[20:])
	return m, true
}

// Bounds of what Plausible accepts. Programs below 100000 and from 0x60000000 on are not assigned (RFC 5531,
// section 8.3, and the IANA registry); no known program has more versions or procedures.
const (
	minProgram   = 100000
	endProgram   = 0x60000000
	maxVersion   = 1024
	maxProcedure = 1024
	minCall      = callFixed + 16
	minReply     = 20 // denied with AuthError
	minAccepted  = 24
)

// minPlausible is how many bytes of a message Plausible wants to see.
const minPlausible = minReply

// Plausible reports whether b, the captured part of a message of full bytes,
// looks like an RPC call or reply. It looks at every word of the header that
// is there and wants at least 20 bytes, so that random data and the headers
// of other protocols do not pass.
func Plausible(b []byte, full int) bool {
	if full < len(b) {
		full = len(b)
	}
	if len(b) < minPlausible {
		return false
	}
	switch MsgType(binary.BigEndian.Uint32(b[4:])) {
	case TypeCall:
		return plausibleCall(b, full)
	case TypeReply:
		return plausibleReply(b, full)
	}
	return false
}

func plausibleCall(b []byte, full int) bool {
	if full < minCall || binary.BigEndian.Uint32(b[8:]) != Version {
		return false
	}
	if p := binary.BigEndian.Uint32(b[12:]); p < minProgram || p >= endProgram {
		return false
	}
	if binary.BigEndian.Uint32(b[16:]) > maxVersion {
		return false
	}
	if len(b) >= 24 && binary.BigEndian.Uint32(b[20:]) > maxProcedure {
		return false
	}
	off, ok := plausibleAuth(b, callFixed, full)
	if !ok || off < 0 {
		return ok
	}
	_, ok = plausibleAuth(b, off, full)
	return ok
}

func plausibleReply(b []byte, full int) bool {
	switch ReplyStat(binary.BigEndian.Uint32(b[8:])) {
	case Accepted:
		if full < minAccepted {
			return false
		}
		off, ok := plausibleAuth(b, replyFixed, full)
		if !ok || off < 0 {
			return ok
		}
		if off > full-4 {
			return false
		}
		if off > len(b)-4 {
			return true
		}
		stat := AcceptStat(binary.BigEndian.Uint32(b[off:]))
		if stat == ProgMismatch && full-off < 12 {
			return false // mismatch_info follows: RFC 5531 section 9
		}
		return stat <= SystemErr
	case Denied:
		switch RejectStat(binary.BigEndian.Uint32(b[12:])) {
		case RPCMismatch:
			return full == 24
		case AuthError:
			return full == 20 && binary.BigEndian.Uint32(b[16:]) < uint32(len(authStatNames))
		}
	}
	return false
}

// plausibleAuth checks the opaque_auth at off and returns the offset after it, -1 if the capture ends before.
func plausibleAuth(b []byte, off, full int) (int, bool) {
	if off > full-8 {
		return 0, false
	}
	if off > len(b)-4 {
		return -1, true
	}
	if binary.BigEndian.Uint32(b[off:]) > uint32(AuthTLS) {
		return 0, false
	}
	if off > len(b)-8 {
		return -1, true
	}
	n := binary.BigEndian.Uint32(b[off+4:])
	if n > maxAuth {
		return 0, false
	}
	off += 8 + (int(n)+3)&^3
	return off, off <= full
}

// PlausibleDatagram reports whether the payload of a UDP datagram of full
// bytes, captured in b, looks like an RPC message: over UDP a datagram is a
// message. All XDR items are multiples of four bytes long.
func PlausibleDatagram(b []byte, full int) bool {
	if full < len(b) {
		full = len(b)
	}
	return full&3 == 0 && Plausible(b, full)
}
