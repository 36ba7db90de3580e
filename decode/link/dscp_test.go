package link

import (
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// TestPriority reads what switches sort packets by: the DSCP of both IP versions, and the priority of the innermost tag.
func TestPriority(t *testing.T) {
	v4 := []byte{0x45, 46<<2 | 3, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0xc0, 0, 0x12, 0xb7, 0, 8, 0, 0}
	v6 := append([]byte{0x60 | 46>>2, 46&3<<6 | 3<<4, 0, 0, 0, 8, 17, 64}, make([]byte, 32)...)
	v6 = append(v6, 0xc0, 0, 0x12, 0xb7, 0, 8, 0, 0)
	for _, test := range []struct {
		name     string
		tags     []byte
		ip       []byte
		priority uint8
		vlan     uint16
	}{
		{"IPv4", []byte{0x08, 0x00}, v4, 0, 0},
		{"IPv6", []byte{0x86, 0xdd}, v6, 0, 0},
		{"priority 5", []byte{0x81, 0x00, 5 << 5, 42, 0x08, 0x00}, v4, 5, 42},
		{"drop eligible", []byte{0x81, 0x00, 3<<5 | 0x10, 1, 0x86, 0xdd}, v6, 3, 1},
		{"two tags", []byte{0x88, 0xa8, 7 << 5, 9, 0x81, 0x00, 2 << 5, 42, 0x08, 0x00}, v4, 2, 42},
	} {
		b := append(make([]byte, 12), test.tags...)
		b = append(b, test.ip...)
		var f Frame
		Decode(capture.LinkEthernet, b, uint32(len(b)), &f)
		if f.Proto != UDP || f.DSCP() != 46 || f.ECN != CongestionExperienced || f.Priority != test.priority || f.VLAN != test.vlan {
			t.Errorf("%s: %v, DSCP %d, ECN %d, priority %d, VLAN %d", test.name, f.Proto, f.DSCP(), f.ECN, f.Priority, f.VLAN)
		}
	}
	if d := (&Frame{Proto: UDP, Net: []byte{0x45}}).DSCP(); d != 0 {
		t.Errorf("DSCP %d of a header that was cut", d)
	}
	if d := (&Frame{Proto: InfiniBand, Net: []byte{0x45, 0xff}}).DSCP(); d != 0 {
		t.Errorf("DSCP %d of a local route header", d)
	}
}
