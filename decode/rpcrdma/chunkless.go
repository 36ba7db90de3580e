package rpcrdma

import "encoding/binary"

// Chunkless recognises what nearly all messages are: an RPC call or reply behind a header of version 1 without chunks, with the
// same XID in both. message is msg_type of RFC 5531: 0 for a call, 1 for a reply. What Chunkless accepts is Plausible, and Decode
// finds no error in it.
func Chunkless(b []byte) (xid, message uint32, ok bool) {
	if len(b) < minMessage+8 {
		return 0, 0, false
	}
	h := (*[minMessage + 8]byte)(b)
	xid = binary.BigEndian.Uint32(h[0:])
	message = binary.BigEndian.Uint32(h[32:])
	ok = binary.BigEndian.Uint32(h[4:]) == Version1 &&
		binary.LittleEndian.Uint64(h[12:])|binary.LittleEndian.Uint64(h[20:]) == uint64(TypeMsg) &&
		binary.BigEndian.Uint32(h[28:]) == xid && message <= 1
	return xid, message, ok
}

// DecodeChunkless is Decode for a message that Chunkless has accepted.
func (h *Header) DecodeChunkless(b []byte, full int) { h.decodeChunkless(b, max(full, len(b))) }
