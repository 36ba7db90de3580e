package link

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

var pauses = []struct {
	hex  string
	want Pause
}{
	{"0101" + "0008" + "000000000000ffff00000000" + "00000000", Pause{true, 0x08, [8]uint16{3: 0xffff}}},
	{"0101" + "0018" + "00000000000000000064" + "000000000000", Pause{true, 0x18, [8]uint16{4: 100}}}, // 3 resumes
	{"0001" + "0100", Pause{false, 0xff, [8]uint16{256, 256, 256, 256, 256, 256, 256, 256}}},
}

func TestPause(t *testing.T) {
	for _, x := range pauses {
		b, _ := hex.DecodeString(x.hex)
		var p Pause
		if !p.Decode(b) || p != x.want {
			t.Errorf("%s: %+v", x.hex, p)
		}
		if got := p.Append(nil); !bytes.Equal(got, b) {
			t.Errorf("%s is encoded as %x", x.hex, got)
		}
		for n := range b {
			if p.Decode(b[:n]) {
				t.Errorf("%s: decoded %d bytes", x.hex, n)
			}
		}
		frame := append([]byte{0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08}, b...)
		var f Frame
		Decode(capture.LinkEthernet, append(frame, make([]byte, 30)...), uint32(len(frame)+30), &f)
		if !f.Pause(&p) || p != x.want || f.Unknown.String() != "Ethernet flow control" {
			t.Errorf("%s: %+v", x.hex, f)
		}
	}
	var p Pause
	if p.Decode([]byte{0x01, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) {
		t.Error("an opcode that is none of flow control")
	}
	b, _ := hex.DecodeString(pauses[0].hex)
	if n := testing.AllocsPerRun(100, func() { p.Decode(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzPause(f *testing.F) {
	for _, x := range pauses {
		b, _ := hex.DecodeString(x.hex)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, q Pause
		if p.Decode(b) && (!q.Decode(p.Append(nil)) || p != q) {
			t.Errorf("%x: %+v, then %+v", b, p, q)
		}
	})
}

func BenchmarkPause(b *testing.B) {
	data, _ := hex.DecodeString(pauses[0].hex)
	var p Pause
	for b.Loop() {
		p.Decode(data)
	}
}
