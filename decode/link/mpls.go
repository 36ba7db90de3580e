package link

import "encoding/binary"

// maxLabels bounds the MPLS labels that are skipped. More than ten are unheard of.
const maxLabels = 16

// decodeMPLS reads a label stack (RFC 3032): label 20, traffic class 3, bottom
// of stack 1, TTL 8, until the bottom. Nothing says what follows: an IP packet
// begins with its version; a pseudowire that carries Ethernet has a control
// word that begins with 0 (RFC 4385, section 3), or none.
func decodeMPLS(data []byte, n int, f *Frame) (header, []byte, int) {
	var label uint32
	stack := data
	for i := 0; ; i++ {
		if len(data) < 4 {
			return f.stop(ProblemCutMPLS)
		}
		if i == maxLabels {
			return f.stop(ProblemManyMPLS)
		}
		entry := binary.BigEndian.Uint32(data)
		data, n = data[4:], n-4
		if entry&0x100 != 0 {
			label = entry >> 12
			break
		}
	}
	if !f.enter(Tunnel{Type: MPLS, HasID: true, ID: label}) {
		return nil, nil, 0
	}
	f.numbers(stack[:len(stack)-len(data)])
	switch {
	case len(data) == 0:
		return f.stop(ProblemCutMPLSPayload)
	case plausibleIP(data, n):
		return decodeIP, data, n
	case data[0]>>4 == 0 && len(data) >= 4 && (plausibleEthernet(data[4:]) || !plausibleEthernet(data)):
		f.numbers(data[:4])
		return decodeEthernet, data[4:], n - 4
	case data[0]>>4 == 1 && !plausibleEthernet(data): // associated channel (RFC 4385, section 5)
		return f.unknown(EtherLayer, 0x8902, data, n) // what it carries is operation and maintenance
	}
	return decodeEthernet, data, n
}

// plausibleIP reports whether data begins with an IP header that fits n bytes. The first byte alone is not
// enough: an Ethernet address may begin with 4 or 6.
func plausibleIP(data []byte, n int) bool {
	switch data[0] >> 4 {
	case 4:
		if len(data) < 4 || data[0]&0x0f < 5 {
			return false
		}
		total := int(binary.BigEndian.Uint16(data[2:]))
		return total == 0 || total >= 20 && total <= n
	case 6:
		if len(data) < 6 {
			return false
		}
		return 40+int(binary.BigEndian.Uint16(data[4:])) <= n
	}
	return false
}

// plausibleEthernet reports whether data begins with an Ethernet header of a type that Decode follows or
// knows by name.
func plausibleEthernet(data []byte) bool {
	if len(data) < 14 {
		return false
	}
	t := binary.BigEndian.Uint16(data[12:])
	return etherHeader(t) != nil || etherNames[t] != ""
}
