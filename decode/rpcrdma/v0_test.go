package rpcrdma

import (
	"bytes"
	"reflect"
	"testing"
)

// Messages of version 0, put together by hand from the published XDR: no
// capture of the prototypes is known.
const (
	// Callaghan: a long call, whole message in the first chunk, data in another.
	callaghanLong = "aabbccdd0000000000000000" + "0000000100000000000008000000123400000000deadb000" +
		"00000001000000800000100000005678000000000badc000" + "00000000"
	callaghanDone = "aabbccdd0000000000000001"
	// Either: a call with its data in a chunk.
	eitherMsg = "aabbccdd0000000000000000" + "000000010000006c0000100000005678000000000badc000" + "00000000" +
		"aabbccdd0000000000000002000186a3000000030000000700000000000000000000000000000000"
	// OpenSolaris.
	solarisNoMsg = "aabbccdd0000000000000001" + "0000000100000000000008000000123400000000deadb000" + "00000000"
	solarisMsgP  = "aabbccdd0000000000000002" + "00000000" +
		"aabbccdd000000010000000000000000000000000000000000000000"
	solarisDone = "aabbccdd0000000000000003"
)

func TestVersion0(t *testing.T) {
	long := ReadSegment{0, Segment{0x1234, 2048, 0xdeadb000}}
	tests := []struct {
		name, msg string
		typ       Type
		dialect   Dialect
		reads     []ReadSegment
		inline    bool
		key       string
	}{
		{"Callaghan long", callaghanLong, TypeMsg, DialectCallaghan,
			[]ReadSegment{long, {128, Segment{0x5678, 4096, 0x0badc000}}}, false, "1 - PHLOO - 1 - PHLOO - 0"},
		{"Callaghan done", callaghanDone, TypeDone, DialectCallaghan, nil, false, ""},
		{"either", eitherMsg, TypeMsg, DialectEither,
			[]ReadSegment{{108, Segment{0x5678, 4096, 0x0badc000}}}, true, "1 - PHLOO - 0"},
		{"Solaris long", solarisNoMsg, TypeNoMsg, DialectSolaris, []ReadSegment{long}, false, "1 - PHLOO - 0"},
		{"Solaris padded", solarisMsgP, TypeMsgP, DialectSolaris, nil, true, "0"},
		{"Solaris done", solarisDone, TypeDone, DialectSolaris, nil, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.msg)
			var h Header
			if err := h.Decode(b, len(b)); err != nil {
				t.Fatal(err)
			}
			if h.XID != 0xaabbccdd || h.Type != tt.typ || h.Dialect != tt.dialect || h.Inline() != tt.inline {
				t.Errorf("got %v %v, inline %v", h.Type, h.Dialect, h.Inline())
			}
			if len(h.Reads) != len(tt.reads) || len(tt.reads) > 0 && !reflect.DeepEqual(h.Reads, tt.reads) {
				t.Errorf("reads %+v", h.Reads)
			}
			if h.Key() != tt.key {
				t.Errorf("key %q", h.Key())
			}
			if got := h.Append(nil); !bytes.Equal(got, b[:h.Length]) || h.Size() != h.Length {
				t.Errorf("Append = %x, Size = %d", got, h.Size())
			}
			if !PlausibleV0(b, len(b)) {
				t.Error("not plausible")
			}
			if Plausible(b, len(b)) || PlausibleV2(b, len(b)) {
				t.Error("plausible as another version")
			}
		})
	}
}

// A NOMSG of one dialect becomes the long message of the other.
func TestVersion0Convert(t *testing.T) {
	b := unhex(t, solarisNoMsg)
	var h Header
	if err := h.Decode(b, len(b)); err != nil {
		t.Fatal(err)
	}
	h.Dialect = DialectCallaghan
	b = h.Append(nil)
	if err := h.Decode(b, len(b)); err != nil || h.Type != TypeMsg || h.Dialect != DialectCallaghan {
		t.Errorf("got %v %v, %v", h.Type, h.Dialect, err)
	}
	if got := h.PositionZero(); got.Length != 2048 {
		t.Errorf("position zero %+v", got)
	}
}

func TestPlausibleV0Rejects(t *testing.T) {
	for name, msg := range map[string]string{
		"zeros":        "000000000000000000000000",
		"zero data":    "0000000000000000000000000000000000000000000000000000000000000000",
		"type 4":       "aabbccdd0000000000000004" + "00000000",
		"foreign xid":  "aabbccdd0000000000000000" + "00000000" + "aabbccde00000000",
		"not RPC":      "aabbccdd0000000000000000" + "00000000" + "aabbccdd00000002",
		"empty":        "aabbccdd0000000000000001" + "00000000",
		"short":        "aabbccdd00000000",
		"version":      "aabbccdd0000000300000001",
		"list too big": "aabbccdd0000000000000000" + "00000002",
	} {
		b := unhex(t, msg)
		if PlausibleV0(b, len(b)) {
			t.Errorf("%s: plausible", name)
		}
	}
}

func TestDialectNames(t *testing.T) {
	for d, want := range []string{"", "version 0", "Callaghan 2003", "OpenSolaris 2005", ""} {
		if got := Dialect(d).String(); got != want {
			t.Errorf("%d: %q", d, got)
		}
	}
}
