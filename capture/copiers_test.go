package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/leak"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// openCopied opens a file that several goroutines copy.
func openCopied(t *testing.T, name string, opts Options) *files {
	t.Helper()
	r, err := Open([]string{name}, opts)
	if err != nil {
		t.Fatal(err)
	}
	fs := r.(*files)
	if n := fs.copiers(); n != opts.Ahead {
		t.Fatalf("%d goroutines copy, want %d", n, opts.Ahead)
	}
	return fs
}

// copiers is how many goroutines copy the only file at places of their own.
func (r *files) copiers() int {
	if r.single == nil {
		return 0
	}
	c, _ := r.single.file.src.ahead.(*copiers)
	if c == nil {
		return 0
	}
	return len(c.workers)
}

// TestCopiers reads files that several goroutines copy: the same as what one reads.
func TestCopiers(t *testing.T) {
	for name, in := range map[string][]byte{"small": lots(3000), "giants": giants()} {
		want := readBytes(t, in, Options{})
		file := writeFile(t, name, in)
		sizes := []int{64, 20_000, 5000, 64 << 10}
		if testing.Short() {
			sizes = sizes[:2]
		}
		for _, size := range sizes {
			for _, n := range []int{1, 2, 3} {
				r := openCopied(t, file, Options{BatchSize: size, Ahead: n})
				same(t, collect(t, r), want)
				if done, total := r.Progress(); done != int64(len(in)) || total != done {
					t.Errorf("progress %d of %d, file %d", done, total, len(in))
				}
			}
		}
	}
}

// TestCopiersDamaged cuts and changes files anywhere. Copiers must find the same packets and problems as a single reader.
func TestCopiersDamaged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 10))
	in := lots(1500)
	for i := range sampled.Rounds(60) {
		p := bytes.Clone(in)
		if at := 150_000 + rnd.IntN(len(p)-150_000); i%2 == 0 {
			p = p[:at]
		} else {
			p[at] ^= 1 << rnd.IntN(8)
		}
		opts := Options{BatchSize: 1000 + rnd.IntN(9000)}
		want := readBytes(t, p, opts)
		opts.Ahead = 1 + i%3
		r := openCopied(t, writeFile(t, filepath.Join(t.TempDir(), "test"), p), opts)
		got := collect(t, r)
		for _, q := range got.problems {
			q.File = "test"
		}
		same(t, got, want)
	}
}

// TestCopiersOnlyForFiles: anything but a single regular file that is not compressed, and not too short, is read in order.
func TestCopiersOnlyForFiles(t *testing.T) {
	in := lots(300)
	file := writeFile(t, "x", in)
	opts := Options{BatchSize: 1000, Ahead: 2}
	openCopied(t, file, opts).Close()
	many, err := Open([]string{file}, Options{BatchSize: 1000, Ahead: 100})
	if err != nil {
		t.Fatal(err)
	}
	if n := many.(*files).copiers(); n != maxCopiers {
		t.Errorf("%d goroutines copy, %d at most", n, maxCopiers)
	}
	many.Close()
	stdin, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(fifo, in, 0o600) }()
	for what, open := range map[string]func() (Reader, error){
		"standard input": func() (Reader, error) {
			o := opts
			o.Stdin = stdin
			return Open([]string{"-"}, o)
		},
		"a file of the caller's": func() (Reader, error) {
			f, err := os.Open(file)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { f.Close() })
			return NewReader(f, "x", opts)
		},
		"a pipe":        func() (Reader, error) { return Open([]string{fifo}, opts) },
		"gzip":          func() (Reader, error) { return Open([]string{writeFile(t, "gz", gz(in))}, opts) },
		"zstd":          func() (Reader, error) { return Open([]string{writeFile(t, "zst", zs(in))}, opts) },
		"a short file":  func() (Reader, error) { return Open([]string{writeFile(t, "short", in[:8999])}, opts) },
		"not asked for": func() (Reader, error) { return Open([]string{file}, Options{BatchSize: 1000}) },
	} {
		r, err := open()
		if err != nil {
			t.Fatal(what, err)
		}
		if n := r.(*files).copiers(); n != 0 {
			t.Errorf("%s: %d goroutines copy", what, n)
		}
		if res := collect(t, r); len(res.packets) != 300 && what != "a short file" {
			t.Errorf("%s: %d packets, %v", what, len(res.packets), res.problems)
		}
	}
	r, err := Open([]string{file, file}, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Read(new(Batch)); err != nil {
		t.Fatal(err)
	}
	for _, in := range r.(*files).inputs {
		if _, ok := in.file.src.ahead.(*ahead); !ok {
			t.Error("one of several files is copied at places")
		}
	}
}

// scattered is a file that can be read at any place, and does what a test wants with each read.
type scattered func(p []byte, at int64) (int, error)

func (f scattered) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// begun is how many bytes tell that a file is a pcap. Blocks begin behind them.
const begun = 4

// copiedFrom opens a capture whose bytes come from another source than the file with its beginning.
func copiedFrom(t *testing.T, start []byte, workers, size int, from scattered) *files {
	t.Helper()
	fs := openCopied(t, writeFile(t, filepath.Join(t.TempDir(), "test"), start), Options{BatchSize: size, Ahead: workers})
	src := fs.single.file.src
	src.ahead.close()
	if n := fs.single.consumed.Load(); n != begun {
		t.Fatalf("%d bytes have been read", n)
	}
	src.ahead = startCopiers(from, src.raw, begun, size, workers)
	return fs
}

// TestCopiersOrder has blocks come in any order, and asks for no more of them than there is memory for.
func TestCopiersOrder(t *testing.T) {
	in := lots(1000)
	want := readBytes(t, in, Options{})
	for workers := 1; workers <= maxCopiers; workers++ {
		const size = 5000
		var mu sync.Mutex
		rnd := rand.New(rand.NewPCG(1, uint64(workers)))
		furthest := int64(0)
		r := copiedFrom(t, in, workers, size, func(p []byte, at int64) (int, error) {
			mu.Lock()
			furthest = max(furthest, at+int64(len(p)))
			wait := time.Duration(rnd.IntN(300)) * time.Microsecond
			mu.Unlock()
			time.Sleep(wait)
			return bytes.NewReader(in).ReadAt(p, at)
		})
		var b Batch
		for n := int64(1); n < 20; n++ {
			if err := r.Read(&b); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			if most := (n+copiedBlocks+2)*size + begun; furthest > most {
				t.Fatalf("read up to %d after %d batches", furthest, n)
			}
			mu.Unlock()
			first := b.Packets[0]
			if w := want.packets[first.Number-1]; first.Offset != w.Offset || !bytes.Equal(first.Data, w.Data) {
				t.Fatalf("packet %d at %d, want %d", first.Number, first.Offset, w.Offset)
			}
		}
		rest := collect(t, r)
		samePackets(t, rest.packets, want.packets[len(want.packets)-len(rest.packets):])
		if rest.total != 0 {
			t.Error(rest.problems)
		}
	}
}

// TestCopiersGrowing appends to a file while it is read. Blocks at its end were copied before those in front of them: the
// end is where it is when those have been taken.
func TestCopiersGrowing(t *testing.T) {
	in := lots(1000)
	want := readBytes(t, in, Options{})
	const size = 5000
	for _, start := range []int{begun + 9*size, begun + 9*size + 1, begun + 11*size - 1, 70_000} {
		for _, late := range []int{0, 1, size, 3 * size, len(in)} { // what is appended then is seen by the second look only
			var mu sync.Mutex
			end := start
			r := copiedFrom(t, in, 2, size, func(p []byte, at int64) (int, error) {
				mu.Lock()
				now := end
				if at+int64(len(p)) > int64(end) {
					end = min(end+late, len(in))
				}
				mu.Unlock()
				return bytes.NewReader(in[:now]).ReadAt(p, at)
			})
			res := relabel(collect(t, r))
			switch late {
			case 0:
				same(t, res, readBytes(t, in[:start], Options{}))
			case len(in):
				same(t, res, want)
			default:
				samePackets(t, res.packets, want.packets[:len(res.packets)])
			}
		}
	}
}

// TestCopiersAppended appends to a file that has been copied up to its end, but not yet read.
func TestCopiersAppended(t *testing.T) {
	in := lots(1000)
	const size = 5000
	name := writeFile(t, "x", in[:begun+9*size-1000])
	r := openCopied(t, name, Options{BatchSize: size - 1000, Ahead: 2})
	var b Batch
	packets := 0
	for range 2 { // with the second one all blocks are given
		if err := r.Read(&b); err != nil {
			t.Fatal(err)
		}
		packets += len(b.Packets)
	}
	a := r.single.file.src.ahead.(*copiers)
	for i := range a.workers {
		for w := &a.workers[i]; len(w.todo) > 0; {
			time.Sleep(time.Millisecond)
		}
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(in[begun+9*size-1000:]); err != nil {
		t.Fatal(err)
	}
	res := collect(t, r)
	if n := packets + len(res.packets); n != 1000 || res.total != 0 {
		t.Errorf("%d packets, problems %v", n, res.problems)
	}
}

// relabel names the file of all problems test.
func relabel(r result) result {
	for _, p := range r.problems {
		p.File = "test"
	}
	return r
}

// TestCopiersShrinking truncates a file behind what has been copied: the same as for a file that always ended there.
func TestCopiersShrinking(t *testing.T) {
	in := lots(1000)
	const size = 5000
	for _, at := range []int{100_000, begun + 30*size, begun + 30*size + 1, len(in) - 1} {
		name := writeFile(t, filepath.Join(t.TempDir(), "test"), in)
		r := openCopied(t, name, Options{BatchSize: size, Ahead: 2})
		if err := os.Truncate(name, int64(at)); err != nil {
			t.Fatal(err)
		}
		same(t, relabel(collect(t, r)), readBytes(t, in[:at], Options{}))
	}
	// Blocks behind the end were copied before it was there.
	end := begun + 4*size + 1234
	r := copiedFrom(t, in, 3, size, func(p []byte, at int64) (int, error) {
		if at > int64(end) {
			return bytes.NewReader(in).ReadAt(p, at)
		}
		return bytes.NewReader(in[:end]).ReadAt(p, at)
	})
	same(t, relabel(collect(t, r)), readBytes(t, in[:end], Options{}))
}

// TestCopiersFail has reading fail at any place: what is before it comes first, with its problem, and what is behind the end or
// another error is of no interest.
func TestCopiersFail(t *testing.T) {
	in := lots(1000)
	const size = 5000
	for _, at := range []int{begun + 1, begun + size, begun + 3*size - 1, begun + 3*size, 200_000} {
		want := errors.New("a disk that is older")
		fail := func(end int, err error) result {
			r := copiedFrom(t, in, 2, size, func(p []byte, off int64) (int, error) {
				switch n := end - int(off); {
				case n < 0:
					return 0, errDisk
				case n < len(p):
					return copy(p, in[off:end]), err
				}
				return copy(p, in[off:]), nil
			})
			if done, _ := r.Progress(); done != begun {
				t.Errorf("%d bytes are done before any was read", done)
			}
			return relabel(collect(t, r))
		}
		got := fail(at, want)
		if !errors.Is(got.err, want) {
			t.Errorf("failed at %d with %v", at, got.err)
		}
		cut := readBytes(t, in[:at], Options{})
		samePackets(t, got.packets, cut.packets)
		if got.total != cut.total {
			t.Errorf("failed at %d: problems %v, want %v", at, got.problems, cut.problems)
		}
		for i, p := range got.problems {
			if q := cut.problems[i]; p.Packet != q.Packet || p.Offset != q.Offset || !errors.Is(p, want) {
				t.Errorf("failed at %d: %v", at, p)
			}
		}
		if got := fail(at, io.EOF); got.err != nil {
			t.Errorf("ended at %d with %v", at, got.err)
		}
	}
}

// TestCopiersClose closes files at any time, and waits for goroutines that copy: none stays.
func TestCopiersClose(t *testing.T) {
	in := lots(2000)
	name := writeFile(t, "x", in)
	ended := leak.Goroutines(t)
	for n := range 30 {
		for _, workers := range []int{1, 2, 3} {
			r := openCopied(t, name, Options{BatchSize: 10_000, Ahead: workers})
			var b Batch
			for range n * n / 2 {
				if r.Read(&b) != nil {
					break
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if err := r.Read(&b); err == nil {
				t.Fatal("a closed file is read")
			}
		}
	}
	ended()
}

// TestCopiersAllocate nothing for a batch: memory goes round.
func TestCopiersAllocate(t *testing.T) {
	for _, n := range []int{1, 3} {
		r := openCopied(t, writeFile(t, fmt.Sprint("x", n), lots(9000)), Options{BatchSize: 64 << 10, Ahead: n})
		var batches [3]Batch
		turn := 0
		read := func() {
			if err := r.Read(&batches[turn%3]); err != nil {
				t.Fatal(err)
			}
			turn++
		}
		for range 25 {
			read()
		}
		if n := testing.AllocsPerRun(60, read); n > 0 {
			t.Errorf("%v allocations a batch", n)
		}
		r.Close()
	}
}
