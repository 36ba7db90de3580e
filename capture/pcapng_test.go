package capture

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

func TestPcapng(t *testing.T) {
	le, be := binary.ByteOrder(binary.LittleEndian), binary.ByteOrder(binary.BigEndian)
	ns := func(n *ng) []byte { return n.opt(ifResolution, []byte{9}) }
	// four packets, of which tests damage the second
	good := newNg(le)
	good.iface(1, 0, ns(good))
	start := good.Len()
	for i, s := range []string{"aaaaa", "bbbbb", "ccccc", "ddddd"} {
		good.epb(0, uint64(i+1), s)
	}
	const size = 40
	damage := func(at int, v ...byte) []byte {
		p := append([]byte(nil), good.Bytes()...)
		copy(p[start+size+at:], v)
		return p
	}
	abcd, acd := "1/5:ax5 2/5:bx5 3/5:cx5 4/5:dx5", "1/5:ax5 3/5:cx5 4/5:dx5"
	for _, c := range []struct {
		name     string
		in       func(n *ng) *ng
		raw      []byte
		order    binary.ByteOrder
		max      int
		want     string
		problems string
		taps     string
	}{
		{name: "µs by default", in: func(n *ng) *ng { return n.iface(1, 0).epb(0, 5, "abc").epb(0, 1e7, "defg") }, want: "5000/3:ax3 10s/4:dx4"},
		{name: "big-endian", order: be, in: func(n *ng) *ng { return n.iface(1, 0, ns(n)).epb(0, 5, "abc").epb(0, 1<<33, "defg") }, want: "5/3:ax3 8s589934592/4:dx4"},
		{name: "two interfaces of several links and clocks", in: func(n *ng) *ng {
			return n.iface(1, 100, n.opt(ifName, []byte("eth0\x00"))).
				iface(276, 0, n.opt(ifName, []byte("any")), n.opt(ifDescription, []byte("all of them")), n.opt(ifResolution, []byte{0x8a}), n.opt(optEnd, nil)).
				epb(1, 1024, "abc").epb(0, 1000, "d")
		}, want: "1s/3:ax3@1~276 1000000/1:dx1", taps: "eth0// any/all of them/"},
		{name: "offset", in: func(n *ng) *ng {
			return n.iface(1, 0, n.opt(ifOffset, n.pack(int64(100)))).epb(0, 5, "abc").
				iface(1, 0, n.opt(ifOffset, n.pack(int64(-2)))).epb(1, 5e6, "abc")
		}, want: "100s5000/3:ax3 3s/3:ax3@1"},
		{name: "offset, big-endian", order: be, in: func(n *ng) *ng { return n.iface(1, 0, n.opt(ifOffset, n.pack(int64(100)))).epb(0, 5, "abc") }, want: "100s5000/3:ax3"},
		{name: "obsolete packet blocks", in: func(n *ng) *ng {
			return n.iface(1, 0).iface(113, 0).block(blockPacket, uint16(1), uint16(7), uint32(0), uint32(9), uint32(3), uint32(1514), "abc")
		}, want: "9000/1514:ax3@1~113"},
		{name: "simple packet blocks", in: func(n *ng) *ng {
			return n.iface(1, 4).epb(0, 7, "x").block(blockSimple, uint32(2), "ab").block(blockSimple, uint32(60), "cdef").iface(101, 0)
		}, want: "7000/1:xx1 7000/2:ax2 7000/60:cx4"},
		{name: "simple packet block without a snapshot length", in: func(n *ng) *ng { return n.iface(1, 0).block(blockSimple, uint32(5), "abcde") }, want: "0/5:ax5"},
		{name: "simple packet block that lies", in: func(n *ng) *ng { return n.iface(1, 0).block(blockSimple, uint32(50), "abcde") }, want: "0/50:ax8",
			problems: "packet 1, offset 48: packet length 50 exceeds the block; cut to 8"},
		{name: "simple packet block without an interface", in: func(n *ng) *ng { return n.block(blockSimple, uint32(5), "abcde") },
			problems: "packet 1, offset 28: the packet is of interface 0, which is not described; skipped"},
		{name: "other blocks", in: func(n *ng) *ng {
			return n.iface(1, 0).block(blockNames, uint16(1), uint16(8), "\xc0\x00\x02\x01abc\x00", uint32(0)).
				block(blockSecrets, uint32(0x544c534b), uint32(4), "keys").block(blockStatistics, uint32(0), uint64(0)).
				block(blockCustom, uint32(99), "data").block(blockCustomKeep, uint32(99), "data").block(blockJournal, "a=b\n").
				block(0x80000042, "local use").block(77).epb(0, 1, "abc")
		}, want: "1000/3:ax3"},
		{name: "sections", in: func(n *ng) *ng {
			return n.iface(1, 0).epb(0, 1, "abc").section(be).iface(101, 0).epb(0, 2, "def").epb(0, 3, "ghi").section(le).iface(1, 0).epb(0, 4, "jkl")
		}, want: "1000/3:ax3 2000/3:dx3~101 3000/3:gx3~101 4000/3:jx3"},
		{name: "interface after packets", in: func(n *ng) *ng { return n.iface(1, 0).epb(0, 1, "abc").iface(113, 0).epb(1, 2, "def") }, want: "1000/3:ax3 2000/3:dx3@1~113"},
		{name: "packet options", in: func(n *ng) *ng {
			return n.iface(1, 0).epb(0, 1, "abc", n.opt(optComment, []byte("hello")), n.opt(optEnd, nil)).epb(0, 2, "defghi", n.opt(epbFlags, n.pack(uint32(4<<5))))
		}, want: "1000/3:ax3 2000/2:dx2"},
		{name: "FCS of the interface", in: func(n *ng) *ng {
			return n.iface(1, 0, n.opt(ifFCSLength, []byte{4})).iface(1, 0, n.opt(ifFCSLength, []byte{32})).epb(0, 1, "abcdef").epb(1, 1, "abcdef").epb(1, 1, "abc")
		}, want: "1000/2:ax2 1000/2:ax2@1 1000/0:@1"},
		{name: "nothing captured", in: func(n *ng) *ng {
			return n.iface(1, 0).block(blockEnhanced, uint32(0), uint32(0), uint32(5), uint32(0), uint32(99))
		}, want: "5000/99:"},
		{name: "no packets", in: func(n *ng) *ng { return n.iface(1, 0) }},
		{name: "no interfaces", in: func(n *ng) *ng { return n }},
		{name: "section of another version", in: func(n *ng) *ng {
			n.Reset()
			return n.block(blockSection, uint32(byteOrderMagic), uint16(2), uint16(1), int64(-1)).iface(1, 0).epb(0, 1, "abc")
		}, want: "1000/3:ax3", problems: "packet 0, offset 0: pcapng version 2.1 is not known; reading it as 1.0"},

		{name: "unknown interface", in: func(n *ng) *ng {
			return n.epb(0, 1, "abc").iface(1, 0).epb(0, 1, "def").epb(4e9, 1, "ghi").epb(0, 2, "jkl")
		}, want: "1000/3:dx3 2000/3:jx3",
			problems: "packet 1, offset 28: the packet is of interface 0, which is not described; skipped\n" +
				"packet 2, offset 120: the packet is of interface 4000000000, which is not described; skipped"},
		{name: "captured more than was on the wire", in: func(n *ng) *ng {
			return n.iface(1, 0).block(blockEnhanced, uint32(0), uint32(0), uint32(5), uint32(3), uint32(1), "abc")
		}, want: "5000/3:ax3", problems: "packet 1, offset 48: length on the wire 1 does not fit the captured length 3; read as it is"},
		{name: "captured more than the block", in: func(n *ng) *ng {
			return n.iface(1, 0).block(blockEnhanced, uint32(0), uint32(0), uint32(5), uint32(5), uint32(5), "abc").epb(0, 1, "def")
		}, want: "1000/3:dx3", problems: "packet 1, offset 48: captured length 5 exceeds the block; skipped"},
		{name: "short blocks", in: func(n *ng) *ng {
			return n.block(blockEnhanced, uint32(0)).block(blockPacket).block(blockSimple).block(blockInterface, uint32(0)).iface(101, 0).epb(1, 1, "abc").epb(0, 1, "def")
		}, want: "1000/3:ax3@1~101", taps: "// //", problems: "packet 0, offset 28: block of type 6 is too short; skipped\n" +
			"packet 0, offset 44: block of type 2 is too short; skipped\n" +
			"packet 0, offset 56: block of type 3 is too short; skipped\n" +
			"packet 0, offset 68: the interface description is too short\n" +
			"packet 2, offset 140: the packet is of interface 0, which is not described; skipped"},
		{name: "option beyond its block", in: func(n *ng) *ng {
			return n.iface(1, 0, n.pack(uint16(ifName), uint16(9), "abcd")).epb(0, 1, "abc", n.pack(uint16(optComment), uint16(0xffff)))
		}, want: "1000/3:ax3", problems: "packet 0, offset 28: option 2 runs beyond its block; left out\n" +
			"packet 1, offset 56: option 1 runs beyond its block; left out"},
		{name: "hostile resolution and offset", in: func(n *ng) *ng {
			return n.iface(1, 0, n.opt(ifResolution, []byte{0xff}), n.opt(ifOffset, n.pack(int64(1)<<62)), n.opt(ifResolution, nil)).epb(0, 1, "abc")
		}, want: "1000/3:ax3", problems: "packet 0, offset 28: time resolution ff makes no sense; took microseconds\n" +
			"packet 0, offset 28: time offset 00 00 00 00 00 00 00 40 makes no sense; left out\n" +
			"packet 0, offset 28: time resolution  makes no sense; took microseconds"},
		{name: "time out of range", in: func(n *ng) *ng { return n.iface(1, 0).epb(0, 1<<63, "abc") }, want: "9223372036s854775807/3:ax3",
			problems: "packet 1, offset 48: time 9223372036854775808 is out of range"},
		{name: "length not counting the padding", in: func(n *ng) *ng {
			n.iface(1, 0)
			n.Write(n.pack(uint32(6), uint32(35), uint32(0), uint32(0), uint32(1), uint32(3), uint32(3), "abc\x00", uint32(35)))
			return n.epb(0, 2, "def")
		}, want: "1000/3:ax3 2000/3:dx3", problems: "packet 1, offset 48: the block length is not a multiple of four; used the first length"},
		{name: "length without padding", in: func(n *ng) *ng {
			n.iface(1, 0)
			n.Write(n.pack(uint32(6), uint32(35), uint32(0), uint32(0), uint32(1), uint32(3), uint32(3), "abc", uint32(35)))
			return n.epb(0, 2, "def")
		}, want: "1000/3:ax3 2000/3:dx3", problems: "packet 1, offset 48: the block length is not a multiple of four; used the first length"},
		{name: "truncated in the magic of a second section", in: func(n *ng) *ng { return n.iface(1, 0).epb(0, 1, "abc").raw(0x0a, 0x0d, 0x0d, 0x0a, 0) }, want: "1000/3:ax3",
			problems: "packet 2, offset 84: the last block is cut short in its header; the last 5 bytes are lost: unexpected EOF"},
		{name: "byte-order magic damaged", raw: func() []byte { p := bytes.Clone(good.Bytes()); p[9] ^= 4; return p }(), want: abcd,
			problems: "packet 0, offset 0: the byte-order magic is damaged; guessed from the block length"},
		{name: "section header length damaged", raw: func() []byte { p := bytes.Clone(good.Bytes()); p[6] ^= 4; return p }(), want: abcd,
			problems: "packet 0, offset 0: the block runs beyond the end of the file; skipped 28 bytes"},
		{name: "section header destroyed", raw: func() []byte { p := bytes.Clone(good.Bytes()); copy(p[4:], "garbage"); return p }(), want: abcd,
			problems: "packet 0, offset 0: the section header has no known byte order; skipped 28 bytes"},

		{name: "last length differs", raw: damage(36, 99), want: abcd, problems: "packet 2, offset 96: the two lengths of the block differ; used the first length"},
		{name: "first length too long", raw: damage(4, 44), want: acd, problems: "packet 2, offset 96: the two lengths of the block differ; skipped 40 bytes"},
		{name: "first length too short", raw: damage(4, 36), want: acd, problems: "packet 2, offset 96: the two lengths of the block differ; skipped 40 bytes"},
		{name: "first length odd", raw: damage(4, 41), want: acd, problems: "packet 2, offset 96: the block length is not a multiple of four; skipped 40 bytes"},
		{name: "first length beyond the file", raw: damage(4, 0, 0, 1), want: acd, problems: "packet 2, offset 96: the block runs beyond the end of the file; skipped 40 bytes"},
		{name: "first length huge", raw: damage(4, 0, 0, 0, 0xff), want: acd, problems: "packet 2, offset 96: the block length is out of range; skipped 40 bytes"},
		{name: "first length zero", raw: damage(4, 0), want: acd, problems: "packet 2, offset 96: the block length is out of range; skipped 40 bytes"},
		{name: "bytes missing", raw: append(append([]byte(nil), good.Bytes()[:start+size+9]...), good.Bytes()[start+size+12:]...), want: acd,
			problems: "packet 2, offset 96: the two lengths of the block differ; skipped 37 bytes"},
		{name: "bytes too many", raw: append(append(append([]byte(nil), good.Bytes()[:start+size]...), "some garbage!"...), good.Bytes()[start+size:]...), want: abcd,
			problems: "packet 2, offset 96: the block length is out of range; skipped 13 bytes"},
		{name: "hole of zeros", raw: damage(0, make([]byte, size)...), want: acd, problems: "packet 2, offset 96: the block length is out of range; skipped 40 bytes"},
		{name: "last block cut", raw: good.Bytes()[:start+4*size-1], want: "1/5:ax5 2/5:bx5 3/5:cx5",
			problems: "packet 4, offset 176: the block runs beyond the end of the file; the last 39 bytes are lost: unexpected EOF"},
		{name: "block above the limit", max: 1000, in: func(n *ng) *ng {
			return n.iface(1, 0).epb(0, 1, "abc").epb(0, 2, strings.Repeat("x", 2000)).epb(0, 3, "def")
		}, want: "1000/3:ax3 3000/3:dx3", problems: "packet 2, offset 84: the block length is out of range; skipped 2032 bytes"},
		{name: "big blocks", in: func(n *ng) *ng {
			return n.iface(1, 0).epb(0, 1, strings.Repeat("a", 70000)).block(blockNames, make([]byte, 700000)).epb(0, 2, strings.Repeat("b", 700000)).epb(0, 3, "def")
		}, want: "1000/70000:ax70000 2000/700000:bx700000 3000/3:dx3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := c.raw
			if c.in != nil {
				if c.order == nil {
					c.order = le
				}
				in = c.in(newNg(c.order)).Bytes()
			}
			res := readBytes(t, in, Options{MaxRecord: c.max})
			if got := res.text(); got != c.want {
				t.Errorf("packets %s\n   want %s", got, c.want)
			}
			if got := res.problemText(); got != c.problems {
				t.Errorf("problems %s\n    want %s", got, c.problems)
			}
			if c.taps != "" {
				var s []string
				for i, p := range res.taps {
					if p.Interface != i || p.File != "test" {
						t.Errorf("tap %d: %+v", i, p)
					}
					s = append(s, p.Name+"/"+p.Description+"/")
				}
				if got := strings.Join(s, " "); got != c.taps {
					t.Errorf("taps %s, want %s", got, c.taps)
				}
			}
			if len(in) < 1<<20 {
				same(t, readSlowly(t, in, Options{MaxRecord: c.max}), res)
			}
		})
	}
}

// Many interfaces are counted, not trusted.
func TestPcapngInterfaceLimit(t *testing.T) {
	n := newNg(binary.LittleEndian)
	for range maxInterfaces + 2 {
		n.iface(1, 0)
	}
	n.epb(maxInterfaces-1, 1, "abc")
	n.epb(maxInterfaces, 1, "def")
	res := readBytes(t, n.Bytes(), Options{})
	if len(res.packets) != 1 || res.packets[0].Tap != maxInterfaces-1 || res.total != 3 || len(res.taps) != maxInterfaces {
		t.Errorf("%d packets, %d taps, problems %v", len(res.packets), len(res.taps), res.problems)
	}
}

// Blocks that ask for more than there is, again and again.
func TestPcapngDamagedEverywhere(t *testing.T) {
	n := newNg(binary.LittleEndian)
	n.iface(1, 0)
	for i := range 40000 {
		at := n.Len()
		n.epb(0, uint64(i), "abcdefgh")
		if i%4 == 3 {
			binary.LittleEndian.PutUint32(n.Bytes()[at+4:], 15<<20)
		}
	}
	res := readBytes(t, n.Bytes(), Options{})
	if len(res.packets) != 30000 || res.total != 10000 {
		t.Errorf("%d packets, %d problems", len(res.packets), res.total)
	}
}

// Wireshark numbers custom and journal blocks together with packets, and no others.
func TestNumbers(t *testing.T) {
	n := newNg(binary.LittleEndian).iface(1, 0).epb(0, 1, "abc").block(blockCustom, uint32(99), "data").block(blockStatistics, uint32(0), uint64(0)).epb(0, 2, "def").
		block(blockCustomKeep, uint32(99), "data").block(blockJournal, "a=b\n").block(0x80000042, "local use").epb(0, 3, "ghi")
	var got []uint64
	for _, p := range readBytes(t, n.Bytes(), Options{}).packets {
		got = append(got, p.Number)
	}
	if want := []uint64{1, 3, 6}; !slices.Equal(got, want) {
		t.Errorf("numbers %v, want %v", got, want)
	}
}
