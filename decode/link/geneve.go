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
// The header must be of version 0 and fit the datagram.
func decodeGENEVE(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 8 || data[0]>>6 != 0 || data[1]&0x3f != 0 {
		return nil, nil, 0
	}
	head := 8 + int(data[0]&0x3f)*4
	if head > n {
		return nil, nil, 0
	}
	if !f.enter(Tunnel{Type: GENEVE, HasID: true, ID: binary.BigEndian.Uint32(data[4:]) >> 8}) {
		return nil, nil, 0
	}
	if len(data) < head {
		return f.stop(ProblemCutGENEVE)
	}
	f.numbers(data[:8])
	f.geneveOptions(data[8:head])
	return f.bridged(binary.BigEndian.Uint16(data[2:]), data[head:], n-head)
}
