package link

import "encoding/binary"

// decodeTCP reads a TCP header (RFC 9293): source port 2, destination port 2,
// sequence number 4, acknowledgment number 4, data offset and flags 2, window
// 2, checksum 2, urgent pointer 2, options. n is the length of the IP payload.
func decodeTCP(data []byte, n int, f *Frame) (header, []byte, int) {
	if n < 20 {
		return f.stop(ProblemShortTCP)
	}
	if len(data) < 20 {
		return f.stop(ProblemCutTCP)
	}
	head := int(data[12]>>4) * 4
	if head < 20 || head > n {
		return f.stop(ProblemTCPOffset)
	}
	f.Proto = TCP
	f.SrcPort = binary.BigEndian.Uint16(data)
	f.DstPort = binary.BigEndian.Uint16(data[2:])
	f.TCPSeq = binary.BigEndian.Uint32(data[4:])
	f.TCPAck = binary.BigEndian.Uint32(data[8:])
	f.TCPFlags = data[13]
	f.TCPWindow = binary.BigEndian.Uint16(data[14:])
	end := min(n, len(data))
	cut := min(head, end) // the capture may end within the options
	f.Transport = data[:cut:cut]
	f.Payload = data[cut:end:end]
	f.PayloadLen = n - head
	f.part(PartTCP, f.Transport, f.Payload)
	f.HasTimestamps, f.DSACK = false, false
	if cut >= 32 {
		f.options(data[20:cut])
	}
	return nil, nil, 0
}

// options looks for the options that distinguish copies of a segment: timestamps (RFC 7323, section 3.2: kind
// 8, length 10, value 4, echo reply 4) and selective acknowledgments (RFC 2018: kind 5, then blocks of left
// and right edge, 4 bytes each). A first block below the acknowledgment number reports duplicate data (RFC
// 2883, section 4).
func (f *Frame) options(b []byte) {
	for len(b) >= 2 {
		kind := b[0]
		if kind == 0 {
			return
		}
		if kind == 1 {
			b = b[1:]
			continue
		}
		n := int(b[1])
		if n < 2 || n > len(b) {
			return
		}
		switch {
		case kind == 8 && n == 10:
			f.HasTimestamps = true
			f.TSVal = binary.BigEndian.Uint32(b[2:])
			f.TSEcr = binary.BigEndian.Uint32(b[6:])
		case kind == 5 && n >= 10:
			right := binary.BigEndian.Uint32(b[6:])
			f.DSACK = int32(right-f.TCPAck) <= 0
		}
		b = b[n:]
	}
}
