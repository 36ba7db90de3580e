package split

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
)

var errFull = errors.New("no space left")

// disk is a set of files that have so many bytes of room together.
type disk struct {
	room  int
	files map[int]*diskFile
}

type diskFile struct {
	bytes.Buffer
	d       *disk
	n       int
	removed bool
}

func (d *disk) open(n Name, again bool) (io.WriteCloser, error) {
	if again {
		return d.files[n.N], nil
	}
	f := &diskFile{d: d, n: n.N}
	d.files[n.N] = f
	return f, nil
}

func (f *diskFile) Write(b []byte) (int, error) {
	n := min(len(b), f.d.room)
	f.d.room -= n
	f.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

func (f *diskFile) Close() error { return nil }

func (f *diskFile) Truncate(n int64) error {
	f.d.room += f.Len() - int(n)
	f.Buffer.Truncate(int(n))
	return nil
}

func (f *diskFile) Remove() error {
	f.removed = true
	return nil
}

// TestFull: wherever the disk is full, what is there are whole captures that hold something, and as many packets as Stats says.
func TestFull(t *testing.T) {
	for _, opt := range []Options{
		{By: One},
		{By: Connection, OpenFiles: 2},
		{By: Time, Interval: 100 * time.Millisecond, OpenFiles: 3},
	} {
		step := 3 // a third more room each time; with -short, twice as much
		if testing.Short() {
			step = 1
		}
		for room := 0; room < 1<<20; room += room/step + 100 {
			t.Run(fmt.Sprintf("%d/%d", opt.By, room), func(t *testing.T) { testFull(t, opt, room) })
		}
	}
}

func testFull(t *testing.T, opt Options, room int) {
	r, err := capture.Open([]string{filepath.Join(samples, "rocev2-nfs3-basic.pcap.zst")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := &disk{room: room, files: make(map[int]*diskFile)}
	opt.Open = d.open
	s := New(opt)
	var o decode.Options
	s.Options(&o)
	if err := decode.New(o, s.Transaction).Run(r); err != nil {
		t.Fatal(err)
	}
	st, err := s.Close()
	full := err != nil
	if full && !errors.Is(err, errFull) {
		t.Fatal(err)
	}
	var packets uint64
	files := 0
	for n, f := range d.files {
		if f.removed {
			continue
		}
		files++
		got := packetsIn(t, f.Bytes())
		if got == 0 && full {
			t.Errorf("file %d is empty", n)
		}
		packets += got
	}
	if packets != st.Stored || files != st.Files {
		t.Errorf("%d packets in %d files, not %d in %d", packets, files, st.Stored, st.Files)
	}
	if !full && st.Stored != st.Kept+st.Setup {
		t.Errorf("%d stored, %d kept, %d of setup", st.Stored, st.Kept, st.Setup)
	}
}

func packetsIn(t *testing.T, b []byte) (n uint64) {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(b), "part", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var batch capture.Batch
	for err == nil {
		err = r.Read(&batch)
		n += uint64(len(batch.Packets))
	}
	if list, _ := r.Problems(); err != io.EOF || len(list) > 0 {
		t.Fatal(err, list)
	}
	return n
}
