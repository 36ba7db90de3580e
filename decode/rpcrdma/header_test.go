package rpcrdma

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Messages of the Linux client and server as sent, except for the last two.
const (
	// NFSv3 NULL call.
	nullCall = "cb899383000000010000008000000000000000000000000000000000cb8993830000000000000002000186a300000003" +
		"0000000000000000000000000000000000000000"
	// NFSACL GETACL call with a Reply chunk of three segments.
	getaclCall = "d38993830000000100000080000000000000000000000000000000010000000300000c7500000100d389938308513800" +
		"00000b3300007000d3899383082e600000000ad400000004d389938308513900d3899383000000000000000200018783" +
		"0000000300000001000000010000001c0000000000000006636c69656e74000000000000000000000000000000000000" +
		"000000000000000801000100010000000000000c"
	// Its reply: RDMA_NOMSG, the whole message in the Reply chunk.
	getaclReply = "d38993830000000100000040000000010000000000000000000000010000000300000c7500000088d389938308513800" +
		"00000b3300000000d3899383082e600000000ad400000000d389938308513900"
	// NFSv3 WRITE call with a Read chunk of eight segments at position 108.
	writeCall = "e4899383000000010000008000000000000000010000006c000005e100020000e489938307258000000000010000006c" +
		"0000041200020000e489938308b6a000000000010000006c0000036300020000e489938308e87000000000010000006c" +
		"000018ac00020000e489938308af8000000000010000006c0000175200020000e489938308b41000000000010000006c" +
		"000016d500020000e489938308ac1000000000010000006c0000156700020000e4899383089d9000000000010000006c" +
		"0000141500020000e489938308821000000000000000000000000000e48993830000000000000002000186a300000003" +
		"00000007000000010000001c0000000000000006636c69656e7400000000000000000000000000000000000000000000" +
		"00000010010001010100000047010000132ffbd50000000000000000001000000000000200100000"
	// NFSv3 READ call with a Write chunk.
	readCall = "008a9383000000010000008000000000000000000000000100000001000011fc00001000008a938303c9300000000000" +
		"00000000008a93830000000000000002000186a30000000300000006000000010000001c0000000000000006636c6965" +
		"6e740000000000000000000000000000000000000000000000000010010001010100000039010000266a0cc500000000" +
		"0000000000001000"
	// RDMA_ERROR with ERR_VERS and with ERR_CHUNK, put together by hand.
	errVers  = "11223344000000070000004000000004000000010000000100000001"
	errChunk = "1122334400000001000000400000000400000002"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// public is what can be seen of a Header.
type public struct {
	XID, Version, Credits        uint32
	Type                         Type
	Dialect                      Dialect
	Call, Reads                  []ReadSegment
	Writes                       []WriteChunk
	HasReply                     bool
	Reply                        WriteChunk
	Align, Threshold             uint32
	Error                        ErrorCode
	Low, High, Handle, Remaining uint32
	Properties                   []Property
}

func see(h *Header) public {
	p := public{
		h.XID, h.Version, h.Credits, h.Type, h.Dialect,
		append([]ReadSegment(nil), h.Call...), append([]ReadSegment(nil), h.Reads...),
		nil, h.HasReply, append(WriteChunk(nil), h.Reply...), h.Align, h.Threshold,
		h.Error, h.Low, h.High, h.InvalidateHandle, h.Remaining, append([]Property(nil), h.Properties...),
	}
	for _, c := range h.Writes {
		p.Writes = append(p.Writes, append(WriteChunk{}, c...))
	}
	return p
}

func TestDecodeReal(t *testing.T) {
	const hi = 0xd3899383 << 32
	tests := []struct {
		name    string
		msg     string
		want    public
		length  int
		payload int
		inline  bool
		key     string
	}{
		{"null call", nullCall, public{XID: 0xcb899383, Version: 1, Credits: 128}, 28, 40, true, "0; 0; 0"},
		{"offered reply chunk", getaclCall, public{
			XID: 0xd3899383, Version: 1, Credits: 128, HasReply: true,
			Reply: WriteChunk{{0xc75, 256, hi | 0x08513800}, {0xb33, 28672, hi | 0x082e6000}, {0xad4, 4, hi | 0x08513900}},
		}, 80, 84, true, "0; 0; 1 - N - HLOO - HLOO - HLOO"},
		{"used reply chunk", getaclReply, public{
			XID: 0xd3899383, Version: 1, Credits: 64, Type: TypeNoMsg, HasReply: true,
			Reply: WriteChunk{{0xc75, 136, hi | 0x08513800}, {0xb33, 0, hi | 0x082e6000}, {0xad4, 0, hi | 0x08513900}},
		}, 80, 0, false, "0; 0; 1 - N - HLOO - HLOO - HLOO"},
		{"write chunk", readCall, public{
			XID: 0x008a9383, Version: 1, Credits: 128,
			Writes: []WriteChunk{{{0x11fc, 4096, 0x008a938303c93000}}},
		}, 52, 100, true, "0; 1 - N - HLOO - 0; 0"},
		{"version error", errVers, public{
			XID: 0x11223344, Version: 7, Credits: 64, Type: TypeError, Error: ErrVers, Low: 1, High: 1,
		}, 28, 0, false, ""},
		{"chunk error", errChunk, public{
			XID: 0x11223344, Version: 1, Credits: 64, Type: TypeError, Error: ErrChunk,
		}, 20, 0, false, ""},
	}
	var h Header
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.msg)
			if err := h.Decode(b, len(b)); err != nil {
				t.Fatal(err)
			}
			if got := see(&h); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if h.Length != tt.length || h.PayloadLength != tt.payload || len(h.Payload) != tt.payload || h.Inline() != tt.inline {
				t.Errorf("length %d, payload %d (%d), inline %v", h.Length, h.PayloadLength, len(h.Payload), h.Inline())
			}
			if cap(h.Payload) != len(h.Payload) {
				t.Error("payload is not capped")
			}
			if h.Key() != tt.key {
				t.Errorf("key %q, want %q", h.Key(), tt.key)
			}
			if h.Size() != tt.length {
				t.Errorf("Size = %d, want %d", h.Size(), tt.length)
			}
			if got := h.Append(nil); !bytes.Equal(got, b[:tt.length]) {
				t.Errorf("Append = %x\nwant     %x", got, b[:tt.length])
			}
			if !Plausible(b, len(b)) {
				t.Error("not plausible")
			}
			if PlausibleV0(b, len(b)) || PlausibleV2(b, len(b)) {
				t.Error("plausible as another version")
			}
		})
	}
}

func TestDecodeReadList(t *testing.T) {
	b := unhex(t, writeCall)
	var h Header
	if err := h.Decode(b, len(b)); err != nil {
		t.Fatal(err)
	}
	if len(h.Reads) != 8 {
		t.Fatalf("%d read segments", len(h.Reads))
	}
	chunks := h.ReadChunks()
	if len(chunks) != 1 || chunks[0].Position != 108 || chunks[0].Length != 1<<20 || len(chunks[0].Segments) != 8 {
		t.Errorf("chunks %+v", chunks)
	}
	want := []xdr.Reduced{{Position: 108, Length: 1 << 20}}
	if got := h.ReducedCall(nil); !reflect.DeepEqual(got, want) {
		t.Errorf("reduced %+v", got)
	}
	if c := h.PositionZero(); len(c.Segments) != 0 {
		t.Errorf("position zero: %+v", c)
	}
	if h.Reads[7].Handle != 0x1415 || h.Reads[7].Offset != 0xe489938308821000 {
		t.Errorf("last segment %+v", h.Reads[7])
	}
}

func TestReadChunksOrder(t *testing.T) {
	seg := func(pos, handle, length uint32) ReadSegment {
		return ReadSegment{pos, Segment{Handle: handle, Length: length}}
	}
	h := Header{Version: 1, Type: TypeNoMsg, Reads: []ReadSegment{
		seg(200, 1, 10), seg(0, 2, 20), seg(200, 3, 30), seg(0, 4, 40), seg(100, 5, 1<<31), seg(100, 6, 1<<31),
	}}
	var got [][]uint32
	for _, c := range h.ReadChunks() {
		list := []uint32{c.Position, uint32(c.Length >> 1)}
		for _, s := range c.Segments {
			list = append(list, s.Handle)
		}
		got = append(got, list)
	}
	want := [][]uint32{{0, 30, 2, 4}, {100, 1 << 31, 5, 6}, {200, 20, 1, 3}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("chunks %v, want %v", got, want)
	}
	if h.Reads[0].Position != 200 {
		t.Error("the list itself was reordered")
	}
	if c := h.PositionZero(); c.Length != 60 {
		t.Errorf("position zero has %d bytes", c.Length)
	}
	wantReduced := []xdr.Reduced{{Position: 100, Length: 1<<32 - 1}, {Position: 200, Length: 40}}
	if got := h.ReducedCall(nil); !reflect.DeepEqual(got, wantReduced) {
		t.Errorf("reduced %v", got)
	}
	h.Writes = []WriteChunk{{{1, 100, 0}, {2, 4, 0}}, {}, {{3, 7, 0}}}
	if got := h.ReducedReply(nil); !reflect.DeepEqual(got, []xdr.Reduced{{Length: 104}, {}, {Length: 7}}) {
		t.Errorf("reduced reply %v", got)
	}
}

func TestDecodeErrors(t *testing.T) {
	const fixed = "0000000100000001000000200000000"
	tests := []struct {
		name   string
		msg    string
		full   int
		kind   xdr.Kind
		offset int
		field  string
		cut    bool
	}{
		{"empty", "", 0, xdr.Short, 0, "rdma_xid", false},
		{"no credits", "0000000100000001", 0, xdr.Short, 8, "rdma_credit", false},
		{"bad version", "00000001000000030000002000000000", 0, xdr.Value, 4, "rdma_vers", false},
		{"bad type", fixed + "5", 0, xdr.Value, 12, "proc", false},
		{"no lists", fixed + "0", 0, xdr.Short, 16, "rdma_reads", false},
		{"lists cut", fixed + "0", 28, xdr.Short, 16, "rdma_reads", true},
		{"discriminator", fixed + "0" + "00000002", 0, xdr.Value, 16, "rdma_reads", false},
		{"segment short", fixed + "0" + "0000000100000000", 0, xdr.Short, 16, "rdma_reads", false},
		{"count too large", fixed + "0" + "00000000" + "00000001" + "00000002" + "00000000000000000000000000000000", 0,
			xdr.Range, 24, "rdma_writes", false},
		{"huge count", fixed + "0" + "00000000" + "00000000" + "00000001" + "ffffffff", 1 << 20, xdr.Range, 28, "rdma_reply", false},
		{"chunk cut", fixed + "0" + "00000000" + "00000001" + "00000002" + "00000001000000020000000000000003", 100,
			xdr.Short, 44, "rdma_writes", true},
		{"msgp short", fixed + "2" + "00000000", 0, xdr.Short, 16, "rdma_align", false},
		{"error short", fixed + "4", 0, xdr.Short, 16, "err", false},
		{"error unknown", fixed + "4" + "00000003", 0, xdr.Value, 16, "err", false},
		{"error versions", fixed + "4" + "00000001", 28, xdr.Short, 20, "rdma_vers_low", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h Header
			err := h.Decode(unhex(t, tt.msg), tt.full)
			var e *xdr.Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Kind != tt.kind || e.Offset != tt.offset || e.Field != tt.field || h.Cut != tt.cut {
				t.Errorf("got %v, cut %v", e, h.Cut)
			}
		})
	}
}

// The lists of a message that the capture cuts anywhere are a prefix of the
// whole ones, and the message stays plausible.
func TestDecodeCut(t *testing.T) {
	for _, msg := range []string{nullCall, getaclCall, getaclReply, writeCall, readCall} {
		b := unhex(t, msg)
		var whole, part Header
		if err := whole.Decode(b, len(b)); err != nil {
			t.Fatal(err)
		}
		for n := range b {
			err := part.Decode(b[:n:n], len(b))
			if part.Cut != (n < whole.Length) || (err == nil) == part.Cut {
				t.Fatalf("%d of %d bytes: cut %v, %v", n, len(b), part.Cut, err)
			}
			if len(part.Reads) > len(whole.Reads) || len(part.Reads) > 0 && !reflect.DeepEqual(part.Reads, whole.Reads[:len(part.Reads)]) {
				t.Fatalf("%d bytes: reads %+v", n, part.Reads)
			}
			if part.HasReply && len(part.Reply) > 0 && !reflect.DeepEqual(part.Reply, whole.Reply[:len(part.Reply)]) {
				t.Fatalf("%d bytes: reply %+v", n, part.Reply)
			}
			if got := Plausible(b[:n:n], len(b)); got != (n >= 16) {
				t.Fatalf("%d bytes: plausible %v", n, got)
			}
		}
	}
}

func TestPlausibleRejects(t *testing.T) {
	ok := unhex(t, readCall)
	change := func(off int, v uint32) []byte {
		b := bytes.Clone(ok)
		copy(b[off:], xdr.AppendUint32(nil, v))
		return b
	}
	tests := []struct {
		name string
		msg  []byte
	}{
		{"version", change(4, 2)},
		{"type", change(12, 5)},
		{"read discriminator", change(16, 2)},
		{"write discriminator", change(20, 9)},
		{"count", change(24, 8)},
		{"huge count", change(24, 1<<28)},
		{"end of list", change(44, 7)},
		{"xid of the call", change(52, 1)},
		{"message type", change(56, 2)},
		{"zeros", make([]byte, 200)},
		{"ones", bytes.Repeat([]byte{0, 0, 0, 1}, 50)},
		{"short", ok[:12]},
		{"no message and no chunks", unhex(t, nullCall)[:28]},
	}
	for _, tt := range tests {
		if Plausible(tt.msg, len(tt.msg)) {
			t.Errorf("%s: plausible", tt.name)
		}
	}
	// A position that is not a multiple of four breaks a rule but is readable.
	b := unhex(t, writeCall)
	b[23]++
	if !Plausible(b, len(b)) {
		t.Error("odd position: not plausible")
	}
}

func TestTypeNames(t *testing.T) {
	for typ, want := range map[Type]string{
		0: "RDMA_MSG", 1: "RDMA_NOMSG", 2: "RDMA_MSGP", 3: "RDMA_DONE", 4: "RDMA_ERROR",
		5: "RDMA2_GRANT", 13: "RDMA2_REPLY_INLINE", 14: "", 1 << 31: "",
	} {
		if typ.String() != want {
			t.Errorf("Type(%d) = %q", typ, typ)
		}
	}
	for _, tt := range []struct {
		code    ErrorCode
		version uint32
		want    string
	}{
		{1, 1, "ERR_VERS"}, {2, 1, "ERR_CHUNK"}, {3, 1, ""}, {0, 1, ""},
		{1, 2, "RDMA2_ERR_VERS"}, {11, 2, "RDMA2_ERR_VERS_MISMATCH"}, {100, 2, "RDMA2_ERR_SYSTEM"}, {0, 2, ""}, {12, 2, ""},
	} {
		if got := tt.code.Name(tt.version); got != tt.want {
			t.Errorf("%d in version %d: %q", tt.code, tt.version, got)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	b, c := unhex(t, writeCall), unhex(t, getaclCall)
	var h Header
	reduced := make([]xdr.Reduced, 0, 16)
	out := make([]byte, 0, 1024)
	key := make([]byte, 0, 1024)
	n := testing.AllocsPerRun(100, func() {
		if !Plausible(b, len(b)) || h.Decode(b, len(b)) != nil || len(h.ReducedCall(reduced)) != 1 {
			t.Fatal("first")
		}
		out = h.Append(out[:0])
		key = h.AppendKey(key[:0])
		if h.Decode(c, len(c)) != nil {
			t.Fatal("second")
		}
		if h.Decode(c[:20], len(c)) == nil {
			t.Fatal("third")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{nullCall, getaclCall, getaclReply, writeCall, readCall, errVers, errChunk, callaghanLong, solarisNoMsg, v2Call, v2Props} {
		f.Add(unhex(f, s), 0)
	}
	f.Add(unhex(f, writeCall)[:60], 400)
	f.Fuzz(func(t *testing.T, b []byte, full int) {
		if full > 1<<30 {
			full = 1 << 30
		}
		var h, again, long Header
		err := h.Decode(b, full)
		if other := long.decode(b, max(full, len(b))); (err == nil) != (other == nil) || !reflect.DeepEqual(h, long) {
			t.Fatalf("%+v, %v\nthe long way %+v, %v", h, err, long, other)
		}
		believed := Plausible(b, full)
		if believed != plausible(b, full) {
			t.Fatalf("plausible: %v, the long way %v", believed, !believed)
		}
		if h.Length > len(b) {
			t.Fatalf("length %d of %d", h.Length, len(b))
		}
		if f, at := h.Fault(); f == NoFault && err != nil && !h.Cut || f != NoFault && h.Cut || at < 0 || at > len(b) {
			t.Fatalf("%v, but fault %q at %d of %d", err, f, at, len(b))
		}
		h.ReadChunks()
		h.ReducedCall(nil)
		h.ReducedReply(nil)
		h.Walk(nothing{})
		if err != nil {
			if believed && h.Version == Version1 && !h.Cut {
				t.Fatalf("plausible, but %v", err)
			}
			return
		}
		out := h.Append(nil)
		if len(out) != h.Size() {
			t.Fatalf("Size %d, Append %d", h.Size(), len(out))
		}
		// Version 0 and properties have more than one encoding of the same.
		if h.Version != Version0 && len(h.Properties) == 0 && !bytes.Equal(out, b[:h.Length]) {
			t.Fatalf("encoded %x\nfrom    %x", out, b[:h.Length])
		}
		if err := again.Decode(append(out, h.Payload...), len(out)+h.PayloadLength); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(see(&h), see(&again)) {
			t.Fatalf("%+v\n%+v", see(&h), see(&again))
		}
	})
}

// nothing is a Visitor that ignores all.
type nothing struct{}

func (nothing) Begin(string, string, int)    {}
func (nothing) End()                         {}
func (nothing) Uint(string, uint64)          {}
func (nothing) Int(string, int64)            {}
func (nothing) Bool(string, bool)            {}
func (nothing) Enum(string, uint32, string)  {}
func (nothing) Flags(string, uint64, string) {}
func (nothing) Bytes(string, []byte)         {}
func (nothing) String(string, []byte)        {}
func (nothing) Data(string, xdr.Data)        {}
func (nothing) Time(string, int64, uint32)   {}

func BenchmarkDecode(b *testing.B) {
	for _, bb := range []struct{ name, msg string }{{"inline", nullCall}, {"write chunk", readCall}, {"eight reads", writeCall}} {
		b.Run(bb.name, func(b *testing.B) {
			msg := unhex(b, bb.msg)
			var h Header
			b.ReportAllocs()
			for b.Loop() {
				if err := h.Decode(msg, len(msg)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPlausible(b *testing.B) {
	msg := unhex(b, readCall)
	b.ReportAllocs()
	for b.Loop() {
		if !Plausible(msg, len(msg)) {
			b.Fatal("no")
		}
	}
}
