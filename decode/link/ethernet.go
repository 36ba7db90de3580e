package link

import "encoding/binary"

// decodeEthernet reads destination 6, source 6, EtherType 2.
func decodeEthernet(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 14 {
		return f.stop(ProblemCutEthernet)
	}
	f.ethernet(data)
	return f.ether(binary.BigEndian.Uint16(data[12:]), data[14:], n-14)
}
