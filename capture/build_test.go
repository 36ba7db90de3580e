package capture

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// Builders of hand-made captures, and a reader that collects everything.

type pcapRec struct {
	sec, frac, caplen, length uint32
	data                      []byte
}

// rec is a whole record of n bytes, each of value v.
func rec(sec, frac uint32, n int, v byte) pcapRec {
	return pcapRec{sec, frac, uint32(n), uint32(n), bytes.Repeat([]byte{v}, n)}
}

type pcapOpts struct {
	order        binary.ByteOrder // nil: little-endian
	magic        uint32           // 0: nanoseconds
	major, minor uint16           // 0.0: 2.4
	snap, link   uint32
}

func buildPcap(o pcapOpts, recs ...pcapRec) []byte {
	if o.order == nil {
		o.order = binary.LittleEndian
	}
	if o.magic == 0 {
		o.magic = magicNano
	}
	if o.major == 0 {
		o.major, o.minor = 2, 4
	}
	put := func(b []byte, vs ...uint32) []byte {
		for _, v := range vs {
			var p [4]byte
			o.order.PutUint32(p[:], v)
			b = append(b, p[:]...)
		}
		return b
	}
	b := put(nil, o.magic)
	var p [4]byte
	o.order.PutUint16(p[:], o.major)
	o.order.PutUint16(p[2:], o.minor)
	b = append(b, p[:]...)
	b = put(b, 0, 0, o.snap, o.link)
	if o.magic == magicIxiaHW || o.magic == magicIxiaSW {
		b = put(b, 0x1234)
	}
	for _, r := range recs {
		b = put(b, r.sec, r.frac, r.caplen, r.length)
		if o.magic == magicKuznetzov {
			b = put(b, 3, 0x0800)
		}
		b = append(b, r.data...)
	}
	return b
}

// ng builds a pcapng block by block.
type ng struct {
	bytes.Buffer
	order binary.ByteOrder
}

func newNg(order binary.ByteOrder) *ng {
	n := &ng{}
	n.section(order)
	return n
}

func (n *ng) pack(vs ...any) []byte {
	var b bytes.Buffer
	for _, v := range vs {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
		case []byte:
			b.Write(v)
		default:
			if err := binary.Write(&b, n.order, v); err != nil {
				panic(err)
			}
		}
	}
	return b.Bytes()
}

func pad4(p []byte) []byte { return append(p, make([]byte, -len(p)&3)...) }

func (n *ng) block(typ uint32, body ...any) *ng {
	p := pad4(n.pack(body...))
	size := uint32(len(p) + 12)
	n.Write(n.pack(typ, size, p, size))
	return n
}

func (n *ng) section(order binary.ByteOrder) *ng {
	n.order = order
	return n.block(blockSection, uint32(byteOrderMagic), uint16(1), uint16(0), int64(-1))
}

func (n *ng) opt(code uint16, v []byte) []byte {
	return n.pack(code, uint16(len(v)), pad4(append([]byte(nil), v...)))
}

func (n *ng) iface(link uint16, snap uint32, opts ...[]byte) *ng {
	return n.block(blockInterface, link, uint16(0), snap, bytes.Join(opts, nil))
}

func (n *ng) epb(id uint32, ticks uint64, data string, opts ...[]byte) *ng {
	return n.block(blockEnhanced, id, uint32(ticks>>32), uint32(ticks), uint32(len(data)), uint32(len(data)), pad4([]byte(data)), bytes.Join(opts, nil))
}

func (n *ng) raw(p ...byte) *ng { n.Write(p); return n }

// result is all that a Reader gave.
type result struct {
	packets  []Packet // with Data of their own
	problems []*Problem
	total    int
	taps     []Tap
	err      error // other than io.EOF
}

func collect(tb testing.TB, r Reader) result {
	tb.Helper()
	var res result
	var b Batch
	for {
		err := r.Read(&b)
		if err == nil && len(b.Packets) == 0 || err != nil && len(b.Packets) != 0 {
			tb.Fatalf("Read gave %d packets and error %v", len(b.Packets), err)
		}
		for _, p := range b.Packets {
			if cap(p.Data) != len(p.Data) {
				tb.Fatalf("packet %d: data not capped", p.Number)
			}
			p.Data = append([]byte{}, p.Data...)
			res.packets = append(res.packets, p)
		}
		if err == nil {
			continue
		}
		if again := r.Read(&b); again != err || len(b.Packets) != 0 {
			tb.Fatalf("after %v Read gave %v", err, again)
		}
		if err != io.EOF {
			res.err = err
		}
		break
	}
	res.problems, res.total = r.Problems()
	res.taps = r.(Tapper).Taps()
	if err := r.Close(); err != nil {
		tb.Fatal(err)
	}
	return res
}

func readBytes(tb testing.TB, p []byte, opts Options) result {
	tb.Helper()
	r, err := NewReader(bytes.NewReader(p), "test", opts)
	if err != nil {
		tb.Fatal(err)
	}
	return collect(tb, r)
}

// readSlowly reads byte by byte into the smallest batches.
func readSlowly(tb testing.TB, p []byte, opts Options) result {
	tb.Helper()
	opts.BatchSize = 1
	r, err := NewReader(iotest.OneByteReader(bytes.NewReader(p)), "test", opts)
	if err != nil {
		tb.Fatal(err)
	}
	return collect(tb, r)
}

func writeFile(tb testing.TB, name string, p []byte) string {
	tb.Helper()
	if !strings.Contains(name, "/") {
		name = filepath.Join(tb.TempDir(), name)
	}
	if err := os.WriteFile(name, p, 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}

// same compares packets and problems.
func same(tb testing.TB, got, want result) {
	tb.Helper()
	samePackets(tb, got.packets, want.packets)
	if got.total != want.total {
		tb.Fatalf("%d problems, want %d\n%v\n%v", got.total, want.total, got.problems, want.problems)
	}
	for i, p := range got.problems {
		if p.Error() != want.problems[i].Error() {
			tb.Fatalf("problem %q, want %q", p, want.problems[i])
		}
	}
}

func samePackets(tb testing.TB, got, want []Packet) {
	tb.Helper()
	for i := range min(len(got), len(want)) {
		g, w := got[i], want[i]
		if !bytes.Equal(g.Data, w.Data) {
			tb.Fatalf("packet %d: data % x, want % x", i+1, g.Data, w.Data)
		}
		g.Data, w.Data = nil, nil
		if g.Time != w.Time || g.Number != w.Number || g.Offset != w.Offset || g.Length != w.Length || g.Tap != w.Tap || g.Link != w.Link {
			tb.Fatalf("packet %d: %+v, want %+v", i+1, g, w)
		}
	}
	if len(got) != len(want) {
		tb.Fatalf("%d packets, want %d", len(got), len(want))
	}
}

// text makes a result short enough for a table: per packet
// "time length:data", where data is given by its first byte and its length.
func (r result) text() string {
	var b strings.Builder
	for i, p := range r.packets {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(itoa(p.Time) + "/" + itoa(int64(p.Length)) + ":")
		if len(p.Data) > 0 {
			b.WriteString(string(p.Data[:1]) + "x" + itoa(int64(len(p.Data))))
		}
		if p.Tap != 0 {
			b.WriteString("@" + itoa(int64(p.Tap)))
		}
		if p.Link != LinkEthernet {
			b.WriteString("~" + itoa(int64(p.Link)))
		}
	}
	return b.String()
}

func itoa(n int64) string {
	if n < 1e9 {
		return strconv.FormatInt(n, 10)
	}
	s := strconv.FormatInt(n/1e9, 10) + "s" // seconds apart from nanoseconds
	if n%1e9 != 0 {
		s += strconv.FormatInt(n%1e9, 10)
	}
	return s
}

// problemText joins problems, without the file name.
func (r result) problemText() string {
	var s []string
	for _, p := range r.problems {
		s = append(s, strings.TrimPrefix(p.Error(), "test: "))
	}
	return strings.Join(s, "\n")
}
