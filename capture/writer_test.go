package capture

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func someTaps() []Tap {
	return []Tap{{Link: LinkEthernet}, {Link: LinkSLL2}, {Link: LinkRaw}, {Link: 65535}, {Link: LinkEthernet}, {Link: LinkNull}}
}

// randomPackets makes packets as a Reader would give them.
func randomPackets(rnd *rand.Rand, n, taps int, maxTime int64) []Packet {
	ps := make([]Packet, n)
	for i := range ps {
		p := &ps[i]
		p.Number = uint64(i + 1)
		p.Time = rnd.Int64N(maxTime)
		p.Tap = uint16(rnd.IntN(taps))
		if taps > 1 {
			p.Link = someTaps()[p.Tap].Link
		} else {
			p.Link = LinkEthernet
		}
		size := rnd.IntN(200)
		if rnd.IntN(50) == 0 {
			size = rnd.IntN(100 << 10)
		}
		p.Data = make([]byte, size)
		for j := range p.Data {
			p.Data[j] = byte(rnd.Uint32())
		}
		p.Length = uint32(size)
		if rnd.IntN(2) == 0 {
			p.Length += rnd.Uint32N(9000)
		}
	}
	return ps
}

func write(t *testing.T, opts WriterOptions, ps []Packet) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, opts)
	for i := range ps {
		comment := ""
		if i%3 == 0 {
			comment = strings.Repeat("wörds", i%7)
		}
		if err := w.WriteComment(&ps[i], comment); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What a Writer writes, a Reader reads.
func TestWriterReaderIdentity(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for round := range 40 {
		n := rnd.IntN(300)
		for _, c := range []struct {
			opts    WriterOptions
			taps    int
			maxTime int64
		}{
			{WriterOptions{Format: Pcap, Link: LinkEthernet}, 1, (math.MaxUint32 + 1) * int64(1e9)},
			{WriterOptions{Format: Pcapng, Application: "tester", Taps: someTaps}, 1 + round%6, math.MaxInt64},
		} {
			want := randomPackets(rnd, n, c.taps, c.maxTime)
			res := readBytes(t, write(t, c.opts, want), Options{})
			for i := range res.packets {
				res.packets[i].Offset = 0
			}
			if res.total != 0 || res.err != nil {
				t.Fatalf("%v: %v %v", c.opts.Format, res.problems, res.err)
			}
			samePackets(t, res.packets, want)
		}
	}
}

// Taps keep their names and numbers, although some have no packets.
func TestWriterTaps(t *testing.T) {
	taps := []Tap{{Name: "eth0", Description: "first", Link: 1, SnapLen: 96}, {Name: "any", Link: 276}, {Name: strings.Repeat("ä", 100), Link: 1}}
	ps := []Packet{{Tap: 2, Link: 1, Data: []byte("a"), Length: 1}, {Tap: 5, Link: 113, Data: []byte("b"), Length: 1}, {Tap: 0, Link: 1}}
	res := readBytes(t, write(t, WriterOptions{Taps: func() []Tap { return taps }}, ps), Options{})
	if res.text() != "0/1:ax1@2 0/1:bx1@5~113 0/0:" || len(res.taps) != 6 {
		t.Fatalf("%s %+v", res.text(), res.taps)
	}
	for i, want := range taps {
		want.Interface, want.File = i, "test"
		if got := res.taps[i]; got != want {
			t.Errorf("tap %d: %+v, want %+v", i, got, want)
		}
	}
}

// A tap whose link type changes gets an interface for each.
func TestWriterLinkChanges(t *testing.T) {
	ps := []Packet{{Link: 1}, {Link: 101}, {Link: 1}, {Link: 101}, {Tap: 1, Link: 1}, {Tap: 1, Link: 1}}
	res := readBytes(t, write(t, WriterOptions{}, ps), Options{})
	if got := res.text(); got != "0/0: 0/0:@1~101 0/0: 0/0:@1~101 0/0:@2 0/0:@2" || res.total != 0 {
		t.Error(got, res.problems)
	}
}

func TestWriterEmpty(t *testing.T) {
	for _, f := range []Format{Pcap, Pcapng} {
		res := readBytes(t, write(t, WriterOptions{Format: f, Link: LinkRaw}, nil), Options{})
		if len(res.packets) != 0 || res.total != 0 {
			t.Errorf("%v: %+v", f, res)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriterErrors(t *testing.T) {
	for _, c := range []struct {
		format Format
		p      Packet
		want   error
	}{
		{Pcap, Packet{Link: 1, Time: -1}, ErrTimeRange},
		{Pcap, Packet{Link: 1, Time: math.MaxInt64}, ErrTimeRange},
		{Pcap, Packet{Link: 2}, ErrMixedLinks},
		{Pcapng, Packet{Time: -1}, ErrTimeRange},
	} {
		var b bytes.Buffer
		w := NewWriter(&b, WriterOptions{Format: c.format})
		good := Packet{Link: 1, Data: []byte("abc"), Length: 3}
		if err := w.Write(&good); err != nil {
			t.Fatal(err)
		}
		if err := w.Write(&c.p); err != c.want {
			t.Errorf("%v: %v, want %v", c.format, err, c.want)
		}
		// A refused packet leaves no trace.
		if err := errors.Join(w.Write(&good), w.Flush()); err != nil {
			t.Fatal(err)
		}
		if res := readBytes(t, b.Bytes(), Options{}); len(res.packets) != 2 || res.total != 0 {
			t.Errorf("%v: %d packets, %v", c.format, len(res.packets), res.problems)
		}
	}
	w := NewWriter(brokenPipe{}, WriterOptions{})
	big := Packet{Data: make([]byte, 1<<20)}
	if err := w.Write(&big); err != io.ErrClosedPipe {
		t.Error(err)
	}
	if err := w.Flush(); err != io.ErrClosedPipe {
		t.Error(err)
	}
}

func TestWriterComment(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, WriterOptions{})
	long := strings.Repeat("x", math.MaxUint16-1) + "ä"
	for _, s := range []string{"seen twice", long} {
		if err := w.WriteComment(&Packet{Data: []byte("abcde"), Length: 5}, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b.Bytes(), []byte("abcde\x00\x00\x00\x01\x00\x0a\x00seen twice\x00\x00\x00\x00\x00\x00")) {
		t.Error("no comment")
	}
	if !bytes.Contains(b.Bytes(), []byte("\x01\x00\xfe\xffxxx")) {
		t.Error("a character was cut in two")
	}
	if res := readBytes(t, b.Bytes(), Options{}); len(res.packets) != 2 || res.total != 0 {
		t.Errorf("%d packets, %v", len(res.packets), res.problems)
	}
}

// A packet may have several comments.
func TestWriterComments(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, WriterOptions{})
	p := Packet{Link: 1, Data: []byte("abc"), Length: 3}
	for _, comments := range [][]string{nil, {"one"}, {"one", "", "drei", strings.Repeat("x", 70000)}} {
		if err := w.WriteComments(&p, comments); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	res := readBytes(t, b.Bytes(), Options{})
	if len(res.packets) != 3 || res.total != 0 || !bytes.Contains(b.Bytes(), []byte("\x01\x00\x04\x00drei")) {
		t.Fatalf("%d packets, %v", len(res.packets), res.problems)
	}
}

// A Writer that changes its stream in the middle writes one capture nevertheless.
func TestWriterDetach(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, f := range []Format{Pcap, Pcapng} {
		want := randomPackets(rnd, 60, 1, 1e18)
		var all bytes.Buffer
		part := new(bytes.Buffer)
		w := NewWriter(part, WriterOptions{Format: f, Buffer: 1024})
		for i := range want {
			if err := w.Write(&want[i]); err != nil {
				t.Fatal(err)
			}
			if i%7 == 0 {
				if err := w.Detach(); err != nil {
					t.Fatal(err)
				}
				all.Write(part.Bytes())
				part = new(bytes.Buffer)
				w.Attach(part)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		all.Write(part.Bytes())
		res := readBytes(t, all.Bytes(), Options{})
		for i := range res.packets {
			res.packets[i].Offset = 0
		}
		samePackets(t, res.packets, want)
	}
}

// Counters stand after the packets, and readers step over them.
func TestWriterStatistics(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, WriterOptions{Taps: someTaps})
	if err := w.Write(&Packet{Link: 1, Data: []byte("a"), Length: 1}); err != nil {
		t.Fatal(err)
	}
	s := Statistics{Time: 0x1122334455667788, Start: 2, Received: 9, Dropped: 4, Missed: 3}
	for tap := range uint16(2) {
		if err := w.WriteStatistics(tap, 1, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if w.Written() != int64(b.Len()) {
		t.Errorf("%d bytes, counted %d", b.Len(), w.Written())
	}
	res := readBytes(t, b.Bytes(), Options{})
	if len(res.packets) != 1 || res.total != 0 {
		t.Errorf("%+v", res)
	}
	// draft-ietf-opsawg-pcapng section 4.6
	want := "\x05\x00\x00\x00\x58\x00\x00\x00\x01\x00\x00\x00\x44\x33\x22\x11\x88\x77\x66\x55" +
		"\x02\x00\x08\x00\x00\x00\x00\x00\x02\x00\x00\x00" + "\x03\x00\x08\x00\x44\x33\x22\x11\x88\x77\x66\x55" +
		"\x06\x00\x08\x00\x09\x00\x00\x00\x00\x00\x00\x00" + "\x05\x00\x08\x00\x03\x00\x00\x00\x00\x00\x00\x00" +
		"\x07\x00\x08\x00\x04\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x58\x00\x00\x00"
	if !bytes.HasSuffix(b.Bytes(), []byte(want)) {
		t.Errorf("% x", b.Bytes()[max(0, b.Len()-len(want)):])
	}
	if err := w.WriteStatistics(0, 1, Statistics{Time: -1}); !errors.Is(err, ErrTimeRange) {
		t.Error(err)
	}
	b.Reset()
	w = NewWriter(&b, WriterOptions{Format: Pcap})
	if err := errors.Join(w.WriteStatistics(0, 1, s), w.Flush()); err != nil || b.Len() != pcapFileHeader {
		t.Errorf("pcap: %v, %d bytes", err, b.Len())
	}
}
