package inflate

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

// all reads everything, in parts of n bytes.
func all(r io.Reader, n int) ([]byte, error) {
	var out []byte
	buf := make([]byte, n)
	for {
		k, err := r.Read(buf)
		out = append(out, buf[:k]...)
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return out, err
		}
	}
}

// most is n, or a tenth with -short.
func most(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// own decompresses with this package, std with Go's.
func own(p []byte) ([]byte, error) {
	r, err := NewReader(bytes.NewReader(p))
	if err != nil {
		return nil, err
	}
	return all(r, 1<<16)
}

func std(p []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		return nil, err
	}
	return all(r, 1<<16)
}

// texts are what is compressed: of all kinds of codes and distances.
func texts(t testing.TB) map[string][]byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	list := map[string][]byte{"empty": nil, "one": []byte("x"), "zeros": make([]byte, 1<<20)}
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	list["noise"] = noise
	few := make([]byte, 200_000) // skewed: codes of all lengths
	for i := range few {
		n := 0
		for n < 30 && rng.Uint32()&1 != 0 {
			n++
		}
		few[i] = byte(n * 7)
	}
	list["skewed"] = few
	var near []byte // each distance that is short, and far ones
	for i := range 600 {
		near = append(near, noise[i*13:i*13+1+i%40]...)
		back := 1 + i%60
		if i%5 == 0 {
			back = min(len(near), 32768-i)
		}
		back = min(back, len(near))
		for range 3 + i%300 {
			near = append(near, near[len(near)-back])
		}
	}
	list["distances"] = near
	files, _ := filepath.Glob("../../../samples/*.pcap.zst")
	if len(files) < 5 {
		t.Fatal("no samples")
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if b, err = d.DecodeAll(b, nil); err != nil {
			t.Fatal(err)
		}
		list[filepath.Base(name)] = b[:min(len(b), 1<<20)]
	}
	return list
}

// zipped compresses, with several members if parts > 1.
func zipped(t testing.TB, level, parts int, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for i := range parts {
		w, err := gzip.NewWriterLevel(&b, level)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
		}
		w.Write(text[len(text)*i/parts : len(text)*(i+1)/parts])
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	for name, text := range texts(t) {
		text = text[:min(len(text), most(200_000))]
		for _, level := range []int{flate.HuffmanOnly, 0, 1, 9} {
			for _, parts := range []int{1, 3} {
				p := zipped(t, level, parts, text)
				for how, src := range map[string]io.Reader{
					"whole": bytes.NewReader(p), "bytes": iotest.OneByteReader(bytes.NewReader(p)), "halves": iotest.HalfReader(bytes.NewReader(p)),
					"data with error": iotest.DataErrReader(bytes.NewReader(p)),
				} {
					r, err := NewReader(src)
					if err != nil {
						t.Fatal(name, level, parts, how, err)
					}
					got, err := all(r, 1<<(4+3*parts))
					if err != nil || !bytes.Equal(got, text) {
						t.Errorf("%s, level %d, %d members, %s: %d bytes, want %d; %v", name, level, parts, how, len(got), len(text), err)
					}
				}
			}
		}
	}
}

// TestCut: what comes before a cut comes out, and then an error.
func TestCut(t *testing.T) {
	text := texts(t)["distances"][:most(6000)]
	for _, level := range []int{flate.HuffmanOnly, 0, 6} {
		p := zipped(t, level, 2, text)
		for n := range p {
			got, err := own(p[:n])
			want, wantErr := std(p[:n])
			if (err == nil) != (wantErr == nil) || err != nil && n > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("level %d, %d bytes: %v, want %v", level, n, err, wantErr)
			}
			if len(got) < len(want) || !bytes.Equal(got, text[:len(got)]) {
				t.Fatalf("level %d, %d bytes: %d bytes came out, want at least %d", level, n, len(got), len(want))
			}
		}
	}
}

// same fails unless both packages agree about p: what they accept, and all that comes out. Of what is damaged, this one may
// have a little more or less.
func same(t testing.TB, p []byte) {
	t.Helper()
	got, err := own(p)
	want, wantErr := std(p)
	n := min(len(got), len(want))
	if (err == nil) != (wantErr == nil) || err == nil && len(got) != len(want) || !bytes.Equal(got[:n], want[:n]) {
		t.Fatalf("%d bytes and %v, want %d bytes and %v", len(got), err, len(want), wantErr)
	}
	for _, e := range []struct{ own, std error }{{ErrChecksum, gzip.ErrChecksum}, {ErrHeader, gzip.ErrHeader}} {
		if (err == e.own) != (wantErr == e.std) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
	}
}

func TestDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, text := range texts(t) {
		text = text[:min(len(text), 30_000)]
		for _, level := range []int{flate.HuffmanOnly, 0, 6} {
			p := zipped(t, level, 2, text)
			for range most(50) {
				q := bytes.Clone(p)
				for range 1 + rng.IntN(3) {
					q[rng.IntN(len(q))] ^= 1 << rng.IntN(8)
				}
				t.Run(fmt.Sprint(name, level), func(t *testing.T) { same(t, q) })
			}
		}
	}
}

// wrapped is a deflated stream as a member.
func wrapped(stream, text []byte) []byte {
	p := append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, stream...)
	p = binary.LittleEndian.AppendUint32(p, crc32.ChecksumIEEE(text))
	return binary.LittleEndian.AppendUint32(p, uint32(len(text)))
}

func TestMalformed(t *testing.T) {
	head := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	for name, p := range map[string]string{
		"no magic":                "xxxxxxxxxxxxxxxxxxxxxxxx",
		"method":                  "\x1f\x8b\x09\x00\x00\x00\x00\x00\x00\xff",
		"rubbish behind a member": string(wrapped([]byte{3, 0}, nil)) + "rubbish behind",
		"zero behind a member":    string(wrapped([]byte{3, 0}, nil)) + "\x00",
		"empty member":            string(wrapped([]byte{3, 0}, nil)),
		"reserved block":          head + "\x07\x00\x00\x00\x00\x00\x00\x00\x00",
		"stored length":           head + "\x01\x05\x00\x05\x00hello\x00\x00\x00\x00",
		"far back":                head + "\x03\x1e\x00\x00\x00\x00\x00\x00\x00\x00",
		"header CRC":              "\x1f\x8b\x08\x02\x00\x00\x00\x00\x00\xff\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"endless name":            "\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xff" + string(bytes.Repeat([]byte("n"), 3*maxName)),
	} {
		t.Run(name, func(t *testing.T) { same(t, []byte(p)) })
	}
}

// waiting is a source that must not be read any more.
type waiting struct {
	p []byte
	t *testing.T
}

func (w *waiting) Read(p []byte) (int, error) {
	if len(w.p) == 0 {
		w.t.Error("waits for input although there is something to return")
		return 0, io.EOF
	}
	n := copy(p, w.p)
	w.p = w.p[n:]
	return n, nil
}

// TestWaits: what a writer has flushed comes out, although there is no more input yet.
func TestWaits(t *testing.T) {
	for _, level := range []int{flate.HuffmanOnly, 0, 6} {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, level)
		text := []byte("what a writer has flushed, what a writer has flushed")
		w.Write(text)
		w.Flush()
		r, err := NewReader(&waiting{b.Bytes(), t})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		for n := 0; n < len(text); {
			k, err := r.Read(got[n:])
			if n += k; err != nil {
				t.Fatal(level, n, err)
			}
		}
		if !bytes.Equal(got, text) {
			t.Errorf("level %d: %q", level, got)
		}
	}
}

// TestTableSize: no code needs more second tables than there is room for. The worst complete codes leave as little as
// they can to short symbols, and share out what is left among as many tables as they can.
func TestTableSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	table := make([]entry, litEntries)
	for range most(20_000) {
		n := 20 + rng.IntN(maxLits-20)
		lengths := completeCode(rng, n)
		if !build(table, litBits, lengths, litSymbols[:]) {
			t.Fatal("a complete code is refused: ", lengths)
		}
		if n = 2 + rng.IntN(28); !build(table[:dstEntries], distBits, completeCode(rng, n), distSymbols[:]) {
			t.Fatal("a complete code of distances is refused")
		}
	}
}

// completeCode is a complete code of n symbols: leaves of a tree that grows at random.
func completeCode(rng *rand.Rand, n int) []uint8 {
	lengths := []uint8{1, 1}
	deep := rng.IntN(4) // how much long codes are preferred
	for len(lengths) < n {
		at := rng.IntN(len(lengths))
		for range deep {
			if o := rng.IntN(len(lengths)); lengths[o] > lengths[at] && lengths[o] < maxCode {
				at = o
			}
		}
		if lengths[at] < maxCode {
			lengths[at]++
			lengths = append(lengths, lengths[at])
		}
	}
	rng.Shuffle(len(lengths), func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	return lengths
}

func TestAllocations(t *testing.T) {
	p := zipped(t, 6, 1, bytes.Repeat(texts(t)["distances"], 20))
	r, err := NewReader(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := r.Read(buf); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a read", n)
	}
}

func FuzzReader(f *testing.F) {
	for _, text := range texts(f) {
		for _, level := range []int{flate.HuffmanOnly, 0, 6} {
			f.Add(zipped(f, level, 1, text[:min(len(text), 2000)]), false)
			f.Add(zipped(f, level, 2, text[:min(len(text), 500)])[10:], true)
		}
	}
	f.Fuzz(func(t *testing.T, p []byte, bare bool) {
		if len(p) > 1<<16 {
			return
		}
		if bare { // a stream without a right checksum
			text, err := all(flate.NewReader(bytes.NewReader(p)), 1<<12)
			if err != nil {
				text = nil
			}
			p = wrapped(p, text)
		}
		same(t, p)
	})
}

func BenchmarkReader(b *testing.B) {
	for _, name := range []string{"rocev2-nfs3-meta.pcap.zst", "rocev2-nfs3-bulk.pcap.zst"} {
		text := texts(b)[name]
		p := zipped(b, 6, 1, bytes.Repeat(text, 16))
		read := map[string]func([]byte) ([]byte, error){"own": own, "std": std}
		for who, read := range read {
			b.Run(name+"/"+who, func(b *testing.B) {
				b.SetBytes(int64(16 * len(text)))
				for b.Loop() {
					if _, err := read(p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
