package link

import "encoding/binary"

// decodeTCP reads a TCP header (RFC 9293): source port 2, destination port 2,
// sequence number 4, acknowledgment number 4, data offset and flags 2, window
// 2, checksum 2, urgent pointer 2, options. n is the length of the IP payload.
func decodeTCP(data []byte, n int, f *Frame) {
	if n < 20 {
		f.Problem = "IP payload shorter than a TCP header"
		return
	}
	if len(data) < 20 {
		f.Problem = "TCP header cut"
		return
	}
	head := int(data[12]>>4) * 4
	if head < 20 || head > n {
		f.Problem = "bad TCP data offset"
		return
	}
	f.Proto = TCP
	f.SrcPort = binary.BigEndian.Uint16(data)
	f.DstPort = binary.BigEndian.Uint16(data[2:])
	f.TCPSeq = binary.BigEndian.Uint32(data[4:])
	f.TCPAck = binary.BigEndian.Uint32(data[8:])
	f.TCPFlags = data[13]
	end := min(n, len(data))
	cut := min(head, end) // the capture may end within the options
	f.Transport = data[:cut:cut]
	f.Payload = data[cut:end:end]
	f.PayloadLen = n - head
	f.HasTimestamps = false
	if cut >= 32 {
		f.timestamps(data[20:cut])
	}
}

// timestamps looks for the timestamps option (RFC 7323, section 3.2): kind 8,
// length 10, value 4, echo reply 4. Hosts put two no-operations before it, as
// the appendix of the RFC recommends, and nothing else.
func (f *Frame) timestamps(options []byte) {
	for len(options) >= 10 {
		switch kind := options[0]; {
		case kind == 1:
			options = options[1:]
			continue
		case kind == 0:
			return
		case kind == 8 && options[1] == 10:
			f.HasTimestamps = true
			f.TSVal = binary.BigEndian.Uint32(options[2:])
			f.TSEcr = binary.BigEndian.Uint32(options[6:])
			return
		}
		n := int(options[1])
		if n < 2 || n > len(options) {
			return
		}
		options = options[n:]
	}
}
