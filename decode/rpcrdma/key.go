package rpcrdma

// The encoding key writes down the shape of chunk lists word by word, as the
// documents on RPC-over-RDMA do: 0 and 1 are discriminators, P a position, N a
// count, and HLOO a segment (handle, length, and an offset of two words).

// AppendReadKey appends the key of a Read list: "0" if it is empty,
// "1 - PHLOO - 0" if it has one segment.
func AppendReadKey(b []byte, list []ReadSegment) []byte {
	for range list {
		b = append(b, "1 - PHLOO - "...)
	}
	return append(b, '0')
}

// AppendWriteKey appends the key of a Write list: "0" if it is empty,
// "1 - N - HLOO - 0" if it has one chunk of one segment.
func AppendWriteKey(b []byte, list []WriteChunk) []byte {
	for _, c := range list {
		b = append(b, "1 - N - "...)
		for range c {
			b = append(b, "HLOO - "...)
		}
	}
	return append(b, '0')
}

// AppendReplyKey appends the key of a Reply chunk: "0" if there is none,
// "1 - N - HLOO" if it has one segment.
func (h *Header) AppendReplyKey(b []byte) []byte {
	if !h.HasReply {
		return append(b, '0')
	}
	b = append(b, "1 - N"...)
	for range h.Reply {
		b = append(b, " - HLOO"...)
	}
	return b
}

// AppendKey appends the keys of the Read list, the Write list and the Reply
// chunk, separated by "; ". Version 0 has only the first; version 2 has the
// Call chunk before them, if there is one. Nothing is appended for messages
// without lists.
func (h *Header) AppendKey(b []byte) []byte {
	if !h.hasLists() {
		return b
	}
	if len(h.Call) > 0 {
		b = AppendReadKey(b, h.Call)
		b = append(b, "; "...)
	}
	b = AppendReadKey(b, h.Reads)
	if h.Version == Version0 {
		return b
	}
	b = append(b, "; "...)
	b = AppendWriteKey(b, h.Writes)
	b = append(b, "; "...)
	return h.AppendReplyKey(b)
}

// Key is AppendKey as a string.
func (h *Header) Key() string { return string(h.AppendKey(nil)) }

func (h *Header) hasLists() bool {
	switch h.Version {
	case Version2:
		return h.Type.parts2() != parts2{} && !h.Type.middle2()
	case Version0, Version1:
		return h.Type <= TypeMsgP
	}
	return false
}
