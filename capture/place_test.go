package capture

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// places are captures in which reading can be continued.
func places(t testing.TB) map[string][]byte {
	ng := newNg(binary.BigEndian)
	ng.iface(1, 96, ng.opt(ifResolution, []byte{9}), ng.opt(ifName, []byte("eth0")))
	ng.iface(228, 0)
	for i := range 300 {
		ng.epb(uint32(i%2), uint64(i)*1e6, string(make([]byte, 1+i%90)))
	}
	p := ng.Bytes()
	ng2 := newNg(binary.LittleEndian)
	ng2.iface(1, 0, ng2.opt(ifFCSLength, []byte{4}))
	for i := range 300 {
		ng2.epb(0, uint64(i)*1e6, string(make([]byte, 20+i%90)))
	}
	damaged := lots(500)
	copy(damaged[40_000:], make([]byte, 5000))
	nano := buildPcap(pcapOpts{link: 1, order: binary.BigEndian, magic: magicNano}, rec(1, 5, 50, 'a'), rec(2, 6, 700, 'b'), rec(2, 7, 50, 'c'), rec(3, 8, 60, 'd'))
	return map[string][]byte{
		"pcap": lots(500), "pcap, damaged": damaged, "pcap, big-endian": nano, "pcap, giants": giants(),
		"pcapng": p, "pcapng, two sections": append(p, ng2.Bytes()...),
	}
}

// TestPlace goes on at each place of a file: the same packets, taps and batches, and the problems that follow.
func TestPlace(t *testing.T) {
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, filepath.Join(t.TempDir(), "test"), p)
			opts := Options{BatchSize: max(len(p)/20, 500), First: 7}
			all := func(r Reader) (sizes []int, packets []Packet) {
				var b Batch
				for r.Read(&b) == nil {
					sizes = append(sizes, len(b.Packets))
					for _, p := range b.Packets {
						p.Data = append([]byte{}, p.Data...)
						packets = append(packets, p)
					}
				}
				return
			}
			open := func() Reader {
				r, err := Open([]string{file}, opts)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			r := open()
			if _, ok := r.(Placer).Place(); ok {
				t.Error("a place before the first batch")
			}
			sizes, packets := all(r)
			if _, ok := r.(Placer).Place(); ok {
				t.Error("a place at the end")
			}
			taps := r.(Tapper).Taps()
			list, total := r.Problems()
			r.Close()

			r = open()
			defer r.Close()
			var b Batch
			found, read := 0, 0
			for i := range sizes {
				if err := r.Read(&b); err != nil {
					t.Fatal(err)
				}
				read += len(b.Packets)
				at, ok := r.(Placer).Place()
				if !ok {
					continue
				}
				found++
				text, err := json.Marshal(at)
				if err != nil {
					t.Fatal(err)
				}
				var again Place
				if err := json.Unmarshal(text, &again); err != nil {
					t.Fatal(err)
				}
				o, err := OpenAt(file, again, opts)
				if err != nil {
					t.Fatal(err)
				}
				gotSizes, got := all(o)
				samePackets(t, got, packets[read:])
				for k, n := range gotSizes {
					if n != sizes[i+1+k] {
						t.Fatalf("batch %d after place %d has %d packets, want %d", k, i, n, sizes[i+1+k])
					}
				}
				if gotTaps := o.(Tapper).Taps(); len(got) > 0 && len(gotTaps) != len(taps) {
					t.Errorf("taps %v, want %v", gotTaps, taps)
				}
				_, before := r.Problems()
				rest, n := o.Problems()
				if n != total-before {
					t.Errorf("%d problems after place %d, want %d", n, i, total-before)
				}
				for k := range rest {
					if rest[k].Error() != list[before+k].Error() {
						t.Errorf("problem %v, want %v", rest[k], list[before+k])
					}
				}
				o.Close()
			}
			if found < len(sizes)/2 {
				t.Errorf("%d places in %d batches", found, len(sizes))
			}
		})
	}
}

// There is no place in what cannot be read from the middle.
func TestNoPlace(t *testing.T) {
	dir := t.TempDir()
	in := lots(2000)
	a, b := writeFile(t, dir+"/a", in), writeFile(t, dir+"/b", gz(in))
	for _, names := range [][]string{{a, a}, {b}, {"-"}} {
		f, err := os.Open(a)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(names, Options{BatchSize: 5000, Stdin: io.MultiReader(f)})
		if err != nil {
			t.Fatal(err)
		}
		var batch Batch
		if err := r.Read(&batch); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.(Placer).Place(); ok {
			t.Errorf("a place in %v", names)
		}
		r.Close()
		f.Close()
	}
}

// FuzzPlace opens files at places that somebody made up: an error, or packets, within the memory of batches.
func FuzzPlace(f *testing.F) {
	dir := f.TempDir()
	var files []string
	list := places(f)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		p := list[name]
		if name == "pcap, giants" {
			continue
		}
		file := writeFile(f, filepath.Join(dir, name), p)
		files = append(files, file)
		r, err := Open([]string{file}, Options{BatchSize: 2000})
		if err != nil {
			f.Fatal(err)
		}
		var b Batch
		for i := range 3 {
			if r.Read(&b) != nil {
				break
			}
			if at, ok := r.(Placer).Place(); ok {
				text, _ := json.Marshal(at)
				f.Add(uint8(i), text)
			}
		}
		r.Close()
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		var at Place
		if json.Unmarshal(text, &at) != nil {
			return
		}
		r, err := OpenAt(files[int(which)%len(files)], at, Options{BatchSize: 2000, MaxRecord: 64 << 10})
		if err != nil {
			return
		}
		defer r.Close()
		var b Batch
		for {
			err := r.Read(&b)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			taps := r.(Tapper).Taps()
			for i := range b.Packets {
				if p := &b.Packets[i]; int(p.Tap) >= len(taps) {
					t.Fatalf("tap %d of %d", p.Tap, len(taps))
				}
			}
		}
	})
}
