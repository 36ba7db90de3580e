package pcapfilter

// Traffic says what packets are of interest for RPC-over-RDMA. The zero value
// is RoCE of both versions and iWARP at its usual port.
type Traffic struct {
	// TCPPorts are the ports of iWARP, in either direction; nil means 20049,
	// the port registered for NFS over RDMA (nfsrdma).
	TCPPorts []uint16
	// RPC adds what usually travels beside an RDMA mount over TCP and UDP:
	// rpcbind (111), MOUNT (20048 on Linux) and NFS (2049).
	RPC bool
}

const (
	roceV2Port = 4791 // UDP (IBTA annex A17)
	iwarpPort  = 20049
)

var rpcPorts = []uint16{111, 2049, 20048}

// Expr is the expression for the traffic. Fragments but the first name no
// port: all those of UDP and TCP are taken, over IPv4 and IPv6.
func (t Traffic) Expr() *Expr {
	tcp := t.TCPPorts
	if tcp == nil {
		tcp = []uint16{iwarpPort}
	}
	udp := []uint16{roceV2Port}
	if t.RPC {
		tcp = append(append([]uint16(nil), tcp...), rpcPorts...)
		udp = append(udp, rpcPorts...)
	}
	oneOf := func(list []uint16) node {
		var n node = laterFragment{}
		for _, p := range list {
			n = or{ports{either, p, p}, n}
		}
		return n
	}
	return &Expr{or{etherType(typeRoCEv1), or{
		and{ipProto(protoUDP), oneOf(udp)},
		and{ipProto(protoTCP), oneOf(tcp)},
	}}}
}
