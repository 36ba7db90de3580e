package capture

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

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
