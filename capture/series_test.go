package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// store is a place where captures lie.
type store struct {
	opened, closed int
	most           int
}

type object struct {
	io.Reader
	s *store
}

func (o object) Close() error {
	o.s.closed++
	return nil
}

func (s *store) source(name string, b []byte) Source {
	return Source{Name: name, Size: int64(len(b)), Open: func() (io.ReadCloser, error) {
		s.opened++
		s.most = max(s.most, s.opened-s.closed)
		return object{iotest.HalfReader(bytes.NewReader(b)), s}, nil
	}}
}

func readAll(r Reader) (list []Packet, err error) {
	var b Batch
	for {
		if err := r.Read(&b); err != nil {
			return list, err
		}
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			list = append(list, p)
		}
	}
}

func TestSeries(t *testing.T) {
	whole := lots(900)
	r, err := NewReader(bytes.NewReader(whole), "whole", Options{First: 1000})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := readAll(r)
	// The same packets in three files.
	var parts [3][]byte
	for i := range parts {
		var b bytes.Buffer
		w := NewWriter(&b, WriterOptions{Format: Pcap, Link: LinkEthernet})
		for _, p := range want[300*i : 300*i+300] {
			if err := w.Write(&p); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		parts[i] = b.Bytes()
	}
	var s store
	list := []Source{s.source("a", parts[0]), s.source("empty", nil), s.source("b.gz", gz(parts[1])), s.source("c.zst", zs(parts[2]))}
	r, err = OpenSeries(list, Options{First: 1000})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(r)
	if err != io.EOF {
		t.Fatal(err)
	}
	if !slices.EqualFunc(got, want, func(a, b Packet) bool {
		return a.Number == b.Number && a.Time == b.Time && a.Length == b.Length && a.Tap == b.Tap && bytes.Equal(a.Data, b.Data)
	}) {
		t.Errorf("%d packets from %d to %d, not %d", len(got), got[0].Number, got[len(got)-1].Number, len(want))
	}
	if got[0].Number != 1001 || got[899].Number != 1900 {
		t.Errorf("packets %d to %d", got[0].Number, got[899].Number)
	}
	if ps, n := r.Problems(); n != 1 || ps[0].File != "empty" {
		t.Errorf("%d problems: %v", n, ps)
	}
	// A writer asks for them with every new interface.
	if n := testing.AllocsPerRun(10, func() { _ = r.(Tapper).Taps() }); n != 0 {
		t.Errorf("Taps allocates %v times", n)
	}
	if taps := r.(Tapper).Taps(); len(taps) != 1 || taps[0].File != "a" {
		t.Errorf("taps %v", taps)
	}
	if done, total := r.(Progresser).Progress(); total != 0 || done == 0 { // one has no size
		t.Errorf("%d of %d bytes", done, total)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if s.opened != 4 || s.closed != 4 || s.most != 1 {
		t.Errorf("%d opened, %d closed, %d at once", s.opened, s.closed, s.most)
	}
	if err := r.Read(new(Batch)); err == nil {
		t.Error("read after the end")
	}
}

func TestSeriesErrors(t *testing.T) {
	var s store
	good := lots(5)
	away := Source{Name: "away", Open: func() (io.ReadCloser, error) { return nil, fs.ErrNotExist }}
	broken := Source{Name: "broken", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(good[:100]), iotest.ErrReader(errors.New("connection reset")))), nil
	}}
	text := s.source("text", []byte("this is not a capture"))
	for _, c := range []struct {
		list    []Source
		packets int
		want    string
	}{
		{nil, 0, "no input"},
		{[]Source{away}, 0, "away: file does not exist"},
		{[]Source{text}, 0, "text"},
		{[]Source{s.source("x", nil), s.source("y", nil)}, 0, "y: empty file"},
		{[]Source{s.source("a", good), away}, 5, "away: file does not exist"},
		{[]Source{s.source("a", good), text, s.source("b", good)}, 5, "text"},
		{[]Source{s.source("a", good), broken}, 6, "broken: connection reset"},
	} {
		r, err := OpenSeries(c.list, Options{})
		var list []Packet
		if err == nil {
			list, err = readAll(r)
			_ = r.Close()
		}
		if len(list) != c.packets || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d packets, %v; not %d, %s", len(list), err, c.packets, c.want)
		}
	}
	if s.opened != s.closed {
		t.Errorf("%d opened, %d closed", s.opened, s.closed)
	}
}

func ExampleOpenSeries() {
	bucket := map[string][]byte{"tap/1.pcap": lots(3), "tap/2.pcap.gz": gz(lots(2))}
	var list []Source
	for _, name := range []string{"tap/1.pcap", "tap/2.pcap.gz"} {
		list = append(list, Source{Name: name, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(bucket[name])), nil
		}})
	}
	r, err := OpenSeries(list, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	var b Batch
	for r.Read(&b) == nil {
		fmt.Println(len(b.Packets), "packets from", b.Packets[0].Number)
	}
	// Output:
	// 3 packets from 1
	// 2 packets from 4
}
