package duplicates

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

const samples = "../../samples/"

// packets reads a sample. The packets stay valid.
func packets(t testing.TB, name string) []capture.Packet {
	t.Helper()
	r, err := capture.Open([]string{samples + name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []capture.Packet
	var b capture.Batch
	for r.Read(&b) == nil {
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			list = append(list, p)
		}
	}
	return list
}

// reader passes packets on, a few at a time.
type reader struct {
	list []capture.Packet
	taps []capture.Tap
	seen int // of taps
}

func (r *reader) Read(b *capture.Batch) error {
	b.Packets = b.Packets[:0]
	if len(r.list) == 0 {
		return io.EOF
	}
	n := min(100, len(r.list))
	b.Packets = append(b.Packets, r.list[:n]...)
	r.list = r.list[n:]
	for _, p := range b.Packets {
		r.seen = max(r.seen, int(p.Tap)+1)
	}
	return nil
}

func (r *reader) Problems() ([]*capture.Problem, int) { return nil, 0 }
func (r *reader) Close() error                        { return nil }
func (r *reader) Taps() []capture.Tap {
	if r.taps != nil {
		return r.taps[:r.seen]
	}
	return make([]capture.Tap, r.seen)
}

// second is the Offset that tests give to copies.
const second = -1

// twice adds a copy of each packet, later by delay and up to jitter. Of both, it loses a share, in percent. change changes copies.
func twice(list []capture.Packet, delay, jitter int64, loss int, change func([]byte)) []capture.Packet {
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []capture.Packet
	for _, p := range list {
		if rnd.IntN(100) >= loss {
			all = append(all, p)
		}
		if rnd.IntN(100) < loss {
			continue
		}
		p.Time += delay + rnd.Int64N(jitter+1)
		p.Offset = second
		if change != nil {
			p.Data = bytes.Clone(p.Data)
			change(p.Data)
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b capture.Packet) int { return cmp.Compare(a.Time, b.Time) })
	return all
}

// routed is what a router does to a frame: addresses of the link, hop limit and checksum.
func routed(b []byte) {
	copy(b, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02")
	switch binary.BigEndian.Uint16(b[12:]) {
	case 0x0800:
		b[22]--
		binary.BigEndian.PutUint16(b[24:], binary.BigEndian.Uint16(b[24:])+0x100)
	case 0x86dd:
		b[21]--
	}
}
