package rdma

import (
	"bytes"
	"testing"
)

func TestPrivateData(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want PrivateData
		ok   bool
	}{
		{"Linux client", []byte{0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3, 0, 0}, PrivateData{true, 1, true, 4096, 4096}, true},
		{"Linux server", []byte{0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3}, PrivateData{true, 1, false, 4096, 4096}, true},
		{"least and most", []byte{0xf6, 0xab, 0x0e, 0x18, 1, 0xfe, 0, 255}, PrivateData{true, 1, false, 1024, 262144}, true},
		{"other version", []byte{0xf6, 0xab, 0x0e, 0x18, 2, 1, 3, 3}, PrivateData{}, false},
		{"other magic", []byte{0xf6, 0xab, 0x0e, 0x19, 1, 1, 3, 3}, PrivateData{}, false},
		{"cut", []byte{0xf6, 0xab, 0x0e, 0x18, 1, 1, 3}, PrivateData{}, false},
		{"nothing", nil, PrivateData{}, false},
	} {
		p := PrivateData{Present: true, SendSize: 7}
		if ok := p.Decode(c.b); ok != c.ok || p != c.want {
			t.Errorf("%s: %v, %+v", c.name, ok, p)
		}
		if !c.ok {
			continue
		}
		b := p.Append([]byte("?"))[1:]
		want := bytes.Clone(c.b[:PrivateDataSize])
		want[5] &= 1 // reserved flags
		if !bytes.Equal(b, want) {
			t.Errorf("%s: encoded as %x", c.name, b)
		}
	}
}

func TestPrivateDataSizes(t *testing.T) {
	for size, want := range map[uint32]uint32{
		0: 1024, 1: 1024, 1023: 1024, 1024: 1024, 2047: 1024, 2048: 2048, 65536: 65536,
		262144: 262144, 262145: 262144, 1<<32 - 1: 262144,
	} {
		p := PrivateData{SendSize: size, ReceiveSize: size}
		b := p.Append(nil)
		if !p.Decode(b) || p.SendSize != want || p.ReceiveSize != want {
			t.Errorf("%d becomes %d and %d, want %d", size, p.SendSize, p.ReceiveSize, want)
		}
	}
}

func TestInlineThreshold(t *testing.T) {
	small, big := PrivateData{true, 1, false, 2048, 4096}, PrivateData{true, 1, false, 65536, 65536}
	for _, c := range []struct {
		from, to PrivateData
		want     uint32
	}{
		{small, big, 2048}, {big, small, 4096}, {big, big, 65536}, {PrivateData{}, big, 1024}, {big, PrivateData{}, 1024},
		{PrivateData{}, PrivateData{}, 1024},
	} {
		if got := InlineThreshold(&c.from, &c.to); got != c.want {
			t.Errorf("from %+v to %+v: %d, want %d", c.from, c.to, got, c.want)
		}
	}
}

func TestPrivateDataAllocs(t *testing.T) {
	b := (&PrivateData{}).Append(nil)
	var p PrivateData
	for name, f := range map[string]func(){
		"Decode": func() { p.Decode(b) },
		"Append": func() { b = p.Append(b[:0]) },
	} {
		best := testing.AllocsPerRun(100, f)
		for range 4 {
			best = min(best, testing.AllocsPerRun(100, f))
		}
		if best != 0 {
			t.Errorf("%s: %v allocations", name, best)
		}
	}
}

func FuzzPrivateData(f *testing.F) {
	f.Add([]byte{0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3})
	f.Add([]byte{0xf6, 0xab, 0x0e, 0x18, 1, 0, 255, 0, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, q PrivateData
		if p.Decode(b) && (!q.Decode(p.Append(nil)) || p != q) {
			t.Fatalf("%+v became %+v", p, q)
		}
	})
}

func BenchmarkPrivateData(b *testing.B) {
	m := []byte{0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3}
	var p PrivateData
	for b.Loop() {
		p.Decode(m)
	}
}
