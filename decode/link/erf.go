package link

// Record types of ERF that are understood.
const (
	erfEthernet          = 2
	erfColorEthernet     = 11
	erfDSMEthernet       = 16
	erfColorHashEthernet = 20
	erfInfiniBand        = 21
	erfIPv4              = 22
	erfIPv6              = 23
)

// maxERFExtensions bounds the extension headers that are followed.
const maxERFExtensions = 16

// decodeERF reads the header of Endace's extensible record format, in which
// InfiniBand dumps come as well: timestamp 8, type 1, flags 1, record length 2,
// loss counter 2, wire length 2. The top bit of the type says that extension
// headers of 8 bytes follow, the top bit of each that another does.
//
// Type 25 is for link packets of InfiniBand (flow control): nothing of
// interest.
func decodeERF(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 16 {
		return f.stop(ProblemCutERF)
	}
	typ, more := data[8]&0x7f, data[8]&0x80 != 0
	f.numbers(data[:16])
	data, n = data[16:], n-16
	for i := 0; more; i++ {
		if len(data) < 8 {
			return f.stop(ProblemCutERFExtension)
		}
		if i == maxERFExtensions {
			return f.stop(ProblemManyERFExtensions)
		}
		more = data[0]&0x80 != 0
		f.numbers(data[:1])
		data, n = data[8:], n-8
	}
	switch typ {
	case erfEthernet, erfColorEthernet, erfDSMEthernet, erfColorHashEthernet:
		if len(data) < 2 { // offset and pad
			return f.stop(ProblemCutERF)
		}
		f.numbers(data[:2])
		return decodeEthernet, data[2:], n - 2
	case erfInfiniBand:
		return decodeLRH, data, n
	case erfIPv4, erfIPv6:
		return decodeIP, data, n
	}
	return f.unknown(ERFLayer, uint32(typ), data, n)
}
