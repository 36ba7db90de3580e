package link

import "encoding/binary"

// decodeEthernet reads destination 6, source 6, EtherType 2.
func decodeEthernet(data []byte, n int, f *Frame) {
	if len(data) < 14 {
		f.Problem = ProblemCutEthernet
		return
	}
	f.ethernet(data)
	decodeEtherType(binary.BigEndian.Uint16(data[12:]), data[14:], n-14, f)
}
