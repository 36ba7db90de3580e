package oncrpc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// got is what is kept of a Record.
type got struct {
	data        []byte
	length      int
	broken      bool
	start, end  uint64
	first, last uint64
	packets     int
	fragments   int
}

func collect(list *[]got) func(*Record) {
	return func(r *Record) {
		*list = append(*list, got{bytes.Clone(r.Data), r.Length, r.Broken, r.Start, r.End, r.First.Number, r.Last.Number, r.Packets, r.Fragments})
	}
}

func ref(n int) rdma.Ref { return rdma.Ref{Time: int64(n), Number: uint64(n)} }

// call makes a call with n bytes of arguments.
func call(xid uint32, n int) []byte {
	c := Call{XID: xid, RPCVersion: 2, Program: 100003, Version: 3, Procedure: 7}
	b := c.Append(nil)
	for i := range n {
		b = append(b, byte(xid)+byte(i)|0x80)
	}
	return b
}

// fragments makes a record of fragments of at most n bytes.
func fragments(msg []byte, n int) (b []byte) {
	for len(msg) > n {
		b = append(xdr.AppendUint32(b, uint32(n)), msg[:n]...)
		msg = msg[n:]
	}
	return AppendRecord(b, msg)
}

func TestRecordParser(t *testing.T) {
	a, b, c := call(1, 100), call(2, 0), call(3, 3000)
	stream := AppendRecord(nil, a)
	stream = AppendRecord(stream, b)
	stream = AppendRecord(stream, c)
	var list []got
	p := RecordParser{Deliver: collect(&list)}
	p.Data(stream[:10], ref(1))
	p.Data(stream[10:200], ref(3)) // the first record ends here, the third begins
	p.Data(stream[200:1000], ref(2))
	p.Data(stream[1000:], ref(4))
	want := []got{
		{a, 140, false, 0, 144, 1, 3, 2, 1},
		{b, 40, false, 144, 188, 3, 3, 1, 1},
		{c, 3040, false, 188, 3232, 2, 4, 3, 1},
	}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("got  %+v\nwant %+v", list, want)
	}
}

func TestRecordParserZeroCopy(t *testing.T) {
	stream := AppendRecord(nil, call(1, 1000))
	var same bool
	p := RecordParser{Deliver: func(r *Record) { same = &r.Data[0] == &stream[4] && cap(r.Data) == len(r.Data) }}
	p.Data(stream, ref(1))
	if !same {
		t.Error("the record was copied")
	}
}

// Any way to cut a stream into segments gives the same records.
func TestRecordParserSegmentation(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var stream []byte
		var msgs [][]byte
		for i := range 20 {
			msg := call(uint32(i), rnd.IntN(3)*rnd.IntN(500))
			if rnd.IntN(3) == 0 {
				r := Reply{XID: uint32(i)}
				msg = append(r.Append(nil), msg...)
			}
			msgs = append(msgs, msg)
			switch rnd.IntN(4) {
			case 0:
				stream = append(stream, fragments(msg, 1+rnd.IntN(100))...)
			case 1: // an empty last fragment
				stream = append(xdr.AppendUint32(stream, uint32(len(msg))), msg...)
				stream = xdr.AppendUint32(stream, lastFragment)
			default:
				stream = AppendRecord(stream, msg)
			}
		}
		var list []got
		p := RecordParser{Deliver: collect(&list), synced: true}
		for off, n := 0, 0; off < len(stream); n++ {
			k := min(1+rnd.IntN(200), len(stream)-off)
			p.Data(stream[off:off+k:off+k], ref(n+1))
			off += k
		}
		if len(list) != len(msgs) || p.Lost != 0 || p.Offset() != uint64(len(stream)) {
			t.Fatalf("%d records of %d, lost %d", len(list), len(msgs), p.Lost)
		}
		end := uint64(0)
		for i, g := range list {
			if !bytes.Equal(g.data, msgs[i]) || g.length != len(msgs[i]) || g.broken || g.start != end {
				t.Fatalf("record %d: %+v", i, g)
			}
			end = g.end
		}
	}
}

// What a hole leaves over is found again.
func TestRecordParserHoles(t *testing.T) {
	msgs := [][]byte{call(1, 100), call(2, 1000), call(3, 50), call(4, 20)}
	var stream []byte
	var at []int
	for _, m := range msgs {
		at = append(at, len(stream))
		stream = AppendRecord(stream, m)
	}
	tests := []struct {
		name     string
		from, to int // of the hole
		want     []string
	}{
		{"in a body", at[1] + 200, at[1] + 300, []string{"1 140/140", "2 196/1040", "3 90/90", "4 60/60"}},
		{"to the end of a body", at[1] + 200, at[2], []string{"1 140/140", "2 196/1040", "3 90/90", "4 60/60"}},
		{"over an end", at[1] + 200, at[2] + 50, []string{"1 140/140", "2 196/1040", "4 60/60"}},
		{"over an end into a mark", at[1] + 200, at[2] + 2, []string{"1 140/140", "2 196/1040", "4 60/60"}},
		{"a whole record", at[1], at[2], []string{"1 140/140", "3 90/90", "4 60/60"}},
		{"from within a mark", at[1] + 2, at[1] + 20, []string{"1 140/140", "3 90/90", "4 60/60"}},
		{"in a header", at[1] + 6, at[1] + 100, []string{"1 140/140", "3 90/90", "4 60/60"}},
		{"at the start", 0, 7, []string{"2 1040/1040", "3 90/90", "4 60/60"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var list []string
			p := RecordParser{Deliver: func(r *Record) {
				m, _ := Peek(r.Data)
				list = append(list, fmt.Sprintf("%d %d/%d", m.XID, len(r.Data), r.Length))
				if r.Broken {
					t.Error("broken")
				}
			}}
			p.Data(stream[:tt.from], ref(1))
			p.Skip(uint64(tt.to-tt.from), rdma.Ref{})
			p.Data(stream[tt.to:], ref(3))
			if fmt.Sprint(list) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", list, tt.want)
			}
			if p.Offset() != uint64(len(stream)) || !p.Synced() {
				t.Errorf("offset %d of %d, synced %v", p.Offset(), len(stream), p.Synced())
			}
		})
	}
}

// Fragments that are lost make a record whose length is not known.
func TestRecordParserBroken(t *testing.T) {
	stream := fragments(call(1, 1000), 300)
	var list []got
	p := RecordParser{Deliver: collect(&list)}
	p.Data(stream[:100], ref(1))
	p.Skip(400, rdma.Ref{})
	p.Data(AppendRecord(nil, call(2, 0)), ref(2))
	if len(list) != 2 || !list[0].broken || len(list[0].data) != 96 || list[0].length != 300 || list[1].broken {
		t.Errorf("%+v", list)
	}
}

func TestRecordParserLimit(t *testing.T) {
	msgs := [][]byte{call(1, 5000), call(2, 10)}
	stream := AppendRecord(AppendRecord(nil, msgs[0]), msgs[1])
	var list []got
	p := RecordParser{Deliver: collect(&list), Limit: 100}
	for i := 0; i < len(stream); i += 99 {
		p.Data(stream[i:min(i+99, len(stream))], ref(i+1))
	}
	if len(list) != 2 || list[0].length != 5040 || !bytes.Equal(list[0].data, msgs[0][:100]) || !bytes.Equal(list[1].data, msgs[1]) {
		t.Errorf("%+v", list)
	}
}

// A length that no message has does not swallow the stream.
func TestRecordParserNonsense(t *testing.T) {
	var list []got
	p := RecordParser{Deliver: collect(&list)}
	p.Data(AppendRecord(nil, call(1, 0)), ref(1))
	p.Data([]byte{0x80, 0, 1, 0, 'S', 'S', 'H', '-', '2', '.', '0'}, ref(2))
	p.Data(bytes.Repeat([]byte("no RPC here "), 20), ref(3))
	p.Data(AppendRecord(nil, call(2, 0)), ref(4))
	p.Data([]byte{0x7f, 0xff, 0xff, 0xff}, ref(5))
	p.Data(AppendRecord(nil, call(3, 0)), ref(6))
	if len(list) != 3 || p.Lost != 2 {
		t.Errorf("%d records, lost %d", len(list), p.Lost)
	}
}

// A mark that is a segment of its own is not overlooked, and one that is none
// does no harm.
func TestRecordParserMarkAlone(t *testing.T) {
	msg := call(1, 50)
	stream := AppendRecord(nil, msg)
	var list []got
	p := RecordParser{Deliver: collect(&list)}
	p.Data([]byte{0x80, 0, 0x10, 0}, ref(1))
	p.Data(bytes.Repeat([]byte("no RPC here "), 20), ref(2))
	p.Data(stream[:4], ref(3))
	p.Data(stream[4:], ref(4))
	if len(list) != 1 || list[0].first != 3 || list[0].last != 4 || !bytes.Equal(list[0].data, msg) || p.Lost != 0 {
		t.Errorf("%+v, lost %d", list, p.Lost)
	}
}

// A parser that starts in the middle of a segment finds the next record.
func TestRecordParserMidSegment(t *testing.T) {
	stream := AppendRecord(nil, call(1, 3000))
	mid := len(stream)
	r := Reply{XID: 9}
	stream = AppendRecord(stream, append(r.Append(nil), 0, 0, 0, 0))
	stream = AppendRecord(stream, call(2, 7))
	for from := 1; from <= mid; from += 13 {
		var list []got
		p := RecordParser{Deliver: collect(&list)}
		p.Data(stream[from:], ref(1))
		if len(list) != 2 || list[0].start != uint64(mid-from) {
			t.Fatalf("from %d: %+v", from, list)
		}
	}
}

func TestStartsRecord(t *testing.T) {
	good := AppendRecord(nil, call(1, 100))
	for name, b := range map[string][]byte{
		"a call":          good,
		"cut":             good[:30],
		"two":             append(bytes.Clone(good), good...),
		"a fragment":      fragments(call(1, 100), 60),
		"part of another": append(bytes.Clone(good), 0x80),
		"a reply":         unhex(t, "8000001c"+getportReply),
	} {
		if !StartsRecord(b) {
			t.Errorf("%s: no", name)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":     nil,
		"no mark":     call(1, 100),
		"a mark":      good[:4],
		"short":       good[:20],
		"bad chain":   append(bytes.Clone(good), bytes.Repeat([]byte{0x55}, 40)...),
		"ssh":         []byte("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"),
		"http":        []byte("GET /index.html HTTP/1.1\r\nHost: example.com\r\n\r\n"),
		"TLS":         unhex(t, "1603010200010001fc0303aabbccddeeff00112233445566778899aabbccddeeff00112233"),
		"Kerberos":    unhex(t, "000000d86a81d53081d2a103020105a20302010aa3153013301102"+"0400000000000000000000000000000000000000"),
		"DNS":         unhex(t, "002d1a2b01000001000000000000076578616d706c6503636f6d0000010001000000000000"),
		"zeros":       make([]byte, 100),
		"iWARP":       append([]byte("MPA ID Req Frame"), make([]byte, 40)...),
		"too long":    append([]byte{0xff, 0xff, 0xff, 0xff}, call(1, 100)...),
		"odd program": append([]byte{0x80, 0, 0, 40}, unhex(t, "0000000100000000000000020000000000000003000000070000000000000000"+"0000000000000000")...),
	} {
		if StartsRecord(b) {
			t.Errorf("%s: yes", name)
		}
	}
}

func TestRecordParserAllocations(t *testing.T) {
	stream := AppendRecord(AppendRecord(nil, call(1, 3000)), call(2, 100))
	p := RecordParser{Deliver: func(*Record) {}}
	n := testing.AllocsPerRun(100, func() {
		p.Data(stream[:1000], ref(1))
		p.Data(stream[1000:2000], ref(2))
		p.Data(stream[2000:], ref(3))
	})
	if n != 0 || p.Lost != 0 {
		t.Errorf("%v allocations, lost %d", n, p.Lost)
	}
}

func FuzzRecordParser(f *testing.F) {
	stream := AppendRecord(nil, call(1, 20))
	stream = append(stream, fragments(call(2, 100), 50)...)
	f.Add(stream, []byte{20, 30, 7})
	f.Add(append(stream, stream[:60]...), []byte{200, 0, 3})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		size := uint64(len(stream))
		end := uint64(0)
		p := RecordParser{Limit: 1000, Deliver: func(r *Record) {
			if len(r.Data) > r.Length || r.Start < end || r.End < r.Start || r.End > size || r.First.Number > r.Last.Number {
				t.Fatalf("%+v", r)
			}
			if uint64(r.Length) > r.End-r.Start && !r.Broken {
				t.Fatalf("longer than its place: %+v", r)
			}
			end = r.End
		}}
		off := 0
		for i := 0; off < len(stream); i++ {
			k := 50
			hole := false
			if len(cuts) > 0 {
				c := cuts[i%len(cuts)]
				k, hole = 1+int(c&0x7f), c&0x80 != 0
			}
			k = min(k, len(stream)-off)
			if hole {
				p.Skip(uint64(k), ref(i+1))
			} else {
				p.Data(stream[off:off+k:off+k], ref(i+1))
			}
			off += k
			if p.Offset() != uint64(off) {
				t.Fatalf("offset %d, want %d", p.Offset(), off)
			}
			if cap(p.buf) > 4096 {
				t.Fatalf("a buffer of %d bytes", cap(p.buf))
			}
		}
	})
}

func BenchmarkStartsRecord(b *testing.B) {
	yes := AppendRecord(nil, call(1, 100))
	no := []byte("GET /index.html HTTP/1.1\r\nHost: example.com\r\n\r\n")
	b.Run("yes", func(b *testing.B) {
		for b.Loop() {
			StartsRecord(yes)
		}
	})
	b.Run("no", func(b *testing.B) {
		for b.Loop() {
			StartsRecord(no)
		}
	})
}

func BenchmarkRecordParser(b *testing.B) {
	stream := AppendRecord(AppendRecord(nil, call(1, 1300)), call(2, 30))
	p := RecordParser{Deliver: func(*Record) {}}
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		p.Data(stream, ref(1))
	}
}

// BenchmarkFindRecord is the worst case of a search: a segment full of what
// looks like the middle of a header.
func BenchmarkFindRecord(b *testing.B) {
	for name, unit := range map[string][]byte{"zeros": {0}, "calls": callPattern, "text": []byte("text")} {
		b.Run(name, func(b *testing.B) {
			seg := bytes.Repeat(unit, 65536/len(unit))
			b.SetBytes(int64(len(seg)))
			for b.Loop() {
				findRecord(seg)
			}
		})
	}
}
