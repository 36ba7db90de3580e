package roce

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
)

// Ethernet frames from captures of Linux's soft RoCE device.
const (
	sampleAck       = "52540012340252540012340108004500003028f7400040118dc2c0000201c0000202e61412b7001c00001100ffff0000001100fa8b581f000001eba6f7f5"
	sampleSendOnly  = "52540012340152540012340208004500003ced5740004011c955c0000202c0000201e61412b7002800000400ffff0000001180fa8b580000556bbba265f0000005a700000040b5c856af"
	sampleReadReq   = "52540012340252540012340108004500003c28f8400040118db5c0000201c0000202e61412b7002800000c00ffff0000001180960e1f0000556bbba265f0000005a700000040116d32eb"
	sampleReadOnly  = "525400123401525400123402080045000070ed5840004011c920c0000202c0000201e61412b7005c00001000ffff0000001100960e1f1f00000172646d612d70696e672d303a204142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f70717200376d7e98"
	sampleWriteOnly = "52540012340252540012340108004500007c28fb400040118d72c0000201c0000202e61412b7006800000a00ffff0000001180960e210000556bbba23140000004290000004072646d612d70696e672d303a204142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172004480cc25"
	sampleSendInv   = "5254001234025254001234010800450000d489c0400040112c55c0000201c0000202d0bd12b700c000001700ffff00000011808f9b7c000006b2e2899383000000010000004000000000000000000000000000000000e2899383000000010000000000000000000000000000000000000000000000000000000100000001000001a4000000010000000000000000000000000001000000000000000100000000000000000000000000000000000100000000000001466b012ce23b4cacdf6b012ce3012018e06b012ce3012018e0000100000000000272b5ab9a07b78db653f56708"
	sampleNAK       = "525400123401525400123402080045000030aa4a400040110c6fc0000202c0000201fe3412b7001c00001100ffff00000011004838dd6000003aa6b268f1"
	sampleAck6      = "52540012340252540012340186dd60000000001c1140fd000000000000000000000000000001fd000000000000000000000000000002e1e512b7001c00001100ffff000000110029f4fb1f0000017e789094"
	sampleSend6     = "52540012340152540012340286dd60000000005c1140fd000000000000000000000000000002fd000000000000000000000000000001e1e512b7005c00000400ffff000000118029f4fb8803a9260000000100000080000000000000000000000000000000008803a9260000000000000002000186a300000004000000000000000000000000000000000000000009a06803"
	sampleAckVLAN   = "5254001234025254001234018100602a080045000030027c40004011b43dc0000201c0000202f1c012b7001c00001100ffff000000110062ebf71f000001644ae0d3"
)

// sampleMAD is a ConnectReply, whose private data is zeros at the end.
var sampleMAD = "5254001234025254001234010800450001348928400040112c8dc0000201c0000202d87212b7012000006400ffff00000001800000008001000000000001010702030000000000000002504189b30013000000000000ce0dcdfab38941500000000000001100000000004303c00000807800505400fffe123401f6ab0e1801000303" +
	strings.Repeat("00", 188) + "40f518bc"

var samples = []struct {
	name, hex string
	op        Opcode
}{
	{"acknowledge", sampleAck, RCAcknowledge},
	{"send only", sampleSendOnly, RCSendOnly},
	{"read request", sampleReadReq, RCReadRequest},
	{"read response only", sampleReadOnly, RCReadResponseOnly},
	{"write only", sampleWriteOnly, RCWriteOnly},
	{"send only invalidate", sampleSendInv, RCSendOnlyInvalidate},
	{"sequence error", sampleNAK, RCAcknowledge},
	{"acknowledge over IPv6", sampleAck6, RCAcknowledge},
	{"send only over IPv6", sampleSend6, RCSendOnly},
	{"acknowledge with VLAN tag", sampleAckVLAN, RCAcknowledge},
	{"connection management", sampleMAD, UDSendOnly},
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sampleFrame takes an Ethernet frame with IP and UDP headers apart.
func sampleFrame(t testing.TB, s string) *link.Frame {
	t.Helper()
	b := unhex(t, s)
	at := 14
	if binary.BigEndian.Uint16(b[12:]) == 0x8100 {
		at = 18
	}
	return udpFrame(t, b[at:])
}

func udpFrame(t testing.TB, ip []byte) *link.Frame {
	t.Helper()
	n := 20
	f := &link.Frame{Proto: link.UDP}
	if ip[0]>>4 == 6 {
		n = 40
		f.Src, f.Dst = netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:]))
	} else {
		f.IPID = binary.BigEndian.Uint16(ip[4:])
		f.Src, f.Dst = netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:]))
	}
	f.Net, f.Transport, f.Payload = ip[:n], ip[n:n+8], ip[n+8:]
	f.SrcPort, f.DstPort = binary.BigEndian.Uint16(f.Transport), binary.BigEndian.Uint16(f.Transport[2:])
	f.PayloadLen = int(binary.BigEndian.Uint16(f.Transport[4:])) - 8
	if f.PayloadLen != len(f.Payload) {
		t.Fatalf("sample: UDP length %d, payload %d", f.PayloadLen, len(f.Payload))
	}
	return f
}

// minAllocs is the least number of allocations of several runs: what others
// do meanwhile can only add.
func minAllocs(f func()) float64 {
	best := testing.AllocsPerRun(100, f)
	for range 4 {
		best = min(best, testing.AllocsPerRun(100, f))
	}
	return best
}
