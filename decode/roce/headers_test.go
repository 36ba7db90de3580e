package roce

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

func TestBTHFields(t *testing.T) {
	h := BTH(unhex(t, "17e31234c0abcdef80654321"))
	want := []any{RCSendOnlyInvalidate, true, true, uint8(2), uint8(3), uint16(0x1234), true, true, uint32(0xabcdef), true, uint32(0x654321)}
	got := []any{h.Opcode(), h.SE(), h.MigReq(), h.Pad(), h.TVer(), h.PKey(), h.FECN(), h.BECN(), h.DestQP(), h.AckReq(), h.PSN()}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// setters sets every field of a header from a counter, through all setters,
// and collects what the getters say.
var headerTypes = []struct {
	name string
	size int
	set  func(b []byte, v uint64)
	get  func(b []byte) []any
}{
	{"BTH", BTHSize, func(b []byte, v uint64) {
		h := BTH(b)
		h.SetOpcode(Opcode(v))
		h.SetSE(v&1 != 0)
		h.SetMigReq(v&2 != 0)
		h.SetPad(uint8(v & 3))
		h.SetTVer(uint8(v >> 3 & 15))
		h.SetPKey(uint16(v >> 4))
		h.SetFECN(v&4 != 0)
		h.SetBECN(v&8 != 0)
		h.SetDestQP(uint32(v >> 8 & mask24))
		h.SetAckReq(v&16 != 0)
		h.SetPSN(uint32(v >> 16 & mask24))
	}, func(b []byte) []any {
		h := BTH(b)
		return []any{h.Opcode(), h.SE(), h.MigReq(), h.Pad(), h.TVer(), h.PKey(), h.FECN(), h.BECN(), h.DestQP(), h.AckReq(), h.PSN()}
	}},
	{"RETH", RETHSize, func(b []byte, v uint64) {
		RETH(b).SetVA(v)
		RETH(b).SetRKey(uint32(v >> 7))
		RETH(b).SetDMALen(uint32(v >> 13))
	}, func(b []byte) []any { h := RETH(b); return []any{h.VA(), h.RKey(), h.DMALen()} }},
	{"AETH", AETHSize, func(b []byte, v uint64) {
		AETH(b).SetSyndrome(Syndrome(v))
		AETH(b).SetMSN(uint32(v >> 8 & mask24))
	}, func(b []byte) []any { return []any{AETH(b).Syndrome(), AETH(b).MSN()} }},
	{"ImmDt", ImmDtSize, func(b []byte, v uint64) { ImmDt(b).SetData(uint32(v)) },
		func(b []byte) []any { return []any{ImmDt(b).Data()} }},
	{"IETH", IETHSize, func(b []byte, v uint64) { IETH(b).SetRKey(uint32(v)) },
		func(b []byte) []any { return []any{IETH(b).RKey()} }},
	{"AtomicETH", AtomicETHSize, func(b []byte, v uint64) {
		h := AtomicETH(b)
		h.SetVA(v)
		h.SetRKey(uint32(v >> 3))
		h.SetSwapAdd(v >> 5)
		h.SetCompare(v >> 9)
	}, func(b []byte) []any {
		h := AtomicETH(b)
		return []any{h.VA(), h.RKey(), h.SwapAdd(), h.Compare()}
	}},
	{"AtomicAckETH", AtomicAckETHSize, func(b []byte, v uint64) { AtomicAckETH(b).SetOriginal(v) },
		func(b []byte) []any { return []any{AtomicAckETH(b).Original()} }},
	{"DETH", DETHSize, func(b []byte, v uint64) {
		DETH(b).SetQKey(uint32(v))
		DETH(b).SetSrcQP(uint32(v >> 11 & mask24))
	}, func(b []byte) []any { return []any{DETH(b).QKey(), DETH(b).SrcQP()} }},
	{"RDETH", RDETHSize, func(b []byte, v uint64) { RDETH(b).SetEEContext(uint32(v & mask24)) },
		func(b []byte) []any { return []any{RDETH(b).EEContext()} }},
	{"XRCETH", XRCETHSize, func(b []byte, v uint64) { XRCETH(b).SetXRCSRQ(uint32(v & mask24)) },
		func(b []byte) []any { return []any{XRCETH(b).XRCSRQ()} }},
	{"FETH", FETHSize, func(b []byte, v uint64) {
		FETH(b).SetPlacement(uint8(v & 15))
		FETH(b).SetSelectivity(uint8(v >> 4 & 3))
	}, func(b []byte) []any { return []any{FETH(b).Placement(), FETH(b).Selectivity()} }},
	{"GRH", GRHSize, func(b []byte, v uint64) {
		h := GRH(b)
		h.SetVersion(uint8(v & 15))
		h.SetTrafficClass(uint8(v >> 4))
		h.SetFlowLabel(uint32(v >> 12 & 0xfffff))
		h.SetPayloadLen(uint16(v >> 7))
		h.SetNextHeader(uint8(v >> 9))
		h.SetHopLimit(uint8(v >> 11))
		h.SetSGID(netip.AddrFrom4([4]byte{byte(v), byte(v >> 8), 3, 4}))
		h.SetDGID(netip.AddrFrom16([16]byte{0xfe, 0x80, 15: byte(v)}))
	}, func(b []byte) []any {
		h := GRH(b)
		return []any{h.Version(), h.TrafficClass(), h.FlowLabel(), h.PayloadLen(), h.NextHeader(), h.HopLimit(), h.SGID(), h.DGID()}
	}},
	{"LRH", LRHSize, func(b []byte, v uint64) {
		h := LRH(b)
		h.SetVL(uint8(v & 15))
		h.SetLVer(uint8(v >> 4 & 15))
		h.SetSL(uint8(v >> 8 & 15))
		h.SetLNH(uint8(v >> 12 & 3))
		h.SetDLID(uint16(v >> 3))
		h.SetPktLen(uint16(v >> 5 & 0x7ff))
		h.SetSLID(uint16(v >> 17))
	}, func(b []byte) []any {
		h := LRH(b)
		return []any{h.VL(), h.LVer(), h.SL(), h.LNH(), h.DLID(), h.PktLen(), h.SLID()}
	}},
}

// TestHeaderSetters checks that setters of one header do not disturb each
// other: whatever the memory held before, the same values come back.
func TestHeaderSetters(t *testing.T) {
	for _, h := range headerTypes {
		t.Run(h.name, func(t *testing.T) {
			v := uint64(0x9e3779b97f4a7c15)
			for range 500 {
				zeros, ones := make([]byte, h.size), bytes.Repeat([]byte{0xff}, h.size)
				h.set(zeros, v)
				h.set(ones, v)
				if a, b := h.get(zeros), h.get(ones); !reflect.DeepEqual(a, b) {
					t.Fatalf("%#x: %v in zeros, %v in ones", v, a, b)
				}
				again := make([]byte, h.size)
				h.set(again, v)
				if !bytes.Equal(again, zeros) {
					t.Fatalf("%#x: not repeatable", v)
				}
				v = v*6364136223846793005 + 1442695040888963407
			}
		})
	}
}

// TestHeaderShort checks that headers cut anywhere are safe.
func TestHeaderShort(t *testing.T) {
	for _, h := range headerTypes {
		for n := range h.size {
			b := bytes.Repeat([]byte{0xa5}, n)
			h.get(b)
			h.set(b, 0x0123456789abcdef)
			h.get(b)
		}
		h.get(nil)
		h.set(nil, 1)
	}
}

func TestSyndrome(t *testing.T) {
	for _, c := range []struct {
		s     Syndrome
		name  string
		value uint8
		wait  time.Duration
	}{
		{ACKUnlimited, "ACK", 31, 0},
		{0x00, "ACK", 0, 0},
		{RNR(0), "RNR NAK", 0, 655360 * time.Microsecond},
		{RNR(1), "RNR NAK", 1, 10 * time.Microsecond},
		{RNR(12), "RNR NAK", 12, 640 * time.Microsecond},
		{RNR(14), "RNR NAK", 14, 1280 * time.Microsecond},
		{RNR(31), "RNR NAK", 31, 491520 * time.Microsecond},
		{NAKPSNSequence, "NAK PSN sequence error", 0, 0},
		{NAKInvalid, "NAK invalid request", 1, 0},
		{NAKRemoteAccess, "NAK remote access error", 2, 0},
		{NAKRemoteOp, "NAK remote operational error", 3, 0},
		{NAKInvalidRD, "NAK invalid RD request", 4, 0},
		{0x65, "NAK reserved code", 5, 0},
		{0x40, "reserved syndrome", 0, 0},
		{0xe0, "NAK PSN sequence error", 0, 0}, // bit 7 is reserved
	} {
		if c.s.String() != c.name || c.s.Value() != c.value || c.s.RNRTimer() != c.wait {
			t.Errorf("%#x: %s, %d, %v; want %s, %d, %v", uint8(c.s), c.s, c.s.Value(), c.s.RNRTimer(), c.name, c.value, c.wait)
		}
	}
	for i := range 256 {
		s := Syndrome(i)
		n := 0
		for _, is := range []bool{s.IsACK(), s.IsRNR(), s.IsNAK()} {
			if is {
				n++
			}
		}
		if want := 1; n != want && s&0x60 != 0x40 || s&0x60 == 0x40 && n != 0 {
			t.Errorf("%#x is of %d kinds", i, n)
		}
	}
	last := time.Duration(0)
	for code := uint8(1); code < 32; code++ {
		d := RNR(code).RNRTimer()
		if d <= last {
			t.Errorf("timer %d is %v, not more than the one before", code, d)
		}
		last = d
	}
}

func TestRouteHeaders(t *testing.T) {
	// LRH and GRH of an acknowledgement between two GIDs.
	l := LRH(unhex(t, "7013000400050003"))
	if l.VL() != 7 || l.SL() != 1 || l.LNH() != LNHGRH || l.DLID() != 4 || l.PktLen() != 5 || l.SLID() != 3 {
		t.Errorf("LRH decoded wrong: %v", []byte(l))
	}
	g := GRH(unhex(t, "6ab12345001c1b40fe80000000000000000000000000000100000000000000000000ffffc0000202"))
	if g.TrafficClass() != 0xab || g.FlowLabel() != 0x12345 || g.PayloadLen() != 28 ||
		g.NextHeader() != GRHNextBTH || g.HopLimit() != 64 || g.SGID() != netip.MustParseAddr("fe80::1") ||
		g.DGID() != netip.MustParseAddr("::ffff:192.0.2.2") {
		t.Errorf("GRH decoded wrong: %v", []byte(g))
	}
}
