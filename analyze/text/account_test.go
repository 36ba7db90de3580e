package text

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

func TestAccount(t *testing.T) {
	roce := decode.Kind{Class: decode.ClassRDMA, Fabric: rdma.RoCEv2, Tunnel: link.VXLAN}
	arp := decode.Kind{Class: decode.ClassUnknown, Unknown: link.Unknown{Layer: link.EtherLayer, Value: 0x0806}}
	wifi := decode.Kind{Class: decode.ClassUnknown, Unknown: link.Unknown{Layer: link.LinkLayer, Value: 105}}
	for _, c := range []struct {
		account decode.Account
		want    string
	}{
		{decode.Account{}, "0 packets, no RPC"},
		{decode.Account{Packets: 281, Kinds: []decode.Count{{Kind: roce, Packets: 281}}, Services: []decode.Service{{Fabric: rdma.RoCEv2, Port: 4420}}},
			"281 packets: 281 RoCEv2 in vxlan, no RPC; services: NVMe-oF (4420)"},
		{decode.Account{Packets: 1, Kinds: []decode.Count{{Kind: wifi, Packets: 1}}}, "1 packet: 1 unsupported link type 105 (IEEE802_11), no RPC"},
		{decode.Account{Packets: 9, Transactions: 1, Kinds: []decode.Count{
			{Kind: decode.Kind{Class: decode.ClassRPC, Fabric: rdma.TCP}, Packets: 3},
			{Kind: decode.Kind{Class: decode.ClassIWARP}, Packets: 2},
			{Kind: decode.Kind{Class: decode.ClassTCP, Port: 22}, Packets: 1},
			{Kind: decode.Kind{Class: decode.ClassUDP, Port: 9999}, Packets: 1},
			{Kind: decode.Kind{Class: decode.ClassDamaged, Problem: decode.Problem{Link: link.ProblemCutIPv4}}, Packets: 1},
			{Kind: arp, Packets: 1},
		}}, "9 packets: 3 RPC over TCP, 2 iWARP, 1 TCP port 22 (SSH), 1 UDP port 9999, 1 damaged (IPv4 header cut), 1 ARP"},
		{decode.Account{Packets: 12, Transactions: 1, Kinds: make12(arp)}, "12 packets: 1 ARP, 1 ARP, 1 ARP, 1 ARP, 1 ARP, 1 ARP, 6 of 6 other kinds"},
	} {
		if got := string(Account(nil, &c.account, 6)); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	for service, want := range map[decode.Service]string{
		{Port: 4420}: "NVMe-oF (4420)", {Port: 12345}: "port 12345", {ID: 0x10001}: "service 0x0000000000010001",
	} {
		if got := string(ServiceOf(nil, &service)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func make12(k decode.Kind) []decode.Count {
	list := make([]decode.Count, 12)
	for i := range list {
		list[i] = decode.Count{Kind: k, Packets: 1}
	}
	return list
}
