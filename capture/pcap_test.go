package capture

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
)

func cat(ps ...[]byte) []byte { return bytes.Join(ps, nil) }

func TestPcap(t *testing.T) {
	be := binary.BigEndian
	two := []pcapRec{rec(100, 7, 5, 'a'), rec(101, 8, 60, 'b')}
	good := buildPcap(pcapOpts{link: 1}, rec(100, 1, 20, 'a'), rec(100, 2, 20, 'b'), rec(100, 3, 20, 'c'), rec(100, 4, 20, 'd'))
	abcd := "100s1/20:ax20 100s2/20:bx20 100s3/20:cx20 100s4/20:dx20"
	edit := func(p []byte, at int, v ...byte) []byte {
		p = append([]byte(nil), p...)
		copy(p[at:], v)
		return p
	}
	const h, r = pcapFileHeader, pcapRecordHeader + 20
	for _, c := range []struct {
		name     string
		in       []byte
		max      int
		want     string
		problems string
	}{
		{name: "ns", in: buildPcap(pcapOpts{link: 1}, two...), want: "100s7/5:ax5 101s8/60:bx60"},
		{name: "ns, big-endian", in: buildPcap(pcapOpts{link: 1, order: be}, two...), want: "100s7/5:ax5 101s8/60:bx60"},
		{name: "µs", in: buildPcap(pcapOpts{link: 1, magic: magicMicro}, two...), want: "100s7000/5:ax5 101s8000/60:bx60"},
		{name: "µs, big-endian", in: buildPcap(pcapOpts{link: 1, magic: magicMicro, order: be}, two...), want: "100s7000/5:ax5 101s8000/60:bx60"},
		{name: "Kuznetzov", in: buildPcap(pcapOpts{link: 1, magic: magicKuznetzov}, two...), want: "100s7000/5:ax5 101s8000/60:bx60"},
		{name: "Kuznetzov, big-endian", in: buildPcap(pcapOpts{link: 1, magic: magicKuznetzov, order: be}, two...), want: "100s7000/5:ax5 101s8000/60:bx60"},
		{name: "Ixia hardware", in: buildPcap(pcapOpts{link: 1, magic: magicIxiaHW}, two...), want: "100s7/5:ax5 101s8/60:bx60"},
		{name: "Ixia software, big-endian", in: buildPcap(pcapOpts{link: 1, magic: magicIxiaSW, order: be}, two...), want: "100s7000/5:ax5 101s8000/60:bx60"},
		{name: "version 2.2 swaps the lengths", in: buildPcap(pcapOpts{link: 1, major: 2, minor: 2}, pcapRec{1, 0, 9, 3, []byte("abc")}), want: "1s/9:ax3"},
		{name: "version 2.3 has either order", in: buildPcap(pcapOpts{link: 1, major: 2, minor: 3}, pcapRec{1, 0, 9, 3, []byte("abc")}, pcapRec{2, 0, 3, 9, []byte("abc")}), want: "1s/9:ax3 2s/9:ax3"},
		{name: "unknown version", in: buildPcap(pcapOpts{link: 1, major: 7, minor: 1}, rec(1, 0, 3, 'a')), want: "1s/3:ax3", problems: "packet 0, offset 0: pcap version 7.1 is not known; reading it as 2.4"},
		{name: "link types are 16 bits", in: buildPcap(pcapOpts{link: 0x02240000 | 276}, rec(1, 0, 3, 'a')), want: "1s/3:ax3~276"},
		{name: "FCS is trimmed", in: buildPcap(pcapOpts{link: 0x24000001}, rec(1, 0, 64, 'a'), pcapRec{2, 0, 62, 64, make([]byte, 62)}, pcapRec{2, 0, 50, 64, bytes.Repeat([]byte{'c'}, 50)}, rec(3, 0, 3, 'd')),
			want: "1s/60:ax60 2s/60:\x00x60 2s/60:cx50 3s/0:"},
		{name: "FCS length without its flag", in: buildPcap(pcapOpts{link: 0x20000001}, rec(1, 0, 64, 'a')), want: "1s/64:ax64"},
		{name: "snaplen 0", in: buildPcap(pcapOpts{link: 1, snap: 0}, two...), want: "100s7/5:ax5 101s8/60:bx60"},
		{name: "snaplen huge", in: buildPcap(pcapOpts{link: 1, snap: 1<<32 - 1}, two...), want: "100s7/5:ax5 101s8/60:bx60"},
		{name: "records longer than snaplen", in: buildPcap(pcapOpts{link: 1, snap: 4}, two...), want: "100s7/5:ax5 101s8/60:bx60"},
		{name: "cut packets", in: buildPcap(pcapOpts{link: 1, snap: 4}, pcapRec{1, 2, 4, 1514, []byte("abcd")}), want: "1s2/1514:ax4"},
		{name: "nothing captured", in: buildPcap(pcapOpts{link: 1}, pcapRec{1, 0, 0, 60, nil}, pcapRec{2, 0, 0, 60, nil}), want: "1s/60: 2s/60:"},
		{name: "nothing on the wire", in: buildPcap(pcapOpts{link: 1}, pcapRec{1, 0, 0, 0, nil}, pcapRec{2, 0, 0, 0, nil}), want: "1s/0: 2s/0:"},
		{name: "zero record at the start", in: buildPcap(pcapOpts{link: 1}, pcapRec{}, rec(2, 0, 3, 'a')), want: "0/0: 2s/3:ax3"},
		{name: "no packets", in: buildPcap(pcapOpts{link: 1})},
		{name: "300 KiB packet", in: buildPcap(pcapOpts{link: 1}, rec(1, 0, 3, 'a'), rec(2, 0, 300<<10, 'b'), rec(3, 0, 3, 'c')), want: "1s/3:ax3 2s/307200:bx307200 3s/3:cx3"},
		{name: "3 MiB packets", in: buildPcap(pcapOpts{link: 1}, rec(1, 0, 3, 'a'), rec(2, 0, 3<<20, 'b'), rec(3, 0, 3<<20, 'c')), want: "1s/3:ax3 2s/3145728:bx3145728 3s/3145728:cx3145728"},
		{name: "packet above the limit", max: 100 << 10, in: buildPcap(pcapOpts{link: 1}, rec(1, 0, 3, 'a'), rec(2, 0, 300<<10, 'b'), rec(3, 0, 3, 'c')),
			want: "1s/3:ax3 3s/3:cx3", problems: "packet 2, offset 43: the record is longer than the limit; skipped 307216 bytes"},
		{name: "captured more than was on the wire", in: buildPcap(pcapOpts{link: 1}, pcapRec{1, 0, 4, 2, []byte("aaaa")}, rec(2, 0, 3, 'b')),
			want: "1s/4:ax4 2s/3:bx3", problems: "packet 1, offset 24: the captured length exceeds the length on the wire (captured 4, on the wire 2, fraction 0); read as it is"},
		{name: "nanoseconds under a µs magic", in: buildPcap(pcapOpts{link: 1, magic: magicMicro}, rec(1, 2000000, 4, 'a')),
			want: "3s/4:ax4", problems: "packet 1, offset 24: the fraction of the time is a second or more (captured 4, on the wire 4, fraction 2000000); read as it is"},
		{name: "absurd length on the wire", in: buildPcap(pcapOpts{link: 1}, pcapRec{1, 0, 4, 1 << 30, []byte("aaaa")}),
			want: "1s/4:ax4", problems: "packet 1, offset 24: the length on the wire is absurd (captured 4, on the wire 1073741824, fraction 0); read as it is"},

		{name: "damaged length, longer", in: edit(good, h+r+8, 30), want: "100s1/20:ax20 100s3/20:cx20 100s4/20:dx20",
			problems: "packet 2, offset 60: the captured length exceeds the length on the wire; skipped 36 bytes"},
		{name: "damaged length, shorter", in: edit(good, h+r+8, 12), want: "100s1/20:ax20 100s2/20:bx12 100s3/20:cx20 100s4/20:dx20",
			problems: "packet 3, offset 88: the captured length exceeds the length on the wire; skipped 8 bytes"},
		{name: "damaged length, beyond the file", in: edit(good, h+r+8, 0, 1, 0, 0, 0, 1), want: "100s1/20:ax20 100s3/20:cx20 100s4/20:dx20",
			problems: "packet 2, offset 60: the record runs beyond the end of the file; skipped 36 bytes"},
		{name: "first record damaged", in: edit(good, h+8, 0xff, 0xff, 0xff, 0xff), want: "100s2/20:bx20 100s3/20:cx20 100s4/20:dx20",
			problems: "packet 1, offset 24: the record is longer than the limit; skipped 36 bytes"},
		{name: "bytes missing", in: cat(good[:h+r+9], good[h+r+13:]), want: "100s1/20:ax20 100s3/20:cx20 100s4/20:dx20",
			problems: "packet 2, offset 60: the length on the wire is absurd; skipped 32 bytes"},
		{name: "bytes too many", in: cat(good[:h+r], []byte("garbage garbage garbage"), good[h+r:]), want: abcd,
			problems: "packet 2, offset 60: the record is longer than the limit; skipped 23 bytes"},
		{name: "hole of zeros", in: cat(good[:h+r], make([]byte, 4096), good[h+2*r:]), want: "100s1/20:ax20 100s3/20:cx20 100s4/20:dx20",
			problems: "packet 2, offset 60: the record does not end where another begins; skipped 4096 bytes"},
		{name: "zeros at the end", in: cat(good, make([]byte, 4096)), want: abcd,
			problems: "packet 5, offset 168: the record does not end where another begins; the last 4096 bytes are lost"},
		{name: "last record cut in its data", in: good[:len(good)-1], want: "100s1/20:ax20 100s2/20:bx20 100s3/20:cx20",
			problems: "packet 4, offset 132: the record runs beyond the end of the file; the last 35 bytes are lost: unexpected EOF"},
		{name: "last record cut in its header", in: good[:h+3*r+5], want: "100s1/20:ax20 100s2/20:bx20 100s3/20:cx20",
			problems: "packet 4, offset 132: the last record is cut short in its header; the last 5 bytes are lost: unexpected EOF"},
		{name: "last record cut to a byte", in: good[:h+3*r+1], want: "100s1/20:ax20 100s2/20:bx20 100s3/20:cx20",
			problems: "packet 4, offset 132: the last record is cut short in its header; the last byte is lost: unexpected EOF"},
		{name: "file header cut", in: good[:11], problems: "packet 0, offset 11: the file header is cut short: unexpected EOF"},
		{name: "damage, then a cut record", in: edit(good, h+8, 0xff, 0xff, 0xff, 0xff)[:len(good)-1], want: "100s2/20:bx20 100s3/20:cx20",
			problems: "packet 1, offset 24: the record is longer than the limit; skipped 36 bytes\n" +
				"packet 3, offset 132: the record runs beyond the end of the file; the last 35 bytes are lost: unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := Options{MaxRecord: c.max}
			res := readBytes(t, c.in, opts)
			if got := res.text(); got != c.want {
				t.Errorf("packets %s\n   want %s", got, c.want)
			}
			if got := res.problemText(); got != c.problems {
				t.Errorf("problems %s\n    want %s", got, c.problems)
			}
			for i, p := range res.packets {
				if p.Number != uint64(i+1) {
					t.Errorf("packet %d has number %d", i+1, p.Number)
				}
			}
			if len(c.in) < 1<<20 {
				same(t, readSlowly(t, c.in, opts), res)
			}
		})
	}
}

// A capture as tcpdump writes it: nanoseconds, little-endian, one frame.
const tcpdumpFile = "" +
	"4d3cb2a1 0200 0400 00000000 00000000 00000400 01000000" +
	"c0e0d268 15cd5b07 3e000000 3e000000" +
	"525400123401 525400123402 0800 45000030 00004000 40110000 c0000202 c0000201" +
	"c00012b7 001c0000 64ffffff 00000011 00000001 00000000 00000000"

func TestPcapGolden(t *testing.T) {
	in, err := hex.DecodeString(strings.ReplaceAll(tcpdumpFile, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	res := readBytes(t, in, Options{})
	if len(res.packets) != 1 || res.total != 0 {
		t.Fatalf("%+v", res)
	}
	p := res.packets[0]
	if p.Time != 0x68d2e0c0*1e9+0x075bcd15 || p.Offset != 24 || p.Length != 62 || p.Link != LinkEthernet || !bytes.Equal(p.Data, in[40:]) {
		t.Errorf("%+v", p)
	}
	if want := (Tap{File: "test", Link: 1, SnapLen: 262144}); len(res.taps) != 1 || res.taps[0] != want {
		t.Errorf("taps %+v", res.taps)
	}
}

func TestTruncatedIsUnexpectedEOF(t *testing.T) {
	in := buildPcap(pcapOpts{link: 1}, rec(1, 0, 20, 'a'))
	res := readBytes(t, in[:len(in)-1], Options{})
	if len(res.problems) != 1 || !errors.Is(res.problems[0], io.ErrUnexpectedEOF) {
		t.Fatalf("%v", res.problems)
	}
}

// A tail of zeros after damage of each record must not make the reader go over
// the same bytes again.
func TestPcapDamagedEverywhere(t *testing.T) {
	var recs []pcapRec
	for i := range 40000 {
		r := rec(uint32(i/100+1), 0, 40, byte(i))
		if i%4 == 3 {
			r.caplen = 15 << 20 // asks for much more than there is
			r.length = 15 << 20
		}
		recs = append(recs, r)
	}
	in := buildPcap(pcapOpts{link: 1, snap: 16 << 20}, recs...)
	res := readBytes(t, in, Options{})
	if len(res.packets) < 29990 || res.total < 9990 || len(res.problems) != MaxProblems {
		t.Errorf("%d packets, %d problems, %d of them listed", len(res.packets), res.total, len(res.problems))
	}
}
