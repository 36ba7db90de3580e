package link

import "encoding/binary"

// decodeNSH reads a network service header (RFC 8300, section 2): version 2, O
// 1, U 1, TTL 6, length 6 in units of 4 bytes; U 4, MD type 4, next protocol 8;
// service path 24, service index 8; context.
func decodeNSH(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 8 {
		return f.stop(ProblemCutNSH)
	}
	head := int(data[1]&0x3f) * 4
	switch {
	case data[0]>>6 != 0:
		return f.stop(ProblemNSHVersion)
	case head < 8 || head > n:
		return f.stop(ProblemNSHLength)
	}
	if !f.enter(Tunnel{Type: NSH, HasID: true, ID: binary.BigEndian.Uint32(data[4:]) >> 8}) {
		return nil, nil, 0
	}
	if head > len(data) {
		return f.stop(ProblemCutNSH)
	}
	f.numbers(data[:8])
	return f.next(data[3], data[head:], n-head)
}
