package layers_test

import (
	"encoding/hex"
	"fmt"
	"log"
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	rdma "github.com/rpcrdma/toolkit/decode/layers"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// frames of the Linux NFS client and server: a WRITE call, and the RDMA Read
// Request with which the server pulls the data.
var frames = []string{
	"5254001234015254001234020800450000cc0c8f40004011a98ec0000202c0000201d0bd12b700b800000400ffff00000011804303d7e2899383000000010000008000000000000000010000006c000006b200010000e289938308d70000000000000000000000000000e28993830000000000000002000186a30000000300000007000000010000001c0000000000000006636c69656e740000000000000000000000000000000000000000000000000010010001010100000046010000b14529cf0000000000000000000100000000000200010000d35f8ffb",
	"52540012340252540012340108004500003c89bb400040112cf2c0000201c0000202d0bd12b7002800000c00ffff00000011808f9b3ce289938308d70000000006b2000050005f46ed3a",
}

func frame(i int) []byte {
	b, err := hex.DecodeString(frames[i])
	if err != nil {
		log.Fatal(err)
	}
	return b
}

// The import is all that it takes: gopacket finds the layers by itself.
func Example() {
	for i := range frames {
		packet := gopacket.NewPacket(frame(i), layers.LayerTypeEthernet, gopacket.Default)
		for _, layer := range packet.Layers()[3:] {
			fmt.Println(layer.LayerType())
		}
		bth := packet.Layer(rdma.LayerTypeBTH).(*rdma.BTH)
		fmt.Printf("%s, PSN %d, ICRC %s\n", bth.Opcode, bth.PSN, rdma.VerifyICRC(packet))
		if layer := packet.Layer(rdma.LayerTypeRPCoverRDMA); layer != nil {
			h := &layer.(*rdma.RPCoverRDMA).Header
			fmt.Printf("%s, %d bytes of it at position %d are in handle %d\n", h.Type, h.Reads[0].Length, h.Reads[0].Position, h.Reads[0].Handle)
		}
		if bth.RETH != nil {
			fmt.Printf("%d bytes at %#x of handle %d\n", bth.RETH.DMALen, bth.RETH.VA, bth.RETH.RKey)
		}
	}
	// Output:
	// BTH
	// RPCoverRDMA
	// RPC
	// Payload
	// RC Send Only, PSN 4391895, ICRC good
	// RDMA_MSG, 65536 bytes of it at position 108 are in handle 1714
	// BTH
	// RETH
	// RC RDMA Read Request, PSN 9411388, ICRC good
	// 20480 bytes at 0xe289938308d70000 of handle 1714
}

// A parser with layers of its own decodes without allocations.
func Example_decodingLayerParser() {
	var (
		eth     layers.Ethernet
		ip      layers.IPv4
		udp     layers.UDP
		bth     rdma.BTH // has the extension headers in it
		header  rdma.RPCoverRDMA
		rpc     rdma.RPC
		payload gopacket.Payload
		decoded []gopacket.LayerType
	)
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &udp, &bth, &header, &rpc, &payload)
	for i := range frames {
		if err := parser.DecodeLayers(frame(i), &decoded); err != nil {
			log.Fatal(err)
		}
		for _, t := range decoded {
			switch t {
			case rdma.LayerTypeBTH:
				fmt.Println(bth.Opcode, "has a RETH:", bth.RETH != nil)
			case rdma.LayerTypeRPC:
				fmt.Println(rpc.Type, "of procedure", rpc.Call.Procedure, "with chunks", header.Header.Key())
			}
		}
	}
	// Output:
	// RC Send Only has a RETH: false
	// CALL of procedure 7 with chunks 1 - PHLOO - 0; 0; 0
	// RC RDMA Read Request has a RETH: true
}

// A packet is made, with its ICRC.
func ExampleBTH_SetNetworkLayerForChecksum() {
	src, dst := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	ip := &layers.IPv4{Version: 4, TTL: 64, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolUDP, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	udp := &layers.UDP{SrcPort: 50000, DstPort: rdma.UDPPortRoCEv2}
	bth := &rdma.BTH{Opcode: roce.RCWriteOnly, PKey: roce.DefaultPKey, DestQP: 17, PSN: 1, RETH: &rdma.RETH{VA: 0x1000, RKey: 42, DMALen: 5}}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		log.Fatal(err)
	}
	if err := bth.SetNetworkLayerForChecksum(ip); err != nil {
		log.Fatal(err)
	}
	if err := bth.SetTransportLayerForChecksum(udp); err != nil {
		log.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, opts, ip, udp, bth, gopacket.Payload("hello")); err != nil {
		log.Fatal(err)
	}
	packet := gopacket.NewPacket(b.Bytes(), layers.LayerTypeIPv4, gopacket.Default)
	fmt.Println(len(b.Bytes()), "bytes, ICRC", rdma.VerifyICRC(packet))
	// Output: 68 bytes, ICRC good
}

// A TCP segment may hold several FPDUs.
func ExampleMPA() {
	var segment []byte
	for xid := range uint32(2) {
		b := gopacket.NewSerializeBuffer()
		ddp := &rdma.DDP{Last: true, MSN: xid + 1, RDMAP: rdma.RDMAP{Opcode: iwarp.OpSend}}
		header := &rdma.RPCoverRDMA{Header: rpcrdma.Header{XID: xid + 100, Version: 1, Credits: 32, Type: rpcrdma.TypeNoMsg}}
		opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
		if err := gopacket.SerializeLayers(b, opts, &rdma.MPA{}, ddp, header); err != nil {
			log.Fatal(err)
		}
		segment = append(segment, b.Bytes()...)
	}
	var (
		mpa     rdma.MPA
		ddp     rdma.DDP
		header  rdma.RPCoverRDMA
		decoded []gopacket.LayerType
	)
	parser := gopacket.NewDecodingLayerParser(rdma.LayerTypeMPA, &mpa, &ddp, &header)
	for data := segment; len(data) > 0; data = mpa.Rest {
		if err := parser.DecodeLayers(data, &decoded); err != nil {
			log.Fatal(err)
		}
		right, _ := mpa.VerifyCRC()
		fmt.Println(ddp.RDMAP.Opcode, ddp.MSN, "CRC right:", right, "XID", header.Header.XID)
	}
	// Output:
	// Send 1 CRC right: true XID 100
	// Send 2 CRC right: true XID 101
}
