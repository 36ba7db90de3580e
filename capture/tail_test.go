package capture

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

var errFull = errors.New("no space left")

// disk takes so many bytes, then no more.
type disk struct {
	bytes.Buffer
	room int
}

func (d *disk) Write(b []byte) (int, error) {
	n := min(len(b), d.room)
	d.room -= n
	d.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// TestStored: wherever a disk is full, Stored tells what it holds, and what it
// holds can be read without a problem.
func TestStored(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, format := range []Format{Pcapng, Pcap} {
		var packets []Packet
		for i := range 40 {
			b := make([]byte, r.IntN(300))
			packets = append(packets, Packet{Time: int64(i) * 1e6, Length: uint32(len(b)), Link: LinkEthernet, Data: b})
		}
		write := func(room, buffer int) (*disk, *Writer, error) {
			d := &disk{room: room}
			w := NewWriter(d, WriterOptions{Format: format, Buffer: buffer})
			var err error
			for i := range packets {
				if err = w.Write(&packets[i]); err != nil {
					return d, w, err
				}
			}
			err = w.WriteStatistics(0, LinkEthernet, Statistics{Time: 1})
			return d, w, errors.Join(err, w.Flush())
		}
		all, w, err := write(1<<20, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n, bytes := w.Stored(); n != uint64(len(packets)) || bytes != int64(all.Len()) || bytes != w.Written() {
			t.Fatalf("%v: stored %d packets, %d bytes of %d", format, n, bytes, all.Len())
		}
		for room := 0; room < all.Len(); room += 1 + r.IntN(5) {
			d, w, err := write(room, 64+r.IntN(1000))
			if !errors.Is(err, errFull) {
				t.Fatalf("%v, room for %d: %v", format, room, err)
			}
			n, whole := w.Stored()
			if whole > int64(d.Len()) {
				t.Fatalf("%v: %d bytes are said to be whole, of %d", format, whole, d.Len())
			}
			if got := count(t, all.Bytes()[:room], false); got != n {
				t.Errorf("%v, room for %d: %d packets stored, %d can be read", format, room, n, got)
			}
			if got := count(t, d.Bytes()[:whole], true); got != n {
				t.Errorf("%v, room for %d: %d packets stored, %d after the cut", format, room, n, got)
			}
		}
	}
}

// count reads a capture; clean demands that nothing is wrong with it.
func count(t *testing.T, b []byte, clean bool) (n uint64) {
	t.Helper()
	if len(b) == 0 {
		return 0
	}
	r, err := NewReader(bytes.NewReader(b), "test", Options{})
	if err != nil {
		if clean {
			t.Error(err)
		}
		return 0
	}
	var batch Batch
	for {
		err := r.Read(&batch)
		n += uint64(len(batch.Packets))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, problems := r.Problems(); clean && problems > 0 {
		t.Errorf("%d problems", problems)
	}
	return n
}
