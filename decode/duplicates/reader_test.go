package duplicates

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

func read(t *testing.T, r capture.Reader) (list []capture.Packet) {
	t.Helper()
	var b capture.Batch
	for {
		err := r.Read(&b)
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b.Packets...)
	}
}

// TestReader: of two taps, one has packets twice. Its copies have a tap of their own, and the tap behind it another number.
func TestReader(t *testing.T) {
	once := packets(t, "rocev2-nfs41-recall.pcap")
	list := twice(once, 40e6, 3e6, 0, routed)
	for _, p := range once {
		p.Tap = 1
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b capture.Packet) int { return int(a.Time - b.Time) })
	list[0].Tap, list[0].Time = 0, 0
	taps := []capture.Tap{{File: "a", Interface: 0, Name: "left"}, {File: "a", Interface: 1, Name: "right"}}
	found, err := delays(&reader{list: list}, 0)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v %v", found, err)
	}
	r := New(&reader{list: slices.Clone(list), taps: taps}, func(tap capture.Tap) (Delay, bool) {
		d, ok := found[uint16(tap.Interface)]
		return d, ok
	})
	for i, p := range read(t, r) {
		want := uint16(0)
		switch {
		case list[i].Tap == 1:
			want = 2
		case list[i].Offset == second:
			want = 1
		}
		if _, ok := new(printer).of(&p); ok && p.Data[12] == 8 && p.Tap != want { // IPv6 announces itself twice with the same bytes
			t.Errorf("packet %d: tap %d, want %d", i, p.Tap, want)
		}
	}
	var names []string
	for _, tap := range r.Taps() {
		names = append(names, tap.Name)
	}
	if !slices.Equal(names, []string{"left", "left", "right"}) {
		t.Errorf("taps %q", names)
	}
	f := r.Found()
	if len(f) != 1 || f[0].Tap.Name != "left" || f[0].Copies < uint64(len(once))*9/10 || f[0].Single-f[0].Copies > 4 {
		t.Errorf("found %+v", f)
	}
	if _, ok := r.Place(); ok {
		t.Error("a place in the middle of packets that come twice")
	}
}

// TestReaderOfOne: where nothing comes twice, nothing is changed.
func TestReaderOfOne(t *testing.T) {
	r, err := Open([]string{samples + "rocev2-nfs41-recall.pcap", samples + "iwarp-nfs41-recall.pcap"}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	plain, err := capture.Open([]string{samples + "rocev2-nfs41-recall.pcap", samples + "iwarp-nfs41-recall.pcap"}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	a, b := read(t, r), read(t, plain)
	if len(a) != len(b) {
		t.Fatalf("%d packets, want %d", len(a), len(b))
	}
	for i := range a {
		if a[i].Tap != b[i].Tap || a[i].Number != b[i].Number {
			t.Fatalf("packet %d: %+v, want %+v", i, a[i], b[i])
		}
	}
	d := r.(*Reader)
	if !slices.Equal(d.Taps(), plain.(capture.Tapper).Taps()) || len(d.Found()) > 0 {
		t.Errorf("taps %v, found %v", d.Taps(), d.Found())
	}
	if done, total := d.Progress(); done == 0 || done != total {
		t.Errorf("%d of %d bytes", done, total)
	}
}

// TestOpenApart: a file that begins when another has ended is of another capture point if it shows the same packets, and continues the
// other one if it does not.
func TestOpenApart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, sample string, later int64) string {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := capture.NewWriter(f, capture.WriterOptions{Format: capture.Pcap})
		for _, p := range packets(t, sample) {
			p.Time += later
			if err := w.Write(&p); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Flush(), f.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const recall, other, hour = "rocev2-nfs41-recall.pcap", "rocev2-nfs3-basic.pcap.zst", 3600_000_000_000
	first := write("first", recall, 0)
	for _, c := range []struct {
		name string
		next []string
		taps int
	}{
		{"another point", []string{write("again", recall, hour)}, 2},
		{"a series", []string{write("other", other, 1e5*hour)}, 1},
		{"two series", []string{write("again", recall, hour), write("other", other, 1e5*hour)}, 2},
	} {
		r, err := Open(append([]string{first}, c.next...), capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		read(t, r)
		if got := len(r.(capture.Tapper).Taps()); got != c.taps {
			t.Errorf("%s: %d taps, not %d", c.name, got, c.taps)
		}
		r.Close()
	}
}
