package rpcrdma

import (
	"bytes"
	"reflect"
	"testing"
)

// Messages of version 2, put together by hand: no implementation is known.
const (
	v2Call = "0102030400000002000000400000000a" + "00001234" + "00000000" +
		"00000001" + "00000001" + "00001234000010000000000000005000" + "00000000" + "00000000" +
		"010203040000000000000002"
	v2Props = "01020304000000020000004000000007" + "00000003" +
		"00000001" + "00000004" + "00001000" + "00000005" + "00000004" + "00000001" + "00000006" + "00000003" + "61626300"
)

func TestVersion2(t *testing.T) {
	reads := []ReadSegment{{100, Segment{1, 2, 3}}}
	writes := []WriteChunk{{{4, 5, 6}, {7, 8, 9}}}
	reply := WriteChunk{{10, 11, 12}}
	rpc := []byte{0, 0, 0, 9, 0, 0, 0, 0}
	tests := []struct {
		name    string
		h       Header
		payload []byte
		size    int
		inline  bool
		key     string
	}{
		{"versions", Header{Type: TypeError, Error: ErrVers, Low: 1, High: 2}, nil, 28, false, ""},
		{"segments", Header{Type: TypeError, Error: Err2Segments, Low: 16}, nil, 24, false, ""},
		{"write resource", Header{Type: TypeError, Error: Err2WriteResource, Low: 1, High: 4096}, nil, 28, false, ""},
		{"system", Header{Type: TypeError, Error: Err2System}, nil, 20, false, ""},
		{"grant", Header{Type: TypeGrant}, nil, 16, false, ""},
		{"call external", Header{Type: TypeCallExternal, InvalidateHandle: 1,
			Call: []ReadSegment{{0, Segment{1, 8192, 0}}}, Reads: reads, Writes: writes, HasReply: true, Reply: reply},
			nil, 20 + 28 + 28 + 44 + 24, false, "1 - PHLOO - 0; 1 - PHLOO - 0; 1 - N - HLOO - HLOO - 0; 1 - N - HLOO"},
		{"call middle", Header{Type: TypeCallMiddle, Remaining: 5000}, rpc, 20, true, ""},
		{"call inline", Header{Type: TypeCallInline, Reads: reads, Writes: writes}, rpc, 20 + 28 + 44 + 4, true,
			"1 - PHLOO - 0; 1 - N - HLOO - HLOO - 0; 0"},
		{"reply external", Header{Type: TypeReplyExternal, Writes: writes, HasReply: true, Reply: reply}, nil, 16 + 44 + 24, false,
			"0; 1 - N - HLOO - HLOO - 0; 1 - N - HLOO"},
		{"reply middle", Header{Type: TypeReplyMiddle, Remaining: 1}, rpc, 20, true, ""},
		{"reply inline", Header{Type: TypeReplyInline, Writes: writes}, rpc, 16 + 44, true, "0; 1 - N - HLOO - HLOO - 0; 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &tt.h
			h.XID, h.Version, h.Credits = 9, Version2, 32
			b := append(h.Append(nil), tt.payload...)
			if h.Size() != tt.size || len(b) != tt.size+len(tt.payload) {
				t.Errorf("Size %d, %d bytes, want %d", h.Size(), len(b), tt.size)
			}
			var got Header
			if err := got.Decode(b, len(b)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(see(&got), see(h)) {
				t.Errorf("got  %+v\nwant %+v", see(&got), see(h))
			}
			if got.Length != tt.size || !bytes.Equal(got.Payload, tt.payload) || got.Inline() != tt.inline || got.Key() != tt.key {
				t.Errorf("length %d, payload %x, inline %v, key %q", got.Length, got.Payload, got.Inline(), got.Key())
			}
			if !PlausibleV2(b, len(b)) {
				t.Error("not plausible")
			}
			for n := range got.Length {
				if err := got.Decode(b[:n:n], len(b)); err == nil || !got.Cut {
					t.Fatalf("%d bytes: cut %v, %v", n, got.Cut, err)
				}
			}
		})
	}
}

func TestVersion2Properties(t *testing.T) {
	b := unhex(t, v2Props)
	var h Header
	if err := h.Decode(b, len(b)); err != nil {
		t.Fatal(err)
	}
	if len(h.Properties) != 3 || h.Length != len(b) || !PlausibleV2(b, len(b)) {
		t.Fatalf("%+v", h.Properties)
	}
	if v, ok := h.Properties[0].Uint32(); !ok || v != 4096 || PropertyName(h.Properties[0].ID) != "RDMA2_PROPID_SBSIZ" {
		t.Errorf("send size %d %v", v, ok)
	}
	if v, _ := h.Properties[1].Uint32(); ReverseName(v) != "RDMA2_RVRSDIR_SIMPLE" {
		t.Errorf("reverse %d", v)
	}
	if _, ok := h.Properties[2].Uint32(); ok || string(h.Properties[2].Value) != "abc" {
		t.Errorf("host auth %q", h.Properties[2].Value)
	}
	if got := h.Append(nil); !bytes.Equal(got, b) || h.Size() != len(b) {
		t.Errorf("Append = %x", got)
	}
	if PropertyName(0) != "" || PropertyName(7) != "" || ReverseName(4) != "" {
		t.Error("names of what is not defined")
	}
	b[19] = 200 // more properties than the message has room for
	if err := h.Decode(b, len(b)); err == nil || h.Cut || PlausibleV2(b, len(b)) {
		t.Errorf("too many properties: %v", err)
	}
}

func TestVersion2RealisticCall(t *testing.T) {
	b := unhex(t, v2Call)
	var h Header
	if err := h.Decode(b, len(b)); err != nil {
		t.Fatal(err)
	}
	if h.InvalidateHandle != 0x1234 || len(h.Writes) != 1 || !h.Inline() || !PlausibleV2(b, len(b)) || Plausible(b, len(b)) {
		t.Errorf("%+v", see(&h))
	}
}
