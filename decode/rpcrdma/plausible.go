package rpcrdma

import "encoding/binary"

// minMessage is the smallest message of version 1 that carries lists: the
// fixed part and three empty lists.
const minMessage = 28

// maxError is the largest size that is believed of an RDMA_ERROR or RDMA_DONE
// message. They have 16, 20 or 28 bytes; some room is left for senders that
// add empty lists.
const maxError = 64

const (
	maxVersion = 16  // no responder is believed to support it, or a later one
	maxEchoed  = 256 // no call of that version is believed
)

// Plausible reports whether b, the captured part of a message of full bytes, looks like a message of version
// 1. It is strict enough for any Send of an unknown connection, cheap, and allocates nothing. If the capture
// cut the message, the captured part decides.
//
// Breaches of the protocol that a receiver would still understand do not count against a message, so that
// they can be reported.
func Plausible(b []byte, full int) bool {
	if len(b) < minMessage+8 || !chunkless(b) {
		return plausible(b, full)
	}
	f := (*[minMessage + 8]byte)(b)
	return binary.LittleEndian.Uint32(f[28:]) == binary.LittleEndian.Uint32(f[:]) && binary.BigEndian.Uint32(f[32:]) <= 1
}

// plausible is Plausible for all messages but those that chunkless accepts, and with any that are cut.
func plausible(b []byte, full int) bool {
	if full < len(b) {
		full = len(b)
	}
	if len(b) < fixedLength {
		return false
	}
	xid := binary.BigEndian.Uint32(b)
	vers := binary.BigEndian.Uint32(b[4:])
	proc := Type(binary.BigEndian.Uint32(b[12:]))
	if proc == TypeError {
		return plausibleError(b, full, vers)
	}
	if vers != Version1 {
		return false
	}
	off := fixedLength
	switch proc {
	case TypeMsg, TypeNoMsg:
	case TypeMsgP:
		off += 8
	case TypeDone:
		return full <= maxError
	default:
		return false
	}
	if full < off+minMessage-fixedLength {
		return false
	}
	s := scanner{b: b, off: off, full: full}
	if !s.reads() || !s.writes() || !s.reply() {
		return s.cut
	}
	if proc == TypeNoMsg {
		return true
	}
	return s.inline(xid)
}

// PlausibleCut reports whether b, the captured part of a message of full bytes
// that the capture cut within its first 16, may be a message of version 1. Each
// is a multiple of four bytes long. sure is false if even the version was cut:
// then little speaks for it but an answer with the same XID.
func PlausibleCut(b []byte, full int) (may, sure bool) {
	if len(b) < 4 || len(b) >= fixedLength || full <= len(b) || full&3 != 0 || full < fixedLength || binary.BigEndian.Uint32(b) == 0 {
		return false, false
	}
	if len(b) >= 8 {
		// No implementation asks for 65536 credits.
		return binary.BigEndian.Uint32(b[4:]) == Version1 && (len(b) < 10 || b[8]|b[9] == 0), true
	}
	for _, c := range b[4:] {
		if c != 0 {
			return false, false
		}
	}
	return len(b) > 4, false
}

// plausibleError checks an RDMA_ERROR. A responder may echo the version that it does not support, so that
// ERR_VERS comes with any version.
func plausibleError(b []byte, full int, vers uint32) bool {
	if full < fixedLength+4 || full > maxError || len(b) < fixedLength+4 {
		return false
	}
	switch ErrorCode(binary.BigEndian.Uint32(b[16:])) {
	case ErrVers:
		if full < 28 || len(b) < 28 {
			return false
		}
		low := binary.BigEndian.Uint32(b[20:])
		high := binary.BigEndian.Uint32(b[24:])
		return low <= high && high < maxVersion && vers < maxEchoed
	case ErrChunk:
		return vers == Version1
	}
	return false
}

// PlausibleV0 reports whether b looks like a message of version 0 in either
// dialect. Its headers are short, so ask only about connections that are known
// to carry RPC, or that Plausible has rejected.
func PlausibleV0(b []byte, full int) bool {
	if full < len(b) {
		full = len(b)
	}
	if len(b) < fixedLength0 || binary.BigEndian.Uint32(b[4:]) != Version0 {
		return false
	}
	xid := binary.BigEndian.Uint32(b)
	proc := binary.BigEndian.Uint32(b[8:])
	if full == fixedLength0 {
		return xid != 0 && (proc == doneCallaghan || proc == uint32(TypeDone))
	}
	if xid == 0 || proc > uint32(TypeMsgP) {
		// A run of zeros would be a message otherwise.
		return false
	}
	// The lists of both versions take the same number of words.
	s := scanner{b: b, off: fixedLength0, full: full}
	if !s.reads() {
		return s.cut
	}
	if s.off == full {
		return s.entries > 0
	}
	if Type(proc) == TypeNoMsg {
		return false
	}
	return s.inline(xid)
}

// PlausibleV2 reports whether b looks like a message of the draft of version 2.
func PlausibleV2(b []byte, full int) bool {
	if full < len(b) {
		full = len(b)
	}
	if len(b) < fixedLength || binary.BigEndian.Uint32(b[4:]) != Version2 {
		return false
	}
	t := Type(binary.BigEndian.Uint32(b[12:]))
	s := scanner{b: b, off: fixedLength, full: full}
	switch t {
	case TypeError:
		return full <= maxError && len(b) >= fixedLength+4 &&
			error2Name(ErrorCode(binary.BigEndian.Uint32(b[16:]))) != ""
	case TypeGrant:
		return full == fixedLength
	case TypeConnPropMiddle, TypeConnPropFinal:
		return len(b) >= fixedLength+4 &&
			uint64(binary.BigEndian.Uint32(b[16:])) <= uint64(full-fixedLength-4)/minPropertySize
	case TypeCallMiddle, TypeReplyMiddle:
		return full >= fixedLength+8
	}
	if t < TypeError || t > TypeReplyInline {
		return false
	}
	parts := t.parts2()
	if parts.word {
		s.off += 4
	}
	if parts.call && !s.reads() || parts.reads && !s.reads() ||
		parts.writes && !s.writes() || parts.reply && !s.reply() {
		return s.cut
	}
	if t == TypeCallInline || t == TypeReplyInline {
		return s.inline(binary.BigEndian.Uint32(b))
	}
	return s.off == full
}

// scanner steps over chunk lists without storing them.
type scanner struct {
	b         []byte
	off, full int
	entries   int
	cut       bool // the capture ended; nothing was wrong before
}

// word reads the next word; ok is false at the end of the capture or message.
func (s *scanner) word() (v uint32, ok bool) {
	if s.off > len(s.b)-4 {
		s.cut = s.off <= s.full-4 && s.full > len(s.b)
		return 0, false
	}
	v = binary.BigEndian.Uint32(s.b[s.off:])
	s.off += 4
	return v, true
}

func (s *scanner) reads() bool {
	for {
		v, ok := s.word()
		if !ok || v > 1 {
			return false
		}
		if v == 0 {
			return true
		}
		s.entries++
		s.off += readEntrySize - 4
	}
}

func (s *scanner) writes() bool {
	for {
		v, ok := s.word()
		if !ok || v > 1 {
			return false
		}
		if v == 0 {
			return true
		}
		if !s.array() {
			return false
		}
	}
}

func (s *scanner) reply() bool {
	v, ok := s.word()
	if !ok || v > 1 {
		return false
	}
	return v == 0 || s.array()
}

func (s *scanner) array() bool {
	n, ok := s.word()
	if !ok || uint64(n) > uint64(s.full-s.off)/segmentSize {
		return false
	}
	s.entries += int(n)
	s.off += int(n) * segmentSize
	return true
}

// inline checks the RPC message that follows the lists: its XID equals the header's (RFC 8166, section
// 4.2.1) and it is a call or a reply.
func (s *scanner) inline(xid uint32) bool {
	if s.off == s.full {
		// No message: wrong, but to be reported if there are chunks.
		return s.entries > 0
	}
	v, ok := s.word()
	if !ok {
		return s.cut
	}
	if v != xid {
		return false
	}
	if v, ok = s.word(); !ok {
		return s.cut
	}
	return v <= 1
}
