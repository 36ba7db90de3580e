package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func gz(ps ...[]byte) []byte {
	var b bytes.Buffer
	for _, p := range ps {
		w := gzip.NewWriter(&b)
		w.Write(p)
		w.Close()
	}
	return b.Bytes()
}

func zs(ps ...[]byte) []byte {
	var b bytes.Buffer
	for _, p := range ps {
		w, _ := zstd.NewWriter(&b)
		w.Write(p)
		w.Close()
	}
	return b.Bytes()
}

// lots is a pcap of n packets with data that does not compress.
func lots(n int) []byte {
	rnd := rand.New(rand.NewPCG(3, uint64(n)))
	var recs []pcapRec
	for i := range n {
		r := rec(uint32(i+1), uint32(i), 60+i%1400, 0)
		for j := range r.data {
			r.data[j] = byte(rnd.Uint32())
		}
		recs = append(recs, r)
	}
	return buildPcap(pcapOpts{link: 1}, recs...)
}

func TestCompressed(t *testing.T) {
	in := lots(2000)
	want := readBytes(t, in, Options{})
	if len(want.packets) != 2000 || want.total != 0 {
		t.Fatal(len(want.packets), want.problems)
	}
	half := len(in) / 2
	skippable := []byte{0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}
	for name, p := range map[string][]byte{
		"gzip":            gz(in),
		"gzip members":    gz(in[:10], in[10:half], nil, in[half:]),
		"zstd":            zs(in),
		"zstd frames":     zs(in[:1], in[1:half], in[half:]),
		"zstd, skippable": append(skippable, zs(in)...),
	} {
		t.Run(name, func(t *testing.T) {
			same(t, readBytes(t, p, Options{}), want)
			file := writeFile(t, "x", p)
			r, err := Open([]string{file}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			res := collect(t, r)
			same(t, res, want)
			if done, total := r.(Progresser).Progress(); done != int64(len(p)) || total != done {
				t.Errorf("progress %d of %d, file %d", done, total, len(p))
			}
		})
	}
}

func TestCompressedDamaged(t *testing.T) {
	in := lots(2000)
	all := readBytes(t, in, Options{}).packets
	flip := func(p []byte, at int) []byte {
		p = bytes.Clone(p)
		p[at] ^= 0x10
		return p
	}
	g, z := gz(in), zs(in)
	for name, c := range map[string]struct {
		in    []byte
		least int
		text  string
	}{
		"gzip cut":            {g[:len(g)/2], 800, "gzip|beyond the end"},
		"gzip cut at its end": {g[:len(g)-4], 2000, "gzip data is damaged or cut short"},
		"gzip checksum":       {flip(g, len(g)-6), 2000, "gzip data is damaged or cut short"},
		"gzip and garbage":    {append(bytes.Clone(g), "garbage, garbage"...), 2000, "gzip data is damaged or cut short"},
		"zstd cut":            {z[:len(z)/2], 600, "zstd|beyond the end"},
		"zstd checksum":       {flip(z, len(z)-2), 1900, "zstd|beyond the end"},
		"zstd and garbage":    {append(bytes.Clone(z), "garbage, garbage"...), 2000, "zstd data is damaged or cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			res := readBytes(t, c.in, Options{})
			if len(res.packets) < c.least || res.total == 0 {
				t.Fatalf("%d packets, problems %v", len(res.packets), res.problems)
			}
			samePackets(t, res.packets, all[:len(res.packets)])
			found := false
			for _, s := range strings.Split(c.text, "|") {
				found = found || strings.Contains(res.problemText(), s)
			}
			if !found || res.total != 1 {
				t.Errorf("problems %v", res.problems)
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		return writeFile(t, filepath.Join(dir, name), []byte(content))
	}
	good := file("good", string(lots(3)))
	tarred := "a.pcap" + strings.Repeat("\x00", 251) + "ustar\x0000"
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, "no input named"},
		{[]string{dir + "/none"}, "no such file"},
		{[]string{dir}, dir + ": is a directory: name the files in it"},
		{[]string{file("empty", "")}, "empty: empty file"},
		{[]string{file("one", "\n")}, "one: not a packet capture: only 1 byte long (0a); supported are pcap, pcapng, ERF and the text of trace events, also compressed with gzip or zstd"},
		{[]string{file("short", "\xd4\xc3")}, "short: not a packet capture: only 2 bytes long (d4 c3); supported are pcap, pcapng, ERF and the text of trace events, also compressed with gzip or zstd"},
		{[]string{file("elf", "\x7fELF\x02\x01\x01\x00\x00\x00")}, "elf: not a packet capture: starts with 7f 45 4c 46 02 01 01 00 (a program); supported"},
		{[]string{file("snoop", "snoop\x00\x00\x00\x00\x00\x00\x02")}, "snoop: convert it with editcap"},
		{[]string{file("xz", "\xfd7zXZ\x00\x00\x04")}, "xz: decompress it first"},
		{[]string{file("zip", "PK\x03\x04\x14\x00\x00\x00")}, "(zip archive: unpack it first)"},
		{[]string{file("tar", tarred)}, "(tar archive: unpack it first)"},
		{[]string{file("tgz", string(gz([]byte(tarred))))}, "decompressed with gzip, starts with 61 2e 70 63 61 70 00 00 (tar archive: unpack it first)"},
		{[]string{file("nearly", tarred[:261])}, "61 2e 70 63 61 70 00 00; supported"},
		{[]string{file("text", "12:00:01.000000 IP 192.0.2.1")}, "(text)"},
		{[]string{file("gztext", string(gz([]byte("hello there"))))}, "decompressed with gzip, starts with 68 65"},
		{[]string{file("gzgz", string(gz(gz([]byte("hello there")))))}, "gzip within compressed data"},
		{[]string{file("gzempty", string(gz(nil)))}, "gzempty: empty file"},
		{[]string{file("gzhead", "\x1f\x8b\x08")}, "gzhead: gzip: "},
		{[]string{file("gzname", "\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03"+strings.Repeat("name", 1000))}, "gzname: gzip: gzip: invalid header"},
		{[]string{file("zstdhead", "\x28\xb5\x2f\xfd")}, "zstdhead: zstd: "},
		{[]string{"-", "-"}, "named more than once"},
		{[]string{good, dir + "/none"}, "none: no such file"},
		{[]string{good, dir + "/elf"}, "(a program)"},
		{[]string{dir + "/empty", dir + "/empty"}, "empty: empty file"},
	} {
		r, err := Open(c.names, Options{})
		if r != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.names, err)
		}
		if strings.Contains(c.want, "not a packet capture") {
			var fe *FormatError
			if !errors.As(err, &fe) || fe.File != c.names[0] {
				t.Errorf("%v: %#v", c.names, err)
			}
		}
	}
}

// TestRegularStdin: standard input that is a regular file is not read again from where reading it has ended.
func TestRegularStdin(t *testing.T) {
	dir := t.TempDir()
	one := writeFile(t, filepath.Join(dir, "one"), lots(3))
	for _, names := range [][]string{{one, "-"}, {"-", one}, {"-"}} {
		stdin, err := os.Open(writeFile(t, filepath.Join(dir, "two"), lots(2000)))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(names, Options{Stdin: stdin})
		if err != nil {
			t.Fatalf("%q: %v", names, err)
		}
		n := 0
		var b Batch
		for err == nil {
			err = r.Read(&b)
			n += len(b.Packets)
		}
		if want := 2000 + 3*(len(names)-1); err != io.EOF || n != want {
			t.Errorf("%q: %d packets, want %d: %v", names, n, want, err)
		}
		if err := errors.Join(r.Close(), stdin.Close()); err != nil {
			t.Errorf("%q: %v", names, err)
		}
	}
}

// A pipe is not waited for once there is a packet to give.
func TestInteractive(t *testing.T) {
	in := buildPcap(pcapOpts{link: 1}, rec(1, 0, 50, 'a'), rec(2, 0, 50, 'b'), rec(3, 0, 50, 'c'))
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	steps := []struct {
		upTo, packets int
	}{{24 + 66, 1}, {24 + 66 + 80, 1}, {24 + 3*66, 1}}
	pw.Write(in[:steps[0].upTo])
	r, err := Open([]string{"-"}, Options{Stdin: pr})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for i, s := range steps {
		if i > 0 {
			pw.Write(in[steps[i-1].upTo:s.upTo])
		}
		if err := r.Read(&b); err != nil || len(b.Packets) != s.packets {
			t.Fatalf("step %d: %d packets, %v", i, len(b.Packets), err)
		}
	}
	pw.Close()
	if err := r.Read(&b); err != io.EOF {
		t.Fatal(err)
	}
	if done, total := r.(Progresser).Progress(); done != int64(len(in)) || total != 0 {
		t.Errorf("progress %d of %d", done, total)
	}
}

// Standard input may be a regular file.
func TestStdinRedirected(t *testing.T) {
	f, err := os.Open(writeFile(t, "x", lots(10)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Open([]string{"-"}, Options{Stdin: f})
	if err != nil {
		t.Fatal(err)
	}
	if _, total := r.(Progresser).Progress(); total == 0 {
		t.Error("size not known")
	}
	if res := collect(t, r); len(res.packets) != 10 {
		t.Errorf("%d packets", len(res.packets))
	}
}

// failing gives some bytes and then an error that is not the end.
type failing struct{ io.Reader }

var errDisk = errors.New("disk on fire")

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = errDisk
	}
	return n, err
}

// What was read before an input fails is given before the error.
func TestInputFails(t *testing.T) {
	in := lots(100)
	for _, p := range [][]byte{in, gz(in)} {
		r, err := NewReader(failing{bytes.NewReader(p[:len(p)-1])}, "test", Options{})
		if err != nil {
			t.Fatal(err)
		}
		res := collect(t, r)
		if len(res.packets) < 90 || !errors.Is(res.err, errDisk) {
			t.Errorf("%d packets, %v", len(res.packets), res.err)
		}
	}
	if _, err := NewReader(failing{strings.NewReader("")}, "test", Options{}); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}

// Batches own their memory: a batch stays as it is while others are read.
func TestBatchesAreIndependent(t *testing.T) {
	a, b := writeFile(t, "a", lots(2000)), writeFile(t, "b", lots(3000))
	for _, names := range [][]string{{a}, {a, b}} {
		r, err := Open(names, Options{BatchSize: 5000})
		if err != nil {
			t.Fatal(err)
		}
		var batches [8]Batch
		var sums [8]uint64
		seed := maphash.MakeSeed()
		print := func(b *Batch) uint64 {
			var h maphash.Hash
			h.SetSeed(seed)
			for _, p := range b.Packets {
				h.Write(p.Data) //nolint:errcheck // it never fails
				p.Data = nil
				fmt.Fprint(&h, p)
			}
			return h.Sum64()
		}
		for k := range batches {
			sums[k] = print(&batches[k])
		}
		for i := 0; ; i++ {
			k := i % len(batches)
			if got := print(&batches[k]); got != sums[k] {
				t.Fatalf("batch %d changed while it was in use", i)
			}
			if err := r.Read(&batches[k]); err != nil {
				break
			}
			sums[k] = print(&batches[k])
		}
		r.Close()
	}
}

func TestClosed(t *testing.T) {
	a := writeFile(t, "a", lots(20))
	for _, names := range [][]string{{a}, {a, a}} {
		r, err := Open(names, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := r.Read(&b); !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestMergeLanes(t *testing.T) {
	file := func(ts ...uint32) []byte { // letters count the packets of a file
		var recs []pcapRec
		for i, s := range ts {
			recs = append(recs, rec(s, 0, 1, 'a'+byte(i)))
		}
		return buildPcap(pcapOpts{link: 1}, recs...)
	}
	ng2 := func(ids ...uint32) []byte { // time 10, 11, … on interfaces ids
		n := newNg(binary.LittleEndian)
		for i := range 3 {
			n.iface(1, 0, n.opt(ifName, []byte{'i', '0' + byte(i)}))
		}
		for i, id := range ids {
			n.epb(id, uint64(10+i)*1e6, string(rune('a'+i)))
		}
		return n.Bytes()
	}
	for _, c := range []struct {
		name  string
		files [][]byte
		want  string // time, data, tap
		taps  string // file.interface name lane
	}{
		{"rotated", [][]byte{file(1, 2), file(3, 4), file(5)}, "1a0 2b0 3a0 4b0 5a0", "0.0 L0"},
		{"rotated, named out of order", [][]byte{file(5), file(1, 2), file(3, 4)}, "1a0 2b0 3a0 4b0 5a0", "1.0 L0"},
		{"rotated at one time", [][]byte{file(1, 2), file(2, 3)}, "1a0 2b0 2a0 3b0", "0.0 L0"},
		{"overlapping", [][]byte{file(1, 3, 5), file(2, 4, 6)}, "1a0 2a1 3b0 4b1 5c0 6c1", "0.0 L0 1.0 L1"},
		{"equal times: the file named first", [][]byte{file(2, 2), file(1, 2, 3)}, "1a0 2a1 2b1 2b0 3c0", "1.0 L0 0.0 L1"},
		{"two rotated series", [][]byte{file(1, 5), file(6, 9), file(2, 5), file(6, 8)}, "1a0 2a1 5b0 5b1 6a0 6a1 8b1 9b0", "0.0 L0 2.0 L1"},
		{"lowest free lane first", [][]byte{file(1, 3), file(1, 4), file(2, 9), file(5), file(6)}, "1a0 1a1 2a2 3b0 4b1 5a0 6a0 9b2", "0.0 L0 1.0 L1 2.0 L2"},
		{"out of order within", [][]byte{file(5, 1, 6), file(2, 7)}, "2a0 5a1 1b1 6c1 7b0", "1.0 L0 0.0 L1"},
		{"without packets", [][]byte{file(), file(1), nil, file(2), file()}, "1a0 2a0", "1.0 L0"},
		{"only empty captures", [][]byte{file(), file()}, "", ""},
		{"interfaces", [][]byte{ng2(2, 0, 2), file(11), ng2(1)}, "10a2 10a4 11b0 11a3 12c2", "0.0i0 L0 0.1i1 L0 0.2i2 L0 1.0 L2 2.0i0 L1 2.1i1 L1"},
		{"interfaces of rotated files", [][]byte{ng2(1), file(20), ng2()}, "10a1 20a0", "0.0i0 L0 0.1i1 L0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var names []string
			for i, p := range c.files {
				names = append(names, writeFile(t, filepath.Join(dir, itoa(int64(i))), p))
			}
			for _, size := range []int{0, 1} {
				r, err := Open(names, Options{BatchSize: size})
				if err != nil {
					t.Fatal(err)
				}
				res := collect(t, r)
				var s []string
				for i, p := range res.packets {
					if p.Number != uint64(i+1) {
						t.Errorf("packet %d has number %d", i+1, p.Number)
					}
					s = append(s, fmt.Sprintf("%d%s%d", p.Time/1e9, p.Data, p.Tap))
				}
				if got := strings.Join(s, " "); got != c.want {
					t.Errorf("packets %s\n   want %s", got, c.want)
				}
				s = nil
				for _, p := range res.taps {
					s = append(s, fmt.Sprintf("%s.%d%s L%d", filepath.Base(p.File), p.Interface, p.Name, p.Lane))
				}
				if got := strings.Join(s, " "); c.name != "interfaces" && got != c.taps {
					t.Errorf("taps %s\nwant %s", got, c.taps)
				}
				var total int64
				for _, p := range c.files {
					total += int64(len(p))
				}
				if d, n := r.(Progresser).Progress(); d != total || n != total {
					t.Errorf("progress %d of %d, want %d", d, n, total)
				}
			}
		})
	}
}

// Merging is a stable sort by time of files that are in order.
func TestMergeIsStableSort(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for round := range 60 {
		dir := t.TempDir()
		var names []string
		var want []Packet
		for i := range 1 + rnd.IntN(6) {
			now := rnd.IntN(40)
			var recs []pcapRec
			for range rnd.IntN(60) {
				now += rnd.IntN(3)
				recs = append(recs, rec(uint32(now), 0, rnd.IntN(200), byte(rnd.Uint32())))
			}
			p := buildPcap(pcapOpts{link: 1}, recs...)
			want = append(want, readBytes(t, p, Options{}).packets...)
			if rnd.IntN(3) == 0 {
				p = gz(p)
			}
			names = append(names, writeFile(t, filepath.Join(dir, itoa(int64(i))), p))
		}
		slices.SortStableFunc(want, func(a, b Packet) int { return int((a.Time - b.Time) / 1e9) })
		r, err := Open(names, Options{BatchSize: 64 << (round % 8)})
		if err != nil {
			t.Fatal(err)
		}
		res := collect(t, r)
		for i := range min(len(want), len(res.packets)) {
			want[i].Number, want[i].Tap = uint64(i+1), res.packets[i].Tap
		}
		samePackets(t, res.packets, want)
		if res.total != 0 {
			t.Error(res.problems)
		}
	}
}

// A pipe among files is merged too, without keeping packets back.
func TestMergePipe(t *testing.T) {
	a := buildPcap(pcapOpts{link: 1}, rec(1, 0, 9, 'a'), rec(5, 0, 9, 'b'))
	p1 := buildPcap(pcapOpts{link: 1}, rec(2, 0, 9, 'c'))
	p2 := buildPcap(pcapOpts{link: 1}, rec(4, 0, 9, 'd'))[24:]
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	pw.Write(p1)
	r, err := Open([]string{writeFile(t, "a", a), "-"}, Options{Stdin: pr})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	var got []byte
	for range 2 {
		if err := r.Read(&b); err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			got = append(got, p.Data[0])
		}
		if string(got) == "ac" {
			break
		}
	}
	if string(got) != "ac" {
		t.Fatalf("%s before more was written", got)
	}
	pw.Write(p2)
	pw.Close()
	for r.Read(&b) == nil {
		for _, p := range b.Packets {
			got = append(got, p.Data[0])
		}
	}
	if string(got) != "acdb" {
		t.Errorf("%s", got)
	}
}

// Problems of merged files name the file and count within it, and damage met
// when a file is first looked at is not told twice.
func TestMergeProblems(t *testing.T) {
	dir := t.TempDir()
	bad := buildPcap(pcapOpts{link: 1}, rec(1, 0, 20, 'a'), rec(2, 0, 20, 'b'), rec(2, 1, 20, 'c'), rec(2, 2, 20, 'd'), rec(3, 0, 20, 'e'), rec(4, 0, 20, 'f'))
	copy(bad[24+8:], "\xff\xff\xff\xff")
	copy(bad[24+4*36+8:], "\xff\xff\xff\xff")
	a := writeFile(t, dir+"/a", buildPcap(pcapOpts{link: 1}, rec(1, 0, 20, 'a'), rec(5, 0, 20, 'a')))
	b := writeFile(t, dir+"/b", bad)
	e := writeFile(t, dir+"/e", nil)
	r, err := Open([]string{a, b, e}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	res := collect(t, r)
	if got := res.text(); got != "1s/20:ax20 2s/20:bx20@1 2s1/20:cx20@1 2s2/20:dx20@1 4s/20:fx20@1 5s/20:ax20" {
		t.Error(got)
	}
	want := e + ": packet 0, offset 0: empty file\n" +
		b + ": packet 1, offset 24: the record is longer than the limit; skipped 36 bytes\n" +
		b + ": packet 4, offset 168: the record is longer than the limit; skipped 36 bytes"
	if got := res.problemText(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A file that vanishes between Open and its turn is an error, after what came
// before it.
func TestMergeFileVanishes(t *testing.T) {
	dir := t.TempDir()
	a := writeFile(t, dir+"/a", buildPcap(pcapOpts{link: 1}, rec(1, 0, 20, 'a')))
	b := writeFile(t, dir+"/b", buildPcap(pcapOpts{link: 1}, rec(2, 0, 20, 'b')))
	r, err := Open([]string{a, b}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(b)
	res := collect(t, r)
	if len(res.packets) != 1 || !errors.Is(res.err, os.ErrNotExist) {
		t.Errorf("%d packets, %v", len(res.packets), res.err)
	}
}
