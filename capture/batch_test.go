package capture

import (
	"bytes"
	"testing"
)

func TestBatchAppend(t *testing.T) {
	var b Batch
	for range 3 {
		b.Reset()
		size := 0
		for i := range 300 {
			data := bytes.Repeat([]byte{byte(i)}, i*7)
			b.Append(Packet{Number: uint64(i), Length: 9000, Data: data})
			size += len(data)
		}
		copy(b.Extend(Packet{Number: 300}, 3), "abc")
		if b.Size() != size+3 || len(b.Packets) != 301 || string(b.Packets[300].Data) != "abc" {
			t.Fatalf("%d bytes, %d packets", b.Size(), len(b.Packets))
		}
		for i := range 300 {
			p := &b.Packets[i]
			if p.Number != uint64(i) || p.Length != 9000 || !bytes.Equal(p.Data, bytes.Repeat([]byte{byte(i)}, i*7)) || cap(p.Data) != len(p.Data) {
				t.Fatalf("packet %d: %+v", i, p)
			}
		}
	}
	data := make([]byte, 1000)
	if n := testing.AllocsPerRun(10, func() {
		b.Reset()
		for range 200 {
			b.Append(Packet{Data: data})
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
