package capture

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/internal/testtools/leak"
)

// giants is a pcap with records that are longer than the headroom of a block, and than several blocks.
func giants() []byte {
	rnd := rand.New(rand.NewPCG(8, 8))
	var recs []pcapRec
	for i, n := range []int{60, 100_000, 60, headroom + 1, headroom, 5 << 20, 70_000, 60, 1 << 20, 255 << 10, 1, 200_000} {
		r := rec(uint32(i+1), 0, n, 0)
		for j := 0; j < n; j += 1 + rnd.IntN(40) {
			r.data[j] = byte(rnd.Uint32())
		}
		recs = append(recs, r)
	}
	p := buildPcap(pcapOpts{link: 1, snap: 8 << 20}, recs...)
	return p
}

// openBytes reads a regular file with p in it.
func openBytes(t *testing.T, p []byte, opts Options) result {
	t.Helper()
	r, err := Open([]string{writeFile(t, filepath.Join(t.TempDir(), "test"), p)}, opts)
	if err != nil {
		t.Fatal(err)
	}
	res := collect(t, r)
	for _, p := range res.problems {
		p.File = "test"
	}
	return res
}

// TestAhead reads compressed files, with a goroutine that reads ahead, and pipes, without one: the same as what was
// compressed, whatever the size of batches.
func TestAhead(t *testing.T) {
	for name, in := range map[string][]byte{"small": lots(3000), "giants": giants()} {
		want := readBytes(t, in, Options{})
		if want.total != 0 {
			t.Fatal(want.problems)
		}
		cut := len(in) / 3
		for kind, p := range map[string][]byte{"gzip": gz(in[:cut], in[cut:]), "zstd": zs(in[:cut], in[cut:]), "none": in} {
			sizes := []int{5000, 0, 64, 64 << 10}
			if testing.Short() {
				sizes = sizes[:1]
			}
			for _, size := range sizes {
				t.Run(fmt.Sprint(name, "/", kind, "/", size), func(t *testing.T) {
					same(t, openBytes(t, p, Options{BatchSize: size}), want)
					same(t, readBytes(t, p, Options{BatchSize: size}), want)
				})
			}
		}
	}
}

// TestAheadDamaged cuts and changes compressed files: what comes before is there, and the problem with its packet and
// offset; no matter whether a goroutine reads ahead.
func TestAheadDamaged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 9))
	in := lots(1500)
	all := readBytes(t, in, Options{})
	half := len(in) / 2
	for name, p := range map[string][]byte{"gzip": gz(in[:half], in[half:]), "zstd": zs(in[:half], in[half:]), "none": in} {
		n := 40
		if testing.Short() {
			n = 10
		}
		for i := range n {
			q := bytes.Clone(p)
			what := "cut"
			if at := 150_000 + rnd.IntN(len(p)-150_000); i%2 == 0 { // behind the first block of zstd
				q = q[:at]
			} else {
				q[at] ^= 1 << rnd.IntN(8)
				what = "changed"
			}
			t.Run(fmt.Sprint(name, "/", what, "/", i), func(t *testing.T) {
				got := openBytes(t, q, Options{})
				if i%2 == 0 && name != "none" {
					if got.total > 1 || got.total == 0 && len(got.packets) != 750 && len(got.packets) != 749 {
						t.Errorf("%d packets, problems %v", len(got.packets), got.problems)
					}
					samePackets(t, got.packets, all.packets[:len(got.packets)])
				}
				same(t, readBytes(t, q, Options{}), got)
			})
		}
	}
}

// What a frame holds whose checksum is wrong was decompressed nevertheless.
func TestLastBlock(t *testing.T) {
	in := lots(2000)
	p := zs(in)
	p[len(p)-1] ^= 1
	for _, res := range []result{openBytes(t, p, Options{}), readBytes(t, p, Options{})} {
		if len(res.packets) != 2000 || res.total != 1 {
			t.Errorf("%d packets, problems %v", len(res.packets), res.problems)
		}
	}
}

// A window that is too large is refused with the limit, before memory is taken for it.
func TestWindow(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	w.Write(lots(12000))
	w.Close()
	name := writeFile(t, "x", b.Bytes())
	if _, err := Open([]string{name}, Options{Window: 4 << 20}); err == nil || !bytes.Contains([]byte(err.Error()), []byte("the 4 MiB that there are")) {
		t.Error(err)
	}
	r, err := Open([]string{name}, Options{Window: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if res := collect(t, r); len(res.packets) != 12000 {
		t.Errorf("%d packets, %v", len(res.packets), res.problems)
	}
}

// TestAheadBatches: batches are the same whenever their blocks are filled.
func TestAheadBatches(t *testing.T) {
	var recs []pcapRec
	for i := range 20_000 { // the shorter the packets, the shorter the batches
		recs = append(recs, rec(uint32(i+1), 0, 4+i/300%60, byte(i)))
	}
	in := buildPcap(pcapOpts{link: 1}, recs...)
	for kind, p := range map[string][]byte{"gzip": gz(in), "zstd": zs(in)} {
		name := writeFile(t, kind, p)
		var want []int
		for i := range 9 {
			r, err := Open([]string{name}, Options{BatchSize: 40_000})
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			var b Batch
			for r.Read(&b) == nil {
				got = append(got, len(b.Packets))
				time.Sleep(time.Duration(rand.IntN(i*40+1)) * time.Microsecond)
			}
			r.Close()
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: batches of %v, and of %v", kind, got, want)
			}
		}
	}
}

// TestAheadCloses closes files at any time: no goroutine stays.
func TestAheadCloses(t *testing.T) {
	in := lots(4000)
	ended := leak.Goroutines(t)
	for i, p := range [][]byte{gz(in), zs(in), gz(in)[:1000], zs(in)[:200_000], gz([]byte("not a capture, but long enough"))} {
		name := writeFile(t, fmt.Sprint("x", i), p)
		for n := range 12 {
			r, err := Open([]string{name}, Options{BatchSize: 20_000})
			if err != nil {
				continue
			}
			var b Batch
			for range n {
				if r.Read(&b) != nil {
					break
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	ended()
}

// readerFunc is a function that reads.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestAheadEnds: a block is full, and nothing is read after an error, and after the end of the block at hand when an input is closed.
func TestAheadEnds(t *testing.T) {
	reads := 0
	a := readAhead(readerFunc(func(p []byte) (int, error) {
		if reads++; reads == 5 {
			return 1, errDisk
		}
		return len(p), nil
	}), 100)
	for n := 1; ; n++ {
		if k := a.next(nil, 100); k.err != nil {
			if n != 5 || k.err != errDisk || len(k.data()) != 1 {
				t.Errorf("block %d has %d bytes and %v", n, len(k.data()), k.err)
			}
			break
		}
	}
	a.close()
	if reads != 5 {
		t.Errorf("%d reads, the fifth failed", reads)
	}

	a = readAhead(iotest.OneByteReader(bytes.NewReader(make([]byte, 150))), 400)
	if k := a.next(nil, 400); len(k.data()) != 100 || k.err != nil {
		t.Errorf("the first block has %d bytes, and %v", len(k.data()), k.err)
	}
	a.close()

	var begun atomic.Int32
	gate := make(chan struct{})
	a = readAhead(readerFunc(func(p []byte) (int, error) {
		if begun.Add(1) > 2 {
			<-gate
		}
		return len(p), nil
	}), 100)
	a.next(nil, 100)
	for begun.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
	go func() {
		for !a.stop.Load() {
			time.Sleep(time.Millisecond)
		}
		close(gate)
	}()
	a.close()
	if n := begun.Load(); n > 3 {
		t.Errorf("%d reads, closed during the third", n)
	}
}

// TestAheadAllocations reads a compressed file in batches that are used again, as a decoder does: memory goes round.
func TestAheadAllocations(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(lots(9000))
	w.Close()
	f, err := os.Open(writeFile(t, "x", b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := NewReader(f, "x", Options{BatchSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var batches [3]Batch
	turn := 0
	read := func() {
		if err := r.Read(&batches[turn%3]); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		turn++
	}
	for range 20 {
		read()
	}
	if n := testing.AllocsPerRun(60, read); n > 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

// TestBlockMemory: when packets become longer or shorter, so does the memory of blocks.
func TestBlockMemory(t *testing.T) {
	const size = 256 << 10
	a := readAhead(endless{}, size)
	defer a.close()
	var old []byte
	for _, want := range []int{size / 4, size, size / 3, size / 2, 2 * size, size / 4} {
		for range 3 * aheadBlocks {
			k := a.next(old, want)
			old = k.buf
		}
		if n := min(want, size); len(old) < n || cap(old) > 2*(n+headroom) {
			t.Errorf("blocks of %d: %d bytes in %d of memory", want, len(old), cap(old))
		}
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
