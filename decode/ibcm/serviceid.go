package ibcm

// ServiceID names what a connection request wants to be connected with.
type ServiceID uint64

// IP addressed services (IBTA annex A11) have these service ids.
const (
	ipServicePrefix = 0x0000000001000000
	ipServiceMask   = 0xffffffffff000000
)

// IPServiceID is the service id of a port of an IP protocol (6 is TCP).
func IPServiceID(protocol uint8, port uint16) ServiceID {
	return ipServicePrefix | ServiceID(protocol)<<16 | ServiceID(port)
}

// IP returns the IP protocol and the port that s stands for, if it is an IP
// addressed service. NFS over RDMA is protocol 6, port 20049.
func (s ServiceID) IP() (protocol uint8, port uint16, ok bool) {
	if s&ipServiceMask != ipServicePrefix {
		return 0, 0, false
	}
	return uint8(s >> 16), uint16(s), true
}
