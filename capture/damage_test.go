package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

// Small captures to damage.
func smallCaptures() map[string][]byte {
	const sec = 1_700_000_000
	recs := []pcapRec{rec(sec, 1, 20, 'a'), rec(sec, 2, 33, 'b'), rec(sec, 3, 60, 'c'), rec(sec+1, 4, 1, 'd'), rec(sec+1, 5, 90, 'e'), rec(sec+2, 6, 20, 'f')}
	n := newNg(binary.LittleEndian)
	n.iface(1, 0, n.opt(ifName, []byte("eth0")), n.opt(ifResolution, []byte{9}))
	for i, r := range recs {
		n.epb(0, uint64(i), string(r.data))
	}
	b := newNg(binary.BigEndian)
	b.iface(1, 0)
	for i, r := range recs {
		b.epb(0, uint64(i), string(r.data), b.opt(optComment, []byte("hi")))
	}
	return map[string][]byte{
		"pcap":               buildPcap(pcapOpts{link: 1}, recs...),
		"pcap, big-endian":   buildPcap(pcapOpts{link: 1, magic: magicMicro, order: binary.BigEndian}, recs...),
		"pcap, Kuznetzov":    buildPcap(pcapOpts{link: 1, magic: magicKuznetzov}, recs...),
		"pcapng":             n.Bytes(),
		"pcapng, big-endian": b.Bytes(),
	}
}

// tryRead reads what may not be a capture.
func tryRead(tb testing.TB, p []byte) (result, bool) {
	r, err := NewReader(bytes.NewReader(p), "test", Options{BatchSize: 4096})
	if err != nil {
		var fe *FormatError
		if !errors.As(err, &fe) && !errors.Is(err, errEmpty) {
			tb.Fatal(err)
		}
		return result{}, false
	}
	return collect(tb, r), true
}

// intact counts the packets of want that got has unchanged.
func intact(got, want []Packet) int {
	n := 0
	for _, w := range want {
		if slices.ContainsFunc(got, func(g Packet) bool {
			return g.Offset == w.Offset && g.Time == w.Time && g.Length == w.Length && bytes.Equal(g.Data, w.Data)
		}) {
			n++
		}
	}
	return n
}

// One flipped byte costs one packet at most, unless it is in a header that the
// packets need.
func TestEveryByteFlipped(t *testing.T) {
	for name, in := range smallCaptures() {
		t.Run(name, func(t *testing.T) {
			want := readBytes(t, in, Options{}).packets
			needed := int(want[0].Offset)
			for i := range in {
				for _, mask := range []byte{0x01, 0x04, 0x20, 0x80, 0xff} {
					p := bytes.Clone(in)
					p[i] ^= mask
					res, ok := tryRead(t, p)
					if !ok {
						if i >= 4 {
							t.Fatalf("byte %d ^ %#x: not recognised", i, mask)
						}
						continue
					}
					if len(res.packets) > len(want)+1 {
						t.Errorf("byte %d ^ %#x: %d packets", i, mask, len(res.packets))
					}
					if n := intact(res.packets, want); i >= needed && n < len(want)-1 {
						t.Errorf("byte %d ^ %#x: only %d packets of %d\n%v", i, mask, n, len(want), res.problems)
					}
					same(t, readSlowly(t, p, Options{}), res)
				}
			}
		})
	}
}

// Of a truncated capture all whole packets are read, and the cut is told.
func TestEveryTruncation(t *testing.T) {
	for name, in := range smallCaptures() {
		t.Run(name, func(t *testing.T) {
			want := readBytes(t, in, Options{}).packets
			ends := []int{24, int(want[0].Offset)} // places to stop at without a trace
			if in[0] == 0x0a {
				ends[0] = sectionMinimum
			}
			for _, p := range want[1:] {
				ends = append(ends, int(p.Offset))
			}
			ends = append(ends, len(in))
			for n := range len(in) + 1 {
				res, ok := tryRead(t, in[:n])
				if !ok {
					if n >= 4 {
						t.Fatalf("%d bytes: not recognised", n)
					}
					continue
				}
				whole := 0
				for i := range want {
					if ends[i+2] <= n {
						whole++
					}
				}
				samePackets(t, res.packets, want[:whole])
				problems := 1
				if slices.Contains(ends, n) {
					problems = 0
				}
				if res.total != problems {
					t.Errorf("%d bytes: problems %v", n, res.problems)
				}
				same(t, readSlowly(t, in[:n], Options{}), res)
			}
		})
	}
}

// Whole ranges overwritten or missing, anywhere.
func TestEveryHole(t *testing.T) {
	for name, in := range smallCaptures() {
		t.Run(name, func(t *testing.T) {
			want := readBytes(t, in, Options{}).packets
			first := int(want[0].Offset)
			for _, size := range []int{1, 3, 4, 16, 50} {
				at := first
				if strings.Contains(name, "Kuznetzov") {
					at += 4 // without its first word, the first record still makes sense
				}
				for ; at+size <= len(in); at++ {
					for _, fill := range []int{0, 0xff, -1} {
						p := bytes.Clone(in)
						if fill < 0 {
							p = slices.Delete(p, at, at+size)
						} else {
							copy(p[at:], bytes.Repeat([]byte{byte(fill)}, size))
						}
						res, _ := tryRead(t, p)
						// Count those that the hole does not touch.
						lost := 0
						for i, w := range want {
							end := len(in)
							if i+1 < len(want) {
								end = int(want[i+1].Offset)
							}
							touched := int(w.Offset) < at+size && at < end
							if !touched && !slices.ContainsFunc(res.packets, func(g Packet) bool { return g.Time == w.Time && bytes.Equal(g.Data, w.Data) }) {
								lost++
							}
						}
						// A record that lost bytes takes as many of
						// its neighbours, of which one is tiny.
						if lost > 1 && (fill >= 0 || lost > 2 || size < 18) {
							t.Errorf("%d bytes at %d, %d: lost %d others\n%s\n%v", size, at, fill, lost, res.text(), res.problems)
						}
						if len(res.packets) > len(want)+1 {
							t.Errorf("%d bytes at %d, %d: %d packets", size, at, fill, len(res.packets))
						}
					}
				}
			}
		})
	}
}
