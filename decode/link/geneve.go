package link

import "encoding/binary"

// decodeGENEVE reads the header of RFC 8926, section 3.4, and passes its
// options.
//
//	+---+-----------+-+-+-----------+-------------------------------+
//	|Ver|  opt len  |O|C| reserved  |         protocol type         |
//	+---+-----------+-+-+-----------+---------------+---------------+
//	|        virtual network identifier (VNI)       |   reserved    |
//	+-----------------------------------------------+---------------+
//	|                  options, 4 * opt len bytes                   |
//
// It reports false if the header is not of version 0 or does not fit the
// datagram.
func decodeGENEVE(data []byte, n int, f *Frame) bool {
	if len(data) < 8 || data[0]>>6 != 0 || data[1]&0x3f != 0 {
		return false
	}
	head := 8 + int(data[0]&0x3f)*4
	if head > n {
		return false
	}
	if !f.enter(Tunnel{Type: GENEVE, HasID: true, ID: binary.BigEndian.Uint32(data[4:]) >> 8}) {
		return true
	}
	if len(data) < head {
		f.Problem = ProblemCutGENEVE
		return true
	}
	f.numbers(data[:8])
	f.geneveOptions(data[8:head])
	decodeBridged(binary.BigEndian.Uint16(data[2:]), data[head:], n-head, f)
	return true
}
