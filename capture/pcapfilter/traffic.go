package pcapfilter

import (
	"strconv"
	"strings"
)

// Traffic selects the packets of interest for RPC-over-RDMA. The zero value is RoCE of both versions, iWARP
// at its usual port, and everything in tunnels and mirrors: a kernel filter does not look into them.
type Traffic struct {
	// TCPPorts are the ports of iWARP, in either direction; nil means 20049,
	// the port registered for NFS over RDMA (nfsrdma).
	TCPPorts []uint16
	// RPC adds what usually travels beside an RDMA mount over TCP and UDP:
	// rpcbind (111), MOUNT (20048 on Linux) and NFS (2049).
	RPC bool
	// NoTunnels leaves tunnels and mirrors out.
	NoTunnels bool
}

const (
	roceV2Port = 4791 // UDP (IBTA annex A17)
	iwarpPort  = 20049
)

var rpcPorts = []uint16{111, 2049, 20048}

// Carriers of tunnels and mirrors. Package decode/link removes the same ones.
var tunnels = []struct {
	name string
	node node
}{
	{"VXLAN", or{toUDP(4789), toUDP(8472)}},
	{"VXLAN-GPE", toUDP(4790)},
	{"GENEVE", toUDP(6081)},
	{"GRE, NVGRE, ERSPAN", or{ipProto(47), toUDP(4754)}},
	{"TZSP", toUDP(37008)},
	{"IP in IP", or{ipProto(4), ipProto(41)}},
	{"MPLS", or{or{etherType(0x8847), etherType(0x8848)}, or{ipProto(137), toUDP(6635)}}},
	{"PPPoE", etherType(0x8864)},
	{"NSH", etherType(0x894f)},
	{"Cisco metadata", etherType(0x8909)},
	{"802.1ah", etherType(0x88e7)},
	{"VN-tag, E-tag", or{etherType(0x8926), etherType(0x893f)}},
	{"HSR", etherType(0x892f)},
	{"Arista's time", etherType(0xd28b)},
	{"TRILL", etherType(0x22f3)},
	{"FabricPath", etherType(0x8903)},
	{"EtherIP", ipProto(97)},
	{"GTP-U", toUDP(2152)},
	{"MACsec without encryption", and{etherType(0x88e5), clearMACsec{}}},
}

func toUDP(port uint16) node { return and{ipProto(protoUDP), ports{destination, port, port}} }

// Expr is the expression for the traffic. Only the first fragment has port numbers, so all other UDP and TCP
// fragments are taken, over IPv4 and IPv6.
func (t Traffic) Expr() *Expr {
	udp := []uint16{roceV2Port}
	if t.RPC {
		udp = append(udp, rpcPorts...)
	}
	oneOf := func(list []uint16) node {
		var n node = laterFragment{}
		for _, p := range list {
			n = or{ports{either, p, p}, n}
		}
		return n
	}
	all := node(or{etherType(typeRoCEv1), or{
		and{ipProto(protoUDP), oneOf(udp)},
		and{ipProto(protoTCP), oneOf(t.tcp())},
	}})
	if !t.NoTunnels {
		for _, x := range tunnels {
			all = or{all, x.node}
		}
	}
	return &Expr{all}
}

func (t Traffic) tcp() []uint16 {
	list := t.TCPPorts
	if list == nil {
		list = []uint16{iwarpPort}
	}
	if t.RPC {
		list = append(append([]uint16(nil), list...), rpcPorts...)
	}
	return list
}

// Direct names what passes outside of tunnels: "RoCE, TCP port 20049".
func (t Traffic) Direct() string {
	var b strings.Builder
	list := func(what string, ports []uint16) {
		b.WriteString(", " + what + " port")
		if len(ports) > 1 {
			b.WriteString("s")
		}
		for i, p := range ports {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(" " + strconv.Itoa(int(p)))
		}
	}
	b.WriteString("RoCE")
	list("TCP", t.tcp())
	if t.RPC {
		list("UDP", rpcPorts)
	}
	return b.String()
}

// Tunnels names the tunnels that pass; empty if none do.
func (t Traffic) Tunnels() string {
	if t.NoTunnels {
		return ""
	}
	names := make([]string, len(tunnels))
	for i, x := range tunnels {
		names[i] = x.name
	}
	return strings.Join(names, ", ")
}
