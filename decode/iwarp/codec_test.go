package iwarp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand"
	"reflect"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Frames that the Linux kernel sent.
const (
	mpaRequestCRC = `4d50412049442052657120 4672616d65 50 02 000c 0080 0000 f6ab0e18 01010303`
	mpaReplyCRC   = `4d50412049442052657020 4672616d65 50 02 000c 0000 0080 f6ab0e18 01000303`
	mpaRequestP2P = `4d50412049442052657120 4672616d65 10 02 000c 8080 c001 f6ab0e18 01010303`
	mpaReplyP2P   = `4d50412049442052657020 4672616d65 10 02 000c 8001 8080 f6ab0e18 01000303`
)

func TestMPAFrame(t *testing.T) {
	message := []byte{0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3}
	answer := []byte{0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3}
	for _, test := range []struct {
		hex  string
		want MPAFrame
	}{
		{mpaRequestCRC, MPAFrame{CRC: true, Revision: 2, Enhanced: true, IRD: 128, Private: message}},
		{mpaReplyCRC, MPAFrame{Reply: true, CRC: true, Revision: 2, Enhanced: true, ORD: 128, Private: answer}},
		{mpaRequestP2P, MPAFrame{Revision: 2, Enhanced: true, PeerToPeer: true, IRD: 128, RTRWrite: true, RTRRead: true, ORD: 1, Private: message}},
		{mpaReplyP2P, MPAFrame{Reply: true, Revision: 2, Enhanced: true, PeerToPeer: true, IRD: 1, RTRWrite: true, ORD: 128, Private: answer}},
		{`4d50412049442052657120 4672616d65 80 01 0000`, MPAFrame{Markers: true, Revision: 1, Private: []byte{}}},
		{`4d50412049442052657020 4672616d65 20 01 0002 abcd`, MPAFrame{Reply: true, Reject: true, Revision: 1, Private: []byte{0xab, 0xcd}}},
		{`4d50412049442052657020 4672616d65 1f 01 0000`, MPAFrame{Reply: true, Revision: 1, Reserved: 0x1f, Private: []byte{}}},
		{`4d50412049442052657020 4672616d65 18 02 0004 7fff 3fff`, MPAFrame{Reply: true, Revision: 2, Reserved: 8, Enhanced: true, RTRSend: true, IRD: MPADepthUnlimited, ORD: MPADepthUnlimited, Private: []byte{}}},
	} {
		b := unhex(t, test.hex)
		var f MPAFrame
		n, err := f.Decode(append(b, 1, 2, 3))
		if err != nil || n != len(b) || !reflect.DeepEqual(f, test.want) {
			t.Errorf("%s: %d, %v, %+v", test.hex, n, err, f)
			continue
		}
		if got := f.Append(nil); !bytes.Equal(got, b) || f.Size() != len(b) {
			t.Errorf("%s: appended %x, size %d", test.hex, got, f.Size())
		}
		for i := range b {
			if _, err := f.Decode(b[:i]); err != ErrShort {
				t.Errorf("%s: %v for %d bytes", test.hex, err, i)
			}
		}
	}
	for _, s := range []string{
		`4d50412049442052657320 4672616d65 80 01 0000`,                  // key
		`4d50412049442052657120 4672616d65 80 01 0201`,                  // 513 bytes
		`4d50412049442052657120 4672616d65 10 02 0003 000000`,           // no room for the words
		`00000000000000000000000000000000`, `4d50412049442052657120 56`, // neither key
	} {
		var f MPAFrame
		if _, err := f.Decode(unhex(t, s)); err != ErrMalformed {
			t.Errorf("%s: %v", s, err)
		}
	}
	long := MPAFrame{Revision: 2, Enhanced: true, Private: make([]byte, 600)}
	if b := long.Append(nil); len(b) != MPAHeaderLen+MPAMaxPrivate {
		t.Errorf("%d bytes for too long private data", len(b))
	}
}

// FPDUs that the Linux kernel sent: a Send with the NULL call, its reply, and
// an RDMA Write, all with CRC.
const (
	fpduCall = `0056 4143 00000000 00000000 00000001 00000000 657bd46c 00000001 00000080 00000000 00000000 00000000 00000000
		657bd46c 00000000 00000002 000186a3 00000003 00000000 00000000 00000000 00000000 00000000 0484592e`
	fpduReply = `0046 4143 00000000 00000000 00000001 00000000 657bd46c 00000001 00000040 00000000 00000000 00000000 00000000
		657bd46c 00000001 00000000 00000000 00000000 00000000 856e3773`
	fpduWrite = `0096 c140 c31a0801 6d7bd46c 08718000 6d7bd46c 00000001 00000000 00000000 00000000 00000000 00000000 00000001 00000002
		000003ff 00000004 00000000 00000000 00000000 00001000 00000000 00001000 00000000 00000000 00000000 00000001
		00000000 00000002 6b01329d 00000000 6b0132a1 24b17d8d 6b0132a1 24b17d8d 0000000c 00000000 00000000 00000000
		00000000 7b587a85`
)

func TestFPDUVectors(t *testing.T) {
	for _, s := range []string{fpduCall, fpduReply, fpduWrite} {
		b := unhex(t, s)
		f, err := ParseFPDU(b)
		if err != nil || len(f) != len(b) || f.CRC() != f.Checksum() || !ULPDU(f.ULPDU()).Valid(f.ULPDULen()) {
			t.Fatalf("%x: %v", b, err)
		}
		if !bytes.Equal(AppendFPDU(nil, f.ULPDU(), true), b) {
			t.Errorf("%x differs when encoded", b)
		}
		if Sniff(b, len(b)) != Yes {
			t.Errorf("%x not recognised", b)
		}
	}
	w := ULPDU(FPDU(unhex(t, fpduWrite)).ULPDU())
	if h := Tagged(w); h.STag() != 0xc31a0801 || h.TO() != 0x6d7bd46c08718000 || len(w.Payload()) != 136 || !h.Control().Last() {
		t.Errorf("%x", []byte(w))
	}
	u := ULPDU(FPDU(unhex(t, fpduCall)).ULPDU())
	if h := Untagged(u); h.QN() != QueueSend || h.MSN() != 1 || h.MO() != 0 || be32(u.Payload()) != 0x657bd46c {
		t.Errorf("%x", []byte(u))
	}
}

func TestFPDU(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for n := range 300 {
		u := random(r, n)
		for _, crc := range []bool{false, true} {
			b := AppendFPDU([]byte{9}, u, crc)[1:]
			if len(b) != FPDULen(n) || (len(b))%4 != 0 {
				t.Fatalf("%d bytes for %d", len(b), n)
			}
			f, err := ParseFPDU(append(b, 0xff))
			if err != nil || !bytes.Equal(f, b) || !bytes.Equal(f.ULPDU(), u) || f.ULPDULen() != n {
				t.Fatalf("%x: %v %x", b, err, f)
			}
			if crc != (f.CRC() == f.Checksum()) || !crc && f.CRC() != 0 {
				t.Fatalf("%x: CRC %x", b, f.CRC())
			}
			for i := range b {
				if _, err := ParseFPDU(b[:i]); err != ErrShort {
					t.Fatalf("%d of %d bytes: %v", i, len(b), err)
				}
			}
		}
	}
}

func TestMarkers(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 200 {
		var plain, marked []byte
		for range 20 {
			u := random(r, r.Intn(3000))
			start := uint64(len(marked))
			plain = AppendFPDU(plain, u, false)
			marked = AppendMarkedFPDU(marked, u, false, start)
			if got, want := len(marked)-int(start), MarkedLen(start, FPDULen(len(u))); got != want {
				t.Fatalf("at %d an FPDU of %d takes %d bytes, not %d", start, len(u), got, want)
			}
			// Each marker points to the FPDU that it is in.
			header := start
			if start%MarkerInterval == 0 {
				header += MarkerLen
			}
			for m := (start + MarkerInterval - 1) / MarkerInterval * MarkerInterval; m < uint64(len(marked)); m += MarkerInterval {
				want := uint32(0)
				if m > header {
					want = uint32(m - header)
				}
				if got := be32(marked[m:]); got != want {
					t.Fatalf("marker at %d of the FPDU at %d is %#x, want %#x", m, start, got, want)
				}
			}
		}
		if got := RemoveMarkers(nil, marked, 0); !bytes.Equal(got, plain) {
			t.Fatal("markers not removed")
		}
		cut := r.Intn(len(marked))
		a, b := RemoveMarkers(nil, marked[:cut], 0), RemoveMarkers(nil, marked[cut:], uint64(cut))
		if !bytes.Equal(append(a, b...), plain) {
			t.Fatalf("markers not removed in two parts, %d", cut)
		}
	}
}

// TestMarkerBeforeCRC places a marker right before the CRC field.
func TestMarkerBeforeCRC(t *testing.T) {
	const pos = 512 - 24 + 4
	b := AppendMarkedFPDU(nil, make([]byte, 18), true, pos)
	if len(b) != 28 || be32(b[20:]) != 20 || binary.LittleEndian.Uint32(b[24:]) != checksum(b[:24]) {
		t.Errorf("%x", b)
	}
}

func TestControl(t *testing.T) {
	for op := OpWrite; op <= OpAtomicResponse; op++ {
		for _, last := range []bool{false, true} {
			c := NewControl(op, last)
			if !c.Valid() || c.Opcode() != op || c.Last() != last || c.Tagged() != op.Tagged() || c.DDPVersion() != 1 || c.RDMAPVersion() != 1 {
				t.Errorf("%v: %#x", op, uint16(c))
			}
		}
	}
	valid := 0
	for c := range 1 << 16 {
		if Control(c).Valid() {
			valid++
			if c&0x3fb0 != 0x0100 {
				t.Errorf("%#x is valid, but not for the search", c)
			}
		}
	}
	if valid != 12*2*2 {
		t.Errorf("%d valid control words", valid)
	}
	if got := uint16(NewControl(OpWrite, true)); got != 0xc140 {
		t.Errorf("%#x", got)
	}
	if got := uint16(NewControl(OpSend, true)); got != 0x4143 {
		t.Errorf("%#x", got)
	}
	for op, want := range map[Opcode]string{OpSendInvalidate: "Send with Invalidate", 12: "opcode 12"} {
		if op.String() != want {
			t.Errorf("%q", op.String())
		}
	}
}

func TestHeaders(t *testing.T) {
	b := AppendTagged(nil, NewControl(OpWrite, false), 0x01020304, 0x1122334455667788)
	if got := hex.EncodeToString(b); got != "814001020304"+"1122334455667788" {
		t.Error(got)
	}
	h := Tagged(b)
	if h.STag() != 0x01020304 || h.TO() != 0x1122334455667788 || h.Control().Opcode() != OpWrite || len(b) != TaggedLen {
		t.Errorf("%x", b)
	}
	h.SetControl(NewControl(OpReadResponse, true))
	h.SetSTag(5)
	h.SetTO(6)
	if !bytes.Equal(h, AppendTagged(nil, NewControl(OpReadResponse, true), 5, 6)) {
		t.Errorf("%x", h)
	}
	b = AppendUntagged(nil, NewControl(OpReadRequest, true), 0, 9, 0)
	if got := hex.EncodeToString(b); got != "4141"+"00000000"+"00000001"+"00000009"+"00000000" {
		t.Error(got)
	}
	u := Untagged(b)
	u.SetControl(NewControl(OpSendInvalidate, true))
	u.SetInvalidateSTag(1)
	u.SetQN(2)
	u.SetMSN(3)
	u.SetMO(4)
	if u.InvalidateSTag() != 1 || u.QN() != 2 || u.MSN() != 3 || u.MO() != 4 || u.Control() != NewControl(OpSendInvalidate, true) {
		t.Errorf("%x", b)
	}
	for _, test := range []struct {
		hex    string
		length int
		valid  bool
	}{
		{"4143 00000000 00000000 00000001 00000000", 18, true},
		{"4143 00000000 00000000 00000001 00000000", 17, false},
		{"4143 00000000 00000001 00000001 00000000", 18, false},  // QN
		{"0143 00000000 00000000 00000001 fffffff0", 400, false}, // beyond 4 GiB
		{"c143 00000000 00000000 00000001 00000000", 18, false},  // tagged Send
		{"4243 00000000 00000000 00000001 00000000", 18, false},  // DDP version
		{"4103 00000000 00000000 00000001 00000000", 18, true},   // RDMAC
		{"4141 00000000 00000001 00000001 00000000", 46, true},
		{"4141 00000000 00000001 00000001 00000000", 45, false},
		{"0141 00000000 00000001 00000001 00000000", 46, false},
		{"c140 00000000 0000000000000000", 14, true},
		{"c140 00000000 ffffffffffffffff", 16, false}, // wraps
		{"c140 00000000 00000000", 14, false},
		{"c1", 14, false},
	} {
		if got := ULPDU(unhex(t, test.hex)).Valid(test.length); got != test.valid {
			t.Errorf("%s of %d: %v", test.hex, test.length, got)
		}
	}
}

func TestReadRequest(t *testing.T) {
	b := AppendReadRequest(nil, 1, 2, 3, 4, 5)
	r := ReadRequest(b)
	if len(b) != ReadRequestLen || r.SinkSTag() != 1 || r.SinkTO() != 2 || r.Size() != 3 || r.SourceSTag() != 4 || r.SourceTO() != 5 {
		t.Errorf("%x", b)
	}
	r.SetSinkSTag(6)
	r.SetSinkTO(7)
	r.SetSize(8)
	r.SetSourceSTag(9)
	r.SetSourceTO(10)
	if !bytes.Equal(b, AppendReadRequest(nil, 6, 7, 8, 9, 10)) {
		t.Errorf("%x", b)
	}
}

func TestAtomicAndImmediate(t *testing.T) {
	r := AtomicRequest(make([]byte, AtomicRequestLen))
	r.SetOp(AtomicCmpSwap)
	r.SetIdentifier(1)
	r.SetSTag(2)
	r.SetTO(3)
	r.SetData(4)
	r.SetMask(5)
	r.SetCompare(6)
	r.SetCompareMask(7)
	want := "00000002" + "00000001" + "00000002" + "0000000000000003" + "0000000000000004" +
		"0000000000000005" + "0000000000000006" + "0000000000000007"
	if got := hex.EncodeToString(r); got != want {
		t.Error(got)
	}
	if r.Op() != AtomicCmpSwap || r.Identifier() != 1 || r.STag() != 2 || r.TO() != 3 || r.Data() != 4 || r.Mask() != 5 || r.Compare() != 6 || r.CompareMask() != 7 {
		t.Errorf("%x", r)
	}
	a := AtomicResponse(make([]byte, AtomicResponseLen))
	a.SetIdentifier(1)
	a.SetValue(2)
	if a.Identifier() != 1 || a.Value() != 2 || hex.EncodeToString(a) != "000000010000000000000002" {
		t.Errorf("%x", a)
	}
	i := Immediate(make([]byte, ImmediateLen))
	i.SetValue(77)
	if i.Value() != 77 {
		t.Errorf("%x", i)
	}
	for op, want := range map[AtomicOp]string{0: "FetchAdd", 1: "Swap", 2: "CmpSwap", 3: "atomic operation 3"} {
		if op.String() != want {
			t.Error(op.String())
		}
	}
}

func TestTerminate(t *testing.T) {
	for _, test := range []struct {
		layer       TerminateLayer
		etype, code uint8
		want        string
	}{
		{LayerRDMAP, 0, 0, "RDMAP: local catastrophic error"},
		{LayerRDMAP, 1, 0, "RDMAP: remote protection error: invalid STag"},
		{LayerRDMAP, 1, 0xff, "RDMAP: remote protection error: unspecified error"},
		{LayerRDMAP, 2, 6, "RDMAP: remote operation error: unexpected opcode"},
		{LayerRDMAP, 2, 99, "RDMAP: remote operation error: code 99"},
		{LayerDDP, 0, 0, "DDP: local catastrophic error"},
		{LayerDDP, 1, 1, "DDP: tagged buffer error: base or bounds violation"},
		{LayerDDP, 2, 2, "DDP: untagged buffer error: invalid MSN: no buffer"},
		{LayerDDP, 2, 0, "DDP: untagged buffer error: code 0"},
		{LayerMPA, 0, 2, "MPA: MPA error: CRC error"},
		{LayerMPA, 4, 2, "MPA: error type 4: code 2"},
		{7, 1, 3, "layer 7: error type 1: code 3"},
	} {
		b := Terminate(AppendTerminate(nil, test.layer, test.etype, test.code, 0, nil, nil))
		if b.Layer() != test.layer || b.EType() != test.etype || b.Code() != test.code || b.String() != test.want {
			t.Errorf("%x: %q, want %q", []byte(b), b.String(), test.want)
		}
		if _, ok := b.SegmentLength(); ok || b.DDPHeader() != nil || b.ReadRequest() != nil {
			t.Errorf("%x holds headers", []byte(b))
		}
	}
	header := ULPDU(AppendUntagged(nil, NewControl(OpReadRequest, true), 0, 1, 0))
	read := ReadRequest(AppendReadRequest(nil, 1, 2, 3, 4, 5))
	b := Terminate(AppendTerminate(nil, LayerRDMAP, 1, 2, 46, header, read))
	n, ok := b.SegmentLength()
	if !ok || n != 46 || !bytes.Equal(b.DDPHeader(), header) || !bytes.Equal(b.ReadRequest(), read) || b.Word() != 0x0102e000 {
		t.Errorf("%x: %d %v %x %x", []byte(b), n, ok, []byte(b.DDPHeader()), []byte(b.ReadRequest()))
	}
	for i := TerminateLen; i < len(b); i++ {
		c := b[:i]
		_ = c.String()
		if c.ReadRequest() != nil {
			t.Errorf("a Read Request in %d bytes", i)
		}
	}
	tagged := ULPDU(AppendTagged(nil, NewControl(OpWrite, true), 1, 2))
	b = AppendTerminate(nil, LayerDDP, 1, 0, 100, tagged, nil)
	if !bytes.Equal(b.DDPHeader(), tagged) || b.ReadRequest() != nil {
		t.Errorf("%x", []byte(b))
	}
}
