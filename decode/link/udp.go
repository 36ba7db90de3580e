package link

import "encoding/binary"

// decodeUDP reads source port 2, destination port 2, length 2, checksum 2 (RFC
// 768). n is the length of the IP payload.
func decodeUDP(data []byte, n int, f *Frame) (header, []byte, int) {
	if n < 8 {
		return f.stop(ProblemShortUDP)
	}
	if len(data) < 8 {
		return f.stop(ProblemCutUDP)
	}
	f.Proto = UDP
	f.SrcPort = binary.BigEndian.Uint16(data)
	f.DstPort = binary.BigEndian.Uint16(data[2:])
	f.Transport = data[:8:8]
	// A jumbogram (RFC 2675) has a length of 0. The IP header overrules an impossible length; a smaller one
	// leaves a trailer that is not part of the datagram.
	if length := int(binary.BigEndian.Uint16(data[4:])); length >= 8 && length < n {
		n = length
	}
	end := min(n, len(data))
	f.Payload = data[8:end:end]
	f.PayloadLen = n - 8
	f.part(PartUDP, f.Transport, f.Payload)
	return f.overUDP()
}
