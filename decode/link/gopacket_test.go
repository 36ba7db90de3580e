package link

import (
	"bytes"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/capture"
)

// Frames that another implementation has written are read as they were meant.
func TestAgainstGopacket(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		payload := counting(rnd.IntN(1400))
		eth := &layers.Ethernet{SrcMAC: net.HardwareAddr(mac[:6]), DstMAC: net.HardwareAddr(mac[6:])}
		parts := []gopacket.SerializableLayer{eth}
		network := layers.EthernetTypeIPv4
		v6 := rnd.IntN(2) == 0
		if v6 {
			network = layers.EthernetTypeIPv6
		}
		vlan := uint16(0)
		eth.EthernetType = network
		for tags := rnd.IntN(3); tags > 0; tags-- {
			vlan = uint16(rnd.IntN(4096))
			parts = append(parts, &layers.Dot1Q{VLANIdentifier: vlan, Priority: uint8(rnd.IntN(8)), Type: network})
			if tags > 1 {
				parts[len(parts)-1].(*layers.Dot1Q).Type = layers.EthernetTypeDot1Q
			}
			eth.EthernetType = layers.EthernetTypeDot1Q
		}
		proto := layers.IPProtocolUDP
		if rnd.IntN(2) == 0 {
			proto = layers.IPProtocolTCP
		}
		var sum gopacket.NetworkLayer
		if v6 {
			ip := &layers.IPv6{Version: 6, SrcIP: client6.AsSlice(), DstIP: server6.AsSlice(), NextHeader: proto, HopLimit: uint8(rnd.Uint32()), TrafficClass: uint8(rnd.Uint32()), FlowLabel: rnd.Uint32N(1 << 20)}
			parts, sum = append(parts, ip), ip
		} else {
			ip := &layers.IPv4{Version: 4, SrcIP: client4.AsSlice(), DstIP: server4.AsSlice(), Protocol: proto, TTL: uint8(rnd.Uint32()), TOS: uint8(rnd.Uint32()), Id: uint16(rnd.Uint32()), Flags: layers.IPv4DontFragment}
			for range rnd.IntN(3) {
				ip.Options = append(ip.Options, layers.IPv4Option{OptionType: 1, OptionLength: 1})
			}
			parts, sum = append(parts, ip), ip
		}
		u := &layers.UDP{SrcPort: layers.UDPPort(rnd.Uint32()), DstPort: 4791}
		c := &layers.TCP{SrcPort: layers.TCPPort(rnd.Uint32()), DstPort: 20049, Seq: rnd.Uint32(), Ack: rnd.Uint32(), ACK: true, PSH: rnd.IntN(2) == 0, FIN: rnd.IntN(2) == 0}
		if proto == layers.IPProtocolUDP {
			u.SetNetworkLayerForChecksum(sum)
			parts = append(parts, u)
		} else {
			c.SetNetworkLayerForChecksum(sum)
			for range rnd.IntN(3) {
				c.Options = append(c.Options, layers.TCPOption{OptionType: layers.TCPOptionKindTimestamps, OptionLength: 10, OptionData: make([]byte, 8)})
			}
			parts = append(parts, c)
		}
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, append(parts, gopacket.Payload(payload))...); err != nil {
			t.Fatal(err)
		}
		f := decode(capture.LinkEthernet, buf.Bytes())
		switch {
		case f.Problem != NoProblem || !bytes.Equal(f.Payload, payload) || f.PayloadLen != len(payload) || f.VLAN != vlan:
			t.Fatalf("%q: %+v", f.Problem, f)
		case proto == layers.IPProtocolUDP && (f.Proto != UDP || f.SrcPort != uint16(u.SrcPort) || f.DstPort != 4791):
			t.Fatalf("UDP: %+v", f)
		case proto == layers.IPProtocolTCP && (f.Proto != TCP || f.SrcPort != uint16(c.SrcPort) || f.TCPSeq != c.Seq || f.TCPAck != c.Ack ||
			f.TCPFlags&0x10 == 0 || f.TCPFlags&8 != 0 != c.PSH || f.TCPFlags&1 != 0 != c.FIN):
			t.Fatalf("TCP: %+v", f)
		}
		switch ip := sum.(type) {
		case *layers.IPv4:
			if f.Src != client4 || f.Dst != server4 || f.TTL != ip.TTL || f.ECN != ip.TOS&3 || f.IPID != ip.Id {
				t.Fatalf("IPv4: %+v", f)
			}
		case *layers.IPv6:
			if f.Src != client6 || f.Dst != server6 || f.TTL != ip.HopLimit || f.ECN != ip.TrafficClass&3 {
				t.Fatalf("IPv6: %+v", f)
			}
		}
	}
}
