package link

import "encoding/binary"

// decodeSLL reads the header of Linux captures on the device "any" (LINKTYPE_LINUX_SLL): packet type 2,
// ARPHRD 2, address length 2, address 8, EtherType 2.
func decodeSLL(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 16 {
		return f.stop(ProblemCutSLL)
	}
	f.numbers(data[:6])
	f.cooked(data[6:14], int(binary.BigEndian.Uint16(data[4:])))
	f.numbers(data[14:16])
	return f.ether(binary.BigEndian.Uint16(data[14:]), data[16:], n-16)
}

// decodeSLL2 reads its successor (LINKTYPE_LINUX_SLL2): EtherType 2, reserved
// 2, interface index 4, ARPHRD 2, packet type 1, address length 1, address 8.
func decodeSLL2(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 20 {
		return f.stop(ProblemCutSLL2)
	}
	f.numbers(data[:12])
	f.cooked(data[12:20], int(data[11]))
	return f.ether(binary.BigEndian.Uint16(data), data[20:], n-20)
}

// decodeNull reads the header of BSD loopback captures: an address family, in the byte order of the capturing
// host (LINKTYPE_NULL) or of the network (LINKTYPE_LOOP). All values are below 256, so the order is evident.
func decodeNull(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 4 {
		return f.stop(ProblemCutLoopback)
	}
	family := binary.LittleEndian.Uint32(data)
	if family > 0xffff {
		family = binary.BigEndian.Uint32(data)
	}
	switch family {
	case 2:
		f.numbers(data[:4])
		return decodeIPv4, data[4:], n - 4
	case 10, 23, 24, 28, 30: // AF_INET6 of Linux, Windows, NetBSD and OpenBSD, FreeBSD, Darwin
		f.numbers(data[:4])
		return decodeIPv6, data[4:], n - 4
	}
	return f.unknown(FamilyLayer, family, data[4:], n-4)
}
