package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// most of what comes out is compared.
const mostOut = 4 << 20

// byLibrary decompresses p, with checksums computed by the library.
func byLibrary(t testing.TB, p []byte) ([]byte, error) {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(p), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20),
		zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f := &frames{z, 8 << 20}
	var out []byte
	buf := make([]byte, 10_000)
	for len(out) < mostOut {
		n, err := f.Read(buf)
		out = append(out, buf[:n]...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// unchecked is p decompressed by a library that leaves the checksums to us.
func unchecked(t testing.TB, r io.Reader) *summed {
	t.Helper()
	w := &frameWatch{r: r}
	z, err := zstd.NewReader(w, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20), zstd.IgnoreChecksum(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Close)
	return newSummed(&frames{z, 8 << 20}, w)
}

// byBlocks decompresses in blocks of size bytes, on one goroutine, after a first part of less than head bytes.
func byBlocks(t testing.TB, r io.Reader, head, size int) ([]byte, error) {
	t.Helper()
	z := unchecked(t, r)
	out := make([]byte, 0, head)
	for len(out) < head {
		n, err := z.Read(out[len(out):head])
		out = out[:len(out)+n]
		if err != nil {
			return out, err
		}
	}
	a := newAhead(z, size)
	var b block
	for len(out) < mostOut {
		a.fill(&b, size)
		if len(b.ends) > mostEnds || len(b.data()) > size {
			t.Fatalf("a block has %d bytes and %d ends", len(b.data()), len(b.ends))
		}
		z.check(&b)
		out = append(out, b.data()...)
		if b.err != nil {
			return out, b.err
		}
	}
	return out, nil
}

// sameFrames fails unless the library and we agree about p.
func sameFrames(t testing.TB, p []byte, how func(io.Reader) io.Reader, head, size int) {
	t.Helper()
	want, wantErr := byLibrary(t, p)
	size = max(size, len(want)/5000) // a bomb in tiny blocks takes too long
	got, err := byBlocks(t, how(bytes.NewReader(p)), head, size)
	if len(want) >= mostOut && len(got) >= mostOut {
		want, got, wantErr, err = want[:mostOut], got[:mostOut], nil, nil
	}
	if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) || errors.Is(err, zstd.ErrCRCMismatch) != errors.Is(wantErr, zstd.ErrCRCMismatch) {
		t.Fatalf("%d bytes and %v, want %d bytes and %v (head %d, blocks of %d)", len(got), err, len(want), wantErr, head, size)
	}
}

func asIs(r io.Reader) io.Reader { return r }

// frameOf compresses text to a frame.
func frameOf(t testing.TB, text []byte, summed bool) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderCRC(summed), zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	if err != nil {
		t.Fatal(err)
	}
	w.Write(text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rawFrame is a frame of one byte of window, with blocks that are not compressed, and any of them empty.
func rawFrame(summed bool, blocks ...string) []byte {
	p := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x40} // a window of 256 KiB
	if summed {
		p[4] = 4
	}
	var text []byte
	for i, b := range blocks {
		h := uint32(len(b)) << 3
		if i == len(blocks)-1 {
			h |= 1
		}
		if len(b) > 1 && strings.Count(b, b[:1]) == len(b) { // RLE
			p = append(p, byte(h|2), byte(h>>8), byte(h>>16), b[0])
		} else {
			p = append(p, byte(h), byte(h>>8), byte(h>>16))
			p = append(p, b...)
		}
		text = append(text, b...)
	}
	if summed {
		p = binary.LittleEndian.AppendUint32(p, uint32(xxhash.Sum64(text)))
	}
	return p
}

// skippable is a frame that is not decompressed (RFC 8878 section 3.1.2).
func skippable(n int, kind byte) []byte {
	p := binary.LittleEndian.AppendUint32([]byte{0x50 | kind, 0x2a, 0x4d, 0x18}, uint32(n))
	return append(p, make([]byte, n)...)
}

// frameList are frames of all kinds, in any order.
func frameList(t testing.TB, rnd *rand.Rand, n int) []byte {
	t.Helper()
	text := make([]byte, 400_000)
	for i := range text {
		text[i] = byte(rnd.IntN(1 + i%60))
	}
	var p []byte
	for range n {
		summed := rnd.IntN(3) > 0
		switch rnd.IntN(8) {
		case 0:
			p = append(p, skippable(rnd.IntN(30)*rnd.IntN(30), byte(rnd.IntN(16)))...)
		case 1:
			p = append(p, rawFrame(summed, "")...)
		case 2:
			p = append(p, rawFrame(summed, "ab", "", "ccccccc", "d", "")...)
		case 3:
			for range rnd.IntN(150) {
				p = append(p, rawFrame(summed, string(text[:rnd.IntN(3)]))...)
			}
		case 4:
			p = append(p, frameOf(t, text[:rnd.IntN(len(text))], summed)...)
		default:
			at := rnd.IntN(len(text) - 5000)
			p = append(p, frameOf(t, text[at:at+rnd.IntN(5000)], summed)...)
		}
	}
	return p
}

// TestFrames: the same bytes and errors as with the library's own checks, of files with many frames, each as it is, cut, and changed;
// whatever the size of blocks.
func TestFrames(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 3))
	hows := []func(io.Reader) io.Reader{asIs, asIs, iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader}
	for i := range sampled.Rounds(60) {
		p := frameList(t, rnd, 1+rnd.IntN(12))
		head, size := rnd.IntN(40), 1+rnd.IntN(1<<(1+rnd.IntN(18)))
		if size < 50 {
			p = p[:min(len(p), 10_000)]
		}
		if _, err := byLibrary(t, p); err != io.EOF && size >= 50 {
			t.Fatal(err)
		}
		how := hows[i%len(hows)]
		sameFrames(t, p, how, head, size)
		for range sampled.Rounds(10) {
			if len(p) == 0 {
				break
			}
			sameFrames(t, p[:rnd.IntN(len(p))], how, head, size)
			q := bytes.Clone(p)
			q[rnd.IntN(len(q))] ^= 1 << rnd.IntN(8)
			sameFrames(t, q, how, head, size)
		}
	}
}

// TestWrongSums: each wrong checksum is found, and what comes before it is there.
func TestWrongSums(t *testing.T) {
	text := bytes.Repeat([]byte("what is in a frame "), 100)
	for name, frame := range map[string][]byte{
		"compressed": frameOf(t, text, true), "raw": rawFrame(true, "abc", "d"), "last block empty": rawFrame(true, "abc", ""), "empty": rawFrame(true, ""), "one byte": rawFrame(true, "a"),
	} {
		content, _ := byLibrary(t, frame)
		for _, front := range [][]byte{nil, rawFrame(true, ""), rawFrame(true, "front"), rawFrame(false, "front"), rawFrame(false, ""), skippable(3, 0)} {
			for _, behind := range [][]byte{nil, rawFrame(true, ""), rawFrame(true, "behind"), rawFrame(false, "behind"), skippable(9, 1), []byte("rubbish")} {
				p := bytes.Join([][]byte{front, frame, behind}, nil)
				p[len(front)+len(frame)-1] ^= 0x10
				before, _ := byLibrary(t, front)
				want := string(before) + string(content)
				for i, size := range []int{1, 3, 4, 5, 1000, 1 << 20} {
					got, err := byBlocks(t, bytes.NewReader(p), len(want)*(i%3)/2+i%3, size)
					if !errors.Is(err, zstd.ErrCRCMismatch) || string(got) != want {
						t.Errorf("%s, in front %q, behind %q: %q and %v", name, front, behind, got, err)
					}
				}
				sameFrames(t, p, asIs, 0, 100)
			}
		}
	}
}

// TestEmptySum: the constant is the checksum of nothing.
func TestEmptySum(t *testing.T) {
	if uint32(xxhash.Sum64(nil)) != emptySum {
		t.Errorf("%#x", uint32(xxhash.Sum64(nil)))
	}
}

// TestBare: where no frame has a checksum, none is computed; where one has, it is.
func TestBare(t *testing.T) {
	for _, c := range []struct {
		p    []byte
		bare bool
	}{
		{rawFrame(false, "abc", "def"), true},
		{rawFrame(true, "abc", "def"), false},
		{append(rawFrame(false, "abc"), rawFrame(true, "def")...), false},
		{append(rawFrame(true, "abc"), rawFrame(false, "def")...), false},
		{append(rawFrame(false, "abc"), rawFrame(false, "def")...), true},
	} {
		var b block
		newAhead(unchecked(t, bytes.NewReader(c.p)), 100).fill(&b, 25)
		if string(b.data()) != "abcdef" || b.bare != c.bare {
			t.Errorf("%x: %q, %v", c.p, b.data(), b.bare)
		}
	}
	// A frame that is not checked, and goes on from a block that is.
	p := bytes.Join([][]byte{rawFrame(true, "abcd"), rawFrame(false, "efgh", "ijklmnopqrst"), rawFrame(true, "uvw")}, nil)
	for size := 1; size < 30; size++ {
		if got, err := byBlocks(t, bytes.NewReader(p), 0, size); err != io.EOF || string(got) != "abcdefghijklmnopqrstuvw" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestHeaderSize: as the library has it, for each descriptor.
func TestHeaderSize(t *testing.T) {
	for d := range 256 {
		p := append([]byte{0x28, 0xb5, 0x2f, 0xfd, byte(d), 0x40}, make([]byte, 20)...)
		var h zstd.Header
		if err := h.Decode(p); err != nil {
			if d&8 == 0 {
				t.Errorf("%#x: %v", d, err)
			}
			continue // the reserved bit
		}
		if n := headerSize(byte(d)); n != int64(h.HeaderSize-5) || h.HasCheckSum != (d&4 != 0) {
			t.Errorf("%#x: %d bytes, want %d", d, n, h.HeaderSize-5)
		}
	}
}

// TestProcessors: whoever computes the checksums, which depends on how many processors there are, they count.
func TestProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	in := lots(1000)
	p := zs(in[:len(in)/3], in[len(in)/3:])
	bad := bytes.Clone(p)
	bad[len(bad)-1] ^= 1
	for _, n := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(n)
		if res := openBytes(t, p, Options{}); len(res.packets) != 1000 || res.total != 0 {
			t.Errorf("%d processors: %d packets, %v", n, len(res.packets), res.problems)
		}
		if res := openBytes(t, bad, Options{}); len(res.packets) != 1000 || res.total != 1 || !errors.Is(res.problems[0], zstd.ErrCRCMismatch) {
			t.Errorf("%d processors: %d packets, %v", n, len(res.packets), res.problems)
		}
	}
}

// over fails the test when there is nothing more to read.
type over struct{ t *testing.T }

func (o over) Read([]byte) (int, error) {
	o.t.Error("waits for more")
	return 0, io.EOF
}

// TestWrongSumInPipe: it is found without waiting for what comes behind it.
func TestWrongSumInPipe(t *testing.T) {
	p := zs(lots(300))
	p[len(p)-1] ^= 1
	r, err := NewReader(io.MultiReader(bytes.NewReader(p), over{t}), "x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if res := collect(t, r); len(res.packets) != 300 || res.total != 1 {
		t.Errorf("%d packets, %v", len(res.packets), res.problems)
	}
}

// unreadable is a file that cannot be read to its end.
type unreadable struct{ io.Reader }

func (unreadable) Close() error { return nil }

// TestWrongSumBeforeFailure: what is read ahead of a wrong checksum does not count, even if it cannot be read.
func TestWrongSumBeforeFailure(t *testing.T) {
	in := lots(300)
	p := zs(in)
	p[len(p)-1] ^= 1
	p = append(p, zs(lots(300))...)
	errFails := errors.New("cannot be read")
	r, err := OpenSeries([]Source{{Name: "x", Open: func() (io.ReadCloser, error) {
		return unreadable{io.MultiReader(bytes.NewReader(p), iotest.ErrReader(errFails))}, nil
	}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	packets, err := readAll(r)
	if ps, n := r.Problems(); err != io.EOF || len(packets) != 300 || n != 1 || !errors.Is(ps[0], zstd.ErrCRCMismatch) {
		t.Errorf("%d packets, %v, %v", len(packets), err, ps)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzFrames: any input gives the same bytes and errors as with the library's own checks.
func FuzzFrames(f *testing.F) {
	rnd := rand.New(rand.NewPCG(11, 4))
	for i := range 12 {
		p := frameList(f, rnd, 1+i%4)
		f.Add(p[:min(len(p), 4000)], uint8(i), uint16(1)<<i)
	}
	f.Add(rawFrame(true, "ab", "", "c", ""), uint8(1), uint16(2))
	f.Add(bytes.Join([][]byte{rawFrame(true, ""), skippable(5, 3), rawFrame(false, "x"), rawFrame(true, "y")}, nil), uint8(0), uint16(7))
	f.Fuzz(func(t *testing.T, p []byte, head uint8, size uint16) {
		if len(p) > 1<<14 {
			return
		}
		sameFrames(t, p, asIs, int(head&31), 1+int(size))
	})
}
