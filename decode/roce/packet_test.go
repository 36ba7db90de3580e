package roce

import (
	"bytes"
	"reflect"
	"testing"
)

func TestDecodeSamples(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      Packet
		payload   int
	}{
		{"send only", sampleSendOnly, Packet{
			Opcode: RCSendOnly, PKey: 0xffff, DestQP: 0x11, AckReq: true, PSN: 0xfa8b58, PayloadLen: 16,
		}, 16},
		{"acknowledge", sampleAck, Packet{
			Opcode: RCAcknowledge, PKey: 0xffff, DestQP: 0x11, PSN: 0xfa8b58,
			AETH: AETHFields{ACKUnlimited, 1}, Headers: HasAETH,
		}, 0},
		{"sequence error", sampleNAK, Packet{
			Opcode: RCAcknowledge, PKey: 0xffff, DestQP: 0x11, PSN: 0x4838dd,
			AETH: AETHFields{NAKPSNSequence, 58}, Headers: HasAETH,
		}, 0},
		{"read request", sampleReadReq, Packet{
			Opcode: RCReadRequest, PKey: 0xffff, DestQP: 0x11, AckReq: true, PSN: 0x960e1f,
			RETH: RETHFields{0x556bbba265f0, 0x5a7, 64}, Headers: HasRETH,
		}, 0},
		{"read response only", sampleReadOnly, Packet{
			Opcode: RCReadResponseOnly, PKey: 0xffff, DestQP: 0x11, PSN: 0x960e1f,
			AETH: AETHFields{ACKUnlimited, 1}, Headers: HasAETH, PayloadLen: 64,
		}, 64},
		{"write only", sampleWriteOnly, Packet{
			Opcode: RCWriteOnly, PKey: 0xffff, DestQP: 0x11, AckReq: true, PSN: 0x960e21,
			RETH: RETHFields{0x556bbba23140, 0x429, 64}, Headers: HasRETH, PayloadLen: 64,
		}, 64},
		{"send only invalidate", sampleSendInv, Packet{
			Opcode: RCSendOnlyInvalidate, PKey: 0xffff, DestQP: 0x11, AckReq: true, PSN: 0x8f9b7c,
			IETH: 0x6b2, Headers: HasIETH, PayloadLen: 164,
		}, 164},
		{"connection management", sampleMAD, Packet{
			Opcode: UDSendOnly, PKey: 0xffff, DestQP: 1, AckReq: true, PSN: 0,
			DETH: DETHFields{GSIQKey, 1}, Headers: HasDETH, PayloadLen: 256,
		}, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := sampleFrame(t, c.hex)
			got := Packet{Problem: ProblemPad, Imm: 5, Payload: []byte{1}}
			if !Decode(f.Payload, f.PayloadLen, &got) {
				t.Fatal(got.Problem)
			}
			if len(got.Payload) != c.payload || !got.Complete() || cap(got.Payload) != len(got.Payload) {
				t.Errorf("payload of %d bytes, capacity %d, want %d", len(got.Payload), cap(got.Payload), c.payload)
			}
			back := got.AppendHeaders(nil)
			if !bytes.Equal(back, f.Payload[:len(back)]) || len(back) != got.Opcode.HeaderSize() {
				t.Errorf("encoded again: %x, was %x", back, f.Payload[:len(back)])
			}
			got.Payload = nil
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// testPacket is a packet of op with a value in each field that it has.
func testPacket(op Opcode) Packet {
	p := Packet{
		Opcode: op, Pad: 2, SE: true, MigReq: true, FECN: true, BECN: true, AckReq: true,
		PKey: 0x8001, DestQP: 0x123456, PSN: 0xfedcba, Headers: op.Headers(),
	}
	for _, h := range []struct {
		bit Headers
		set func()
	}{
		{HasRETH, func() { p.RETH = RETHFields{0x1122334455667788, 0x99aabbcc, 0xddeeff00} }},
		{HasAETH, func() { p.AETH = AETHFields{NAKRemoteAccess, 0x00abcdef} }},
		{HasImmDt, func() { p.Imm = 0x01020304 }},
		{HasIETH, func() { p.IETH = 0x05060708 }},
		{HasAtomicETH, func() { p.Atomic = AtomicFields{1 << 60, 2 << 24, 3 << 50, 4 << 40} }},
		{HasAtomicAckETH, func() { p.AtomicAck = 5 << 33 }},
		{HasDETH, func() { p.DETH = DETHFields{GSIQKey, 0x654321} }},
		{HasRDETH, func() { p.EEContext = 0xabcabc }},
		{HasXRCETH, func() { p.XRCSRQ = 0xcbacba }},
		{HasFETH, func() { p.Flush = FETHFields{3, 1} }},
	} {
		if op.Headers()&h.bit != 0 {
			h.set()
		}
	}
	return p
}

// TestEncodeDecode checks for every opcode that what is encoded is decoded,
// and that frames cut anywhere give what is there.
func TestEncodeDecode(t *testing.T) {
	for i := range 256 {
		op := Opcode(i)
		want := testPacket(op)
		b := want.AppendHeaders(nil)
		if len(b) != op.HeaderSize() {
			t.Fatalf("%s: %d bytes of headers, want %d", op, len(b), op.HeaderSize())
		}
		b = append(b, "payload!??"...)
		b = append(b, 0, 0, 1, 2, 3, 4)
		var got Packet
		ok := Decode(b, len(b), &got)
		if ok != (op.IsDefined() || op.IsManufacturer()) || ok != (got.Problem == NoProblem) {
			t.Fatalf("%s: %v, %q", op, ok, got.Problem)
		}
		if string(got.Payload) != "payload!??" {
			t.Fatalf("%s: payload %q", op, got.Payload)
		}
		got.Payload, got.Problem = nil, NoProblem
		want.PayloadLen = 10
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got  %+v\nwant %+v", op, got, want)
		}
		if again := got.AppendHeaders(nil); !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("%s: encoded again: %x, was %x", op, again, b)
		}
		for n := range b {
			ok := Decode(b[:n:n], len(b), &got)
			switch {
			case !got.Cut:
				t.Fatalf("%s cut at %d: not seen", op, n)
			case n < BTHSize:
				if ok || got.Problem != ProblemCutBTH {
					t.Fatalf("%s cut at %d: %v, %q", op, n, ok, got.Problem)
				}
			case n < op.HeaderSize():
				if ok || got.Problem != ProblemCutHeaders || got.PSN != want.PSN || got.PayloadLen != 10 || len(got.Payload) != 0 {
					t.Fatalf("%s cut at %d: %v, %+v", op, n, ok, got)
				}
				if got.Headers&^op.Headers() != 0 || got.Headers.Size() > n-BTHSize {
					t.Fatalf("%s cut at %d: headers %b", op, n, got.Headers)
				}
			default:
				if got.Headers != op.Headers() || got.PayloadLen != 10 || len(got.Payload) != min(10, n-op.HeaderSize()) {
					t.Fatalf("%s cut at %d: %+v", op, n, got)
				}
			}
		}
	}
}

func TestDecodeProblems(t *testing.T) {
	sample := sampleFrame(t, sampleWriteOnly).Payload // 12 + 16 + 64 + 4 bytes
	for _, c := range []struct {
		name     string
		change   func(b []byte) []byte
		declared int
		problem  Problem
		length   int
	}{
		{"nothing", func(b []byte) []byte { return nil }, 0, ProblemShortBTH, 0},
		{"negative length", func(b []byte) []byte { return b }, -1, ProblemShortBTH, 0},
		{"length of 15", func(b []byte) []byte { return b }, 15, ProblemShort, 0},
		{"length of 11", func(b []byte) []byte { return b }, 11, ProblemShortBTH, 0},
		{"headers only", func(b []byte) []byte { return b }, 28, ProblemShort, 0},
		{"headers and part of the ICRC", func(b []byte) []byte { return b }, 31, ProblemShort, 0},
		{"no payload", func(b []byte) []byte { return b }, 32, NoProblem, 0},
		{"pad exceeds payload", func(b []byte) []byte { b[1] |= 0x30; return b }, 34, ProblemPad, 0},
		{"pad is the payload", func(b []byte) []byte { b[1] |= 0x30; return b }, 35, NoProblem, 0},
		{"more captured than declared", func(b []byte) []byte { return append(b, 1, 2, 3) }, 96, NoProblem, 64},
		{"version", func(b []byte) []byte { b[1] |= 1; return b }, 96, ProblemVersion, 0},
		{"reserved opcode", func(b []byte) []byte { b[0] = 0x1f; return b }, 96, ProblemOpcode, 80},
		{"cut in the RETH", func(b []byte) []byte { return b[:20] }, 96, ProblemCutHeaders, 64},
		{"cut in the RETH, length too small", func(b []byte) []byte { return b[:20] }, 24, ProblemShort, 0},
		{"cut in the BTH", func(b []byte) []byte { return b[:5] }, 96, ProblemCutBTH, 0},
		{"cut in the payload", func(b []byte) []byte { return b[:40] }, 96, NoProblem, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Packet
			ok := Decode(c.change(bytes.Clone(sample)), c.declared, &p)
			if ok != (c.problem == NoProblem) || p.Problem != c.problem || p.PayloadLen != c.length {
				t.Errorf("got %v, %q, length %d; want %q, %d", ok, p.Problem, p.PayloadLen, c.problem, c.length)
			}
		})
	}
}

func TestDecodeAllocs(t *testing.T) {
	f := sampleFrame(t, sampleSendInv)
	var p Packet
	if n := minAllocs(func() { Decode(f.Payload, f.PayloadLen, &p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	b := make([]byte, 0, 64)
	if n := minAllocs(func() { b = p.AppendHeaders(b[:0]) }); n != 0 {
		t.Errorf("%v allocations in AppendHeaders", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range samples {
		frame := sampleFrame(f, s.hex)
		f.Add(frame.Payload, frame.PayloadLen)
		f.Add(frame.Payload[:len(frame.Payload)/2], frame.PayloadLen)
	}
	for i := range 256 {
		p := testPacket(Opcode(i))
		b := p.AppendHeaders(nil)
		f.Add(b, len(b)+14)
	}
	f.Fuzz(func(t *testing.T, b []byte, declared int) {
		declared %= 1 << 17
		var p Packet
		ok := Decode(b, declared, &p)
		if ok != (p.Problem == NoProblem) {
			t.Fatalf("%v, but %q", ok, p.Problem)
		}
		if p.PayloadLen < 0 || len(p.Payload) > p.PayloadLen {
			t.Fatalf("payload %d of %d", len(p.Payload), p.PayloadLen)
		}
		if p.PayloadLen > max(declared, 0) || len(p.Payload) > len(b) {
			t.Fatalf("payload %d of %d in %d of %d", len(p.Payload), p.PayloadLen, len(b), declared)
		}
		if !ok {
			return
		}
		// The reserved bits are all that the encoding does not keep.
		head := p.AppendHeaders(nil)
		var again Packet
		rest := append(head, b[len(head):]...)
		Decode(rest, declared, &again)
		if !reflect.DeepEqual(p, again) {
			t.Fatalf("%+v\n%+v", p, again)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, s := range samples {
		f := sampleFrame(b, s.hex)
		b.Run(s.name, func(b *testing.B) {
			var p Packet
			for b.Loop() {
				Decode(f.Payload, f.PayloadLen, &p)
			}
		})
	}
}
