package capture

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"
)

// checkCapture reads p whole and in small pieces, and checks what must hold
// for any bytes.
func checkCapture(t *testing.T, p []byte) {
	res, ok := tryRead(t, p)
	if !ok {
		return
	}
	if res.err != nil {
		t.Fatal(res.err)
	}
	if len(res.packets) > len(p)/pcapRecordHeader {
		t.Fatalf("%d packets in %d bytes", len(res.packets), len(p))
	}
	last, number := int64(-1), uint64(0)
	for _, q := range res.packets {
		if q.Number <= number || q.Offset <= last || q.Offset+int64(len(q.Data)) > int64(len(p)) || int(q.Length) < len(q.Data) || int(q.Tap) >= len(res.taps) {
			t.Fatalf("packet %+v after offset %d, %d taps, file of %d bytes", q, last, len(res.taps), len(p))
		}
		last, number = q.Offset, q.Number
		if !bytes.Contains(p[q.Offset:], q.Data) {
			t.Fatalf("packet %d is not in the file", q.Number)
		}
	}
	for _, q := range res.problems {
		if q.Offset < 0 || q.Offset > int64(len(p)) || q.Packet > uint64(len(p)/blockOverhead+1) || q.Text == "" {
			t.Fatalf("%+v", q)
		}
	}
	opts := Options{BatchSize: 1}
	r, err := NewReader(iotest.HalfReader(bytes.NewReader(p)), "test", opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, collect(t, r), res)
	if len(p) < 4096 {
		same(t, readSlowly(t, p, opts), res)
	}
}

func FuzzPcap(f *testing.F) {
	for _, p := range smallCaptures() {
		if p[0] != 0x0a {
			f.Add(p)
		}
	}
	f.Add(buildPcap(pcapOpts{link: 0x24000001, major: 2, minor: 3, snap: 40}, rec(1, 0, 50, 'a'), rec(2, 0, 3, 'b')))
	f.Add(buildPcap(pcapOpts{link: 1, magic: magicIxiaHW}, pcapRec{}, rec(2, 0, 3, 'b')))
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) >= 4 && binary.LittleEndian.Uint32(p) == blockSection || isCompressed(p) {
			return
		}
		checkCapture(t, p)
	})
}

func FuzzPcapng(f *testing.F) {
	for _, p := range smallCaptures() {
		if p[0] == 0x0a {
			f.Add(p)
		}
	}
	n := newNg(binary.LittleEndian)
	n.iface(1, 4, n.opt(ifResolution, []byte{0x8a}), n.opt(ifOffset, n.pack(int64(5))), n.opt(ifFCSLength, []byte{4}))
	n.block(blockPacket, uint16(0), uint16(7), uint32(0), uint32(9), uint32(3), uint32(1514), "abc")
	n.block(blockSimple, uint32(60), "cdef").block(blockNames, "xxxx").epb(0, 1, "abcdefg", n.opt(epbFlags, n.pack(uint32(2<<5))))
	n.section(binary.BigEndian).iface(113, 0).epb(0, 3, "abc")
	f.Add(n.Bytes())
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) < 4 || binary.LittleEndian.Uint32(p) != blockSection {
			p = append([]byte{0x0a, 0x0d, 0x0d, 0x0a}, p...)
		}
		checkCapture(t, p)
	})
}

func isCompressed(p []byte) bool {
	return len(p) >= 2 && p[0] == 0x1f && p[1] == 0x8b || len(p) >= 4 && isZstd(p)
}

// drain counts packets. It gives up with -1 after 64 MiB of them: few bytes
// compressed are many packets.
func drain(t *testing.T, r Reader) int {
	defer r.Close()
	var b Batch
	n, size := 0, 0
	for size < 64<<20 {
		err := r.Read(&b)
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			n++
			size += len(p.Data) + 64
			if p.Number != uint64(n) {
				t.Fatalf("packet %d has number %d", n, p.Number)
			}
		}
	}
	return -1
}
