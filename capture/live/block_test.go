package live

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

const addresses = "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"

func walk(mem []byte) (list []record, err error) {
	var w walker
	w.start(mem, 0)
	var r record
	for w.next(&r) {
		list = append(list, r)
	}
	return list, w.err
}

func TestWalk(t *testing.T) {
	mem := make([]byte, 4096)
	in := []packet{
		{at: at(1), data: "first", hatype: 1, index: 3},
		{at: at(2), data: strings.Repeat("x", 300), length: 9000, hatype: 1, pkttype: 4},
		{at: at(3), data: "", length: 60},
	}
	fillBlock(mem, in...)
	list, err := walk(mem)
	if err != nil || len(list) != len(in) {
		t.Fatalf("%d packets, %v", len(list), err)
	}
	for i, r := range list {
		p := in[i]
		if r.time != p.at || string(r.data) != p.data || r.length != max(p.length, uint32(len(p.data))) || r.hatype != p.hatype || r.pkttype != p.pkttype || r.index != p.index || cap(r.data) != len(r.data) {
			t.Errorf("packet %d: %+v", i, r)
		}
	}
}

// Numbers that lead out of a block end it.
func TestWalkDamaged(t *testing.T) {
	for name, damage := range map[string]func(m []byte){
		"first packet in the header": func(m []byte) { native.PutUint32(m[blockFirst:], 8) },
		"first packet outside":       func(m []byte) { native.PutUint32(m[blockFirst:], 1<<31) },
		"first packet at the end":    func(m []byte) { native.PutUint32(m[blockFirst:], 1024-60) },
		"more packets than there":    func(m []byte) { native.PutUint32(m[blockCount:], 1<<30) },
		"data in the header":         func(m []byte) { native.PutUint16(m[blockHeader+recMAC:], 20) },
		"data outside":               func(m []byte) { native.PutUint16(m[blockHeader+recMAC:], 65535) },
		"data too long":              func(m []byte) { native.PutUint32(m[blockHeader+recSnap:], 0xffffffff) },
		"next packet is this one":    func(m []byte) { native.PutUint32(m[blockHeader+recNext:], 0) },
		"next packet far away":       func(m []byte) { native.PutUint32(m[blockHeader+recNext:], 0xfffffff0) },
	} {
		mem := make([]byte, 1024)
		fillBlock(mem, packet{data: "a"}, packet{data: "b"})
		damage(mem)
		list, err := walk(mem)
		if err == nil || len(list) > 2 {
			t.Errorf("%s: %d packets, %v", name, len(list), err)
		}
	}
	if list, err := walk(nil); len(list) != 0 || err == nil {
		t.Error("a block of no bytes")
	}
}

func TestAdd(t *testing.T) {
	ip := "\x45payload"
	for _, c := range []struct {
		name   string
		p      packet
		link   capture.LinkType
		data   string
		length uint32
	}{
		{"plain", packet{data: addresses + "\x08\x00" + ip, hatype: 1}, 1, addresses + "\x08\x00" + ip, 22},
		{"loopback", packet{data: addresses + "\x08\x00" + ip, hatype: 772}, 1, addresses + "\x08\x00" + ip, 22},
		{"tag without its type", packet{data: addresses + "\x08\x00" + ip, hatype: 1, status: statusVLAN, tci: 0x2005}, 1, addresses + "\x81\x00\x20\x05\x08\x00" + ip, 26},
		{"tag with its type", packet{data: addresses + "\x08\x00" + ip, hatype: 1, status: statusVLAN | statusTPID, tci: 5, tpid: 0x88a8}, 1, addresses + "\x88\xa8\x00\x05\x08\x00" + ip, 26},
		{"a tag of zeros", packet{data: addresses + "\x08\x00" + ip, hatype: 1, status: statusVLAN | statusTPID, tpid: 0x8100}, 1, addresses + "\x81\x00\x00\x00\x08\x00" + ip, 26},
		{"tag before another one", packet{data: addresses + "\x81\x00\x00\x07\x08\x00" + ip, hatype: 1, status: statusVLAN | statusTPID, tci: 5, tpid: 0x88a8}, 1, addresses + "\x88\xa8\x00\x05\x81\x00\x00\x07\x08\x00" + ip, 30},
		{"tag, cut", packet{data: addresses + "\x08\x00" + ip[:2], length: 2000, hatype: 1, status: statusVLAN, tci: 5}, 1, addresses + "\x81\x00\x00\x05\x08\x00" + ip[:2], 2004},
		{"tag, cut within the addresses", packet{data: addresses[:7], length: 2000, hatype: 1, status: statusVLAN, tci: 5}, 1, addresses[:7], 2000},
		{"tunnel", packet{data: ip, hatype: 65534, protocol: 0x0800, index: 9, pkttype: 4}, 276,
			"\x08\x00\x00\x00\x00\x00\x00\x09\xff\xfe\x04\x06\x02\x00\x00\x00\x00\x01\x00\x00" + ip, 28},
		{"IPoIB", packet{data: "\x08\x00\x00\x00" + ip, network: 4, hatype: 32, protocol: 0x0800, index: 1}, 276,
			"\x08\x00\x00\x00\x00\x00\x00\x01\x00\x20\x00\x06\x02\x00\x00\x00\x00\x01\x00\x00" + ip, 28},
		{"tunnel with a tag", packet{data: ip, hatype: 65534, protocol: 0x0800, index: 9, status: statusVLAN, tci: 5}, 276,
			"\x81\x00\x00\x00\x00\x00\x00\x09\xff\xfe\x00\x06\x02\x00\x00\x00\x00\x01\x00\x00\x00\x05\x08\x00" + ip, 32},
		{"network header beyond the data", packet{data: "\x45", network: 60, length: 50, hatype: 32, protocol: 0x0800, index: 1}, 276,
			"\x08\x00\x00\x00\x00\x00\x00\x01\x00\x20\x00\x06\x02\x00\x00\x00\x00\x01\x00\x00", 69},
	} {
		mem := make([]byte, 1024)
		fillBlock(mem, c.p)
		list, err := walk(mem)
		if err != nil {
			t.Fatal(err)
		}
		var b capture.Batch
		b.Append(capture.Packet{Data: []byte("before")})
		list[0].add(&b, 7, 3)
		clear(mem) // a copy stays
		p := b.Packets[1]
		if p.Link != c.link || string(p.Data) != c.data || p.Length != c.length || p.Number != 7 || p.Tap != 3 {
			t.Errorf("%s: %+v\n%s", c.name, p, hex.Dump(p.Data))
		}
	}
}

func TestAddAllocations(t *testing.T) {
	mem := make([]byte, 64<<10)
	var list []packet
	for i := range 200 {
		list = append(list, packet{data: addresses + strings.Repeat("x", 80), hatype: 1, status: uint32(i%2) * statusVLAN})
	}
	fillBlock(mem, list...)
	var b capture.Batch
	var r record
	if n := testing.AllocsPerRun(20, func() {
		b.Reset()
		var w walker
		w.start(mem, 0)
		for w.next(&r) {
			r.add(&b, 1, 0)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(b.Packets) != 200 {
		t.Errorf("%d packets", len(b.Packets))
	}
}

// Whatever stands in a block, reading it ends and stays within.
func FuzzBlock(f *testing.F) {
	mem := make([]byte, 1024)
	fillBlock(mem, packet{data: addresses + "\x08\x00abc", hatype: 1, status: statusVLAN}, packet{data: "abc", hatype: 65534, network: 1})
	f.Add(mem)
	fillBlock(mem, packet{data: ""}, packet{data: strings.Repeat("a", 500), hatype: 32, network: 7, status: statusVLAN | statusTPID})
	f.Add(mem)
	f.Add(mem[:100])
	f.Add(mem[:20])
	f.Fuzz(func(t *testing.T, block []byte) {
		before := bytes.Clone(block)
		var w walker
		w.start(block, 0)
		var r record
		var b capture.Batch
		n := 0
		for w.next(&r) {
			if n++; n > len(block) {
				t.Fatal("no end")
			}
			b.Reset()
			r.add(&b, uint64(n), 0)
			p := &b.Packets[0]
			if int(p.Length) < len(p.Data) || len(p.Data) > len(r.data)+24 {
				t.Fatalf("%d bytes of %d, of %d in the ring", len(p.Data), p.Length, len(r.data))
			}
		}
		if !bytes.Equal(before, block) {
			t.Fatal("the block was written")
		}
	})
}

// The kernel's word on segments stands before the data; what it does not know,
// or a block that has no room for it, is none.
func TestWalkSegments(t *testing.T) {
	head := func(kind byte, size uint16) string {
		h := make([]byte, netHeader)
		h[netGSOType] = kind
		native.PutUint16(h[netGSOSize:], size)
		return string(h)
	}
	mem := make([]byte, 4096)
	in := []struct {
		kind byte
		size uint16
		want uint16
	}{{0, 0, 0}, {5, 1068, 1068}, {1, 1448, 1448}, {4 | 0x80, 1428, 1428}, {3, 1480, 0}, {0, 77, 0}, {9, 77, 0}}
	var list []packet
	for _, x := range in {
		list = append(list, packet{data: head(x.kind, x.size) + addresses, hatype: 1})
	}
	fillBlock(mem, list...)
	// The data begin after the header.
	off := int(native.Uint32(mem[blockFirst:]))
	for range list {
		p := mem[off:]
		native.PutUint16(p[recMAC:], native.Uint16(p[recMAC:])+netHeader)
		native.PutUint32(p[recSnap:], uint32(len(addresses)))
		off += int(native.Uint32(p[recNext:]))
	}
	var w walker
	var r record
	w.start(mem, netHeader)
	for i, x := range in {
		if !w.next(&r) || r.segment != x.want || string(r.data) != addresses {
			t.Errorf("packet %d: segment %d, want %d; %q; %v", i, r.segment, x.want, r.data, w.err)
		}
	}
	native.PutUint16(mem[blockHeader+recMAC:], recHeader)
	w.start(mem, netHeader)
	if w.next(&r) || w.err == nil {
		t.Error("a packet without room for what stands before it")
	}
	w.start(mem, 0)
	if !w.next(&r) || r.segment != 0 {
		t.Error("a segment out of nothing")
	}
}
