package ibcm

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// MADs of a Linux NFS/RDMA mount over soft RoCE, without the zeros at their
// ends.
const (
	sampleREQ  = "010702030000000000000002504189b30010000000000000b3894150000000000000000001064e51505400fffe12340200000000000000000000118000000000000000a08f9b23a6ffff30f0ffffffff00000000000000000000ffffc000020200000000000000000000ffffc00002018109d0000040008800000000000000000000000000000000000000000000000000000000000000000000000000000000000000000040c434000000000000000000000000c0000202000000000000000000000000c0000201f6ab0e1801010303"
	sampleREQ6 = "010702030000000000000002966f1eb10010000000000000b11e6f96000000000000000001064e51505400fffe12340200000000000000000000118000000000000000a0ae1163a6ffff30f0fffffffffd000000000000000000000000000002fd000000000000000000000000000001361e800000400088000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000609d89fd000000000000000000000000000002fd000000000000000000000000000001f6ab0e1801010303"
	sampleREP  = "010702030000000000000002504189b30013000000000000ce0dcdfab38941500000000000001100000000004303c00000807800505400fffe123401f6ab0e1801000303"
	sampleRTU  = "010702030000000000000002504189b30014000000000000b3894150ce0dcdfa"
	sampleDREQ = "010702030000000000000002504189b30015000000000000b3894150ce0dcdfa000011"
	sampleDREP = "010702030000000000000002504189b30016000000000000ce0dcdfab3894150"
	sampleREJ  = "010702030000000000000002590f8a5d0012000000000000000000005d8a0f5900000008"
)

func mad(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, make([]byte, MADSize-len(b))...)
}

func minAllocs(f func()) float64 {
	best := testing.AllocsPerRun(100, f)
	for range 4 {
		best = min(best, testing.AllocsPerRun(100, f))
	}
	return best
}

var messages = []struct {
	name, hex string
	want      Message
	private   int
}{
	{"REQ", sampleREQ, Message{
		Attribute: AttributeREQ, TransactionID: 0x2504189b3, LocalID: 0xb3894150, QPN: 0x11,
		StartPSN: 0x8f9b23, StartKnown: true, TermsKnown: true, ResponderResources: 128, RetryCount: 6,
		ServiceID: 0x01064e51, PathMTU: 1024, AckTimeout: 17,
		IP: true, Src: netip.MustParseAddr("192.0.2.2"), Dst: netip.MustParseAddr("192.0.2.1"), SrcPort: 0xc434,
		RDMA: rdma.PrivateData{Present: true, Version: 1, RemoteInvalidate: true, SendSize: 4096, ReceiveSize: 4096},
	}, 56},
	{"REQ over IPv6", sampleREQ6, Message{
		Attribute: AttributeREQ, TransactionID: 0x2966f1eb1, LocalID: 0xb11e6f96, QPN: 0x11,
		StartPSN: 0xae1163, StartKnown: true, TermsKnown: true, ResponderResources: 128, RetryCount: 6,
		ServiceID: 0x01064e51, PathMTU: 1024, AckTimeout: 17,
		IP: true, Src: netip.MustParseAddr("fd00::2"), Dst: netip.MustParseAddr("fd00::1"), SrcPort: 0x9d89,
		RDMA: rdma.PrivateData{Present: true, Version: 1, RemoteInvalidate: true, SendSize: 4096, ReceiveSize: 4096},
	}, 56},
	{"REP", sampleREP, Message{
		Attribute: AttributeREP, TransactionID: 0x2504189b3, LocalID: 0xce0dcdfa, RemoteID: 0xb3894150, QPN: 0x11,
		StartPSN: 0x4303c0, StartKnown: true, TermsKnown: true, ResponderResources: 0, InitiatorDepth: 128,
		RDMA: rdma.PrivateData{Present: true, Version: 1, SendSize: 4096, ReceiveSize: 4096},
	}, 196},
	{"RTU", sampleRTU, Message{
		Attribute: AttributeRTU, TransactionID: 0x2504189b3, LocalID: 0xb3894150, RemoteID: 0xce0dcdfa,
	}, 224},
	{"DREQ", sampleDREQ, Message{
		Attribute: AttributeDREQ, TransactionID: 0x2504189b3, LocalID: 0xb3894150, RemoteID: 0xce0dcdfa, QPN: 0x11,
	}, 220},
	{"DREP", sampleDREP, Message{
		Attribute: AttributeDREP, TransactionID: 0x2504189b3, LocalID: 0xce0dcdfa, RemoteID: 0xb3894150,
	}, 224},
	{"REJ", sampleREJ, Message{
		Attribute: AttributeREJ, TransactionID: 0x2590f8a5d, RemoteID: 0x5d8a0f59, Reason: ReasonInvalidServiceID,
	}, 148},
}

func TestDecode(t *testing.T) {
	for _, c := range messages {
		t.Run(c.name, func(t *testing.T) {
			b := mad(t, c.hex)
			m := Message{Problem: "stale", QPN: 99}
			if !Decode(b, len(b), &m) {
				t.Fatal(m.Problem)
			}
			if len(m.Private) != c.private || len(m.Data) != DataSize || cap(m.Private) != len(m.Private) {
				t.Errorf("%d bytes of private data, %d of data", len(m.Private), len(m.Data))
			}
			m.Private, m.Data = nil, nil
			if !reflect.DeepEqual(m, c.want) {
				t.Errorf("got  %+v\nwant %+v", m, c.want)
			}
		})
	}
}

func TestREQSample(t *testing.T) {
	r := REQ(MAD(mad(t, sampleREQ)).Data())
	p := r.Primary()
	got := []any{r.LocalCAGUID(), r.Transport(), r.PKey(), p.LocalGID(), p.RemoteGID(), p.AckTimeout()}
	want := []any{
		uint64(0x505400fffe123402), TransportRC, uint16(0xffff), netip.MustParseAddr("::ffff:192.0.2.2"), netip.MustParseAddr("::ffff:192.0.2.1"), uint8(17),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestAppendREQ makes the sample from its values.
func TestAppendREQ(t *testing.T) {
	b, m := Append([]byte("before"), AttributeREQ, 0x2504189b3)
	r := REQ(m.Data())
	r.SetLocalID(0xb3894150)
	r.SetServiceID(IPServiceID(6, 20049))
	r.SetLocalCAGUID(0x505400fffe123402)
	r.SetLocalQPN(0x11)
	r.SetResponderResources(128)
	r.SetRemoteResponseTimeout(20)
	r.SetStartingPSN(0x8f9b23)
	r.SetLocalResponseTimeout(20)
	r.SetRetryCount(6)
	r.SetPKey(0xffff)
	r.SetPathMTU(MTUCode(1024))
	r.SetMaxCMRetries(15)
	p := r.Primary()
	p.SetLIDs(0xffff, 0xffff)
	p.SetGIDs(netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1"))
	copy(p[36:], "\x81\x09\xd0") // the flow label
	p.SetHopLimit(64)
	p.SetAckTimeout(17)
	private := rdma.PrivateData{RemoteInvalidate: true, SendSize: 4096, ReceiveSize: 4096}
	r.SetIP(netip.MustParseAddrPort("192.0.2.2:50228"), netip.MustParseAddr("192.0.2.1"), private.Append(nil))
	if want := append([]byte("before"), mad(t, sampleREQ)...); !bytes.Equal(b, want) {
		t.Errorf("got  %x\nwant %x", b, want)
	}
}

// TestAppendREP makes the sample from its values, and the short ones.
func TestAppendREP(t *testing.T) {
	b, m := Append(nil, AttributeREP, 0x2504189b3)
	r := REP(m.Data())
	r.SetIDs(0xce0dcdfa, 0xb3894150)
	r.SetLocalQPN(0x11)
	r.SetStartingPSN(0x4303c0)
	r.SetInitiatorDepth(128)
	r.SetTargetAckDelay(15)
	r.SetLocalCAGUID(0x505400fffe123401)
	private := rdma.PrivateData{SendSize: 4096, ReceiveSize: 4096}
	r.SetPrivate(private.Append(nil))
	for _, c := range []struct {
		name, hex string
		b         []byte
	}{
		{"REP", sampleREP, b},
		{"RTU", sampleRTU, func() []byte {
			b, m := Append(nil, AttributeRTU, 0x2504189b3)
			RTU(m.Data()).SetIDs(0xb3894150, 0xce0dcdfa)
			return b
		}()},
		{"DREQ", sampleDREQ, func() []byte {
			b, m := Append(nil, AttributeDREQ, 0x2504189b3)
			DREQ(m.Data()).SetIDs(0xb3894150, 0xce0dcdfa)
			DREQ(m.Data()).SetRemoteQPN(0x11)
			return b
		}()},
		{"DREP", sampleDREP, func() []byte {
			b, m := Append(nil, AttributeDREP, 0x2504189b3)
			DREP(m.Data()).SetIDs(0xce0dcdfa, 0xb3894150)
			return b
		}()},
		{"REJ", sampleREJ, func() []byte {
			b, m := Append(nil, AttributeREJ, 0x2590f8a5d)
			j := REJ(m.Data())
			j.SetIDs(0, 0x5d8a0f59)
			j.SetRejected(RejectedREQ)
			j.SetReason(ReasonInvalidServiceID)
			return b
		}()},
	} {
		if want := mad(t, c.hex); !bytes.Equal(c.b, want) {
			t.Errorf("%s: got  %x\nwant %x", c.name, c.b, want)
		}
	}
}

// TestDecodeCut cuts each message everywhere, as a snaplen does. What is left
// must be as in the whole message, or zero.
func TestDecodeCut(t *testing.T) {
	for _, c := range messages {
		b := mad(t, c.hex)
		var whole, m Message
		Decode(b, len(b), &whole)
		for n := range b {
			ok := Decode(b[:n:n], len(b), &m)
			if ok != (n >= HeaderSize) || !m.Cut || ok != (m.Problem == "") {
				t.Fatalf("%s cut at %d: %v, %q", c.name, n, ok, m.Problem)
			}
			if !bytes.HasPrefix(whole.Private, m.Private) || !bytes.HasPrefix(whole.Data, m.Data) {
				t.Fatalf("%s cut at %d: other data", c.name, n)
			}
			x, y := reflect.ValueOf(m), reflect.ValueOf(whole)
			for i := range x.NumField() {
				switch name := x.Type().Field(i).Name; name {
				case "Data", "Private", "Cut", "Problem":
				default:
					if !x.Field(i).IsZero() && !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
						t.Fatalf("%s cut at %d: %s is %v", c.name, n, name, x.Field(i))
					}
				}
			}
			if want := n-HeaderSize >= 47; c.want.Attribute == AttributeREQ && m.StartKnown != want {
				t.Fatalf("%s cut at %d: StartKnown is %v", c.name, n, m.StartKnown)
			}
			if want := n-HeaderSize >= 23; c.want.Attribute == AttributeREP && m.StartKnown != want {
				t.Fatalf("%s cut at %d: StartKnown is %v", c.name, n, m.StartKnown)
			}
		}
	}
}

// TestKnown: what is said to be known is what the whole message has, whatever the capture has cut.
func TestKnown(t *testing.T) {
	for _, c := range messages {
		b := mad(t, c.hex)
		var whole Message
		if !Decode(b, MADSize, &whole) {
			t.Fatal(c.name)
		}
		is := whole.Attribute
		if whole.QPNKnown() != (is == AttributeREQ || is == AttributeREP || is == AttributeDREQ) ||
			whole.ServiceKnown() != (is == AttributeREQ) || whole.ReasonKnown() != (is == AttributeREJ) {
			t.Errorf("%s: QPN %v, service %v, reason %v", c.name, whole.QPNKnown(), whole.ServiceKnown(), whole.ReasonKnown())
		}
		for n := range b[HeaderSize:] {
			var m Message
			Decode(b[:HeaderSize+n], MADSize, &m)
			if m.QPNKnown() && m.QPN != whole.QPN || m.ServiceKnown() && m.ServiceID != whole.ServiceID ||
				m.ReasonKnown() && (m.Reason != whole.Reason || m.Rejected != whole.Rejected) {
				t.Errorf("%s cut after %d bytes: %+v", c.name, n, m)
			}
		}
		if m := (Message{}); Decode(b[:HeaderSize], MADSize, &m) && (m.QPNKnown() || m.ServiceKnown() || m.ReasonKnown()) {
			t.Errorf("%s: known without a byte", c.name)
		}
	}
}

func TestDecodeProblems(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(b []byte) []byte
		declared int
		problem  string
	}{
		{"nothing", func(b []byte) []byte { return nil }, 0, ProblemShort},
		{"negative length", func(b []byte) []byte { return b }, -1, ProblemShort},
		{"header only", func(b []byte) []byte { return b }, 24, ProblemShort},
		{"one byte less", func(b []byte) []byte { return b }, 255, ProblemShort},
		{"longer", func(b []byte) []byte { return append(b, 1, 2, 3) }, 259, ""},
		{"cut", func(b []byte) []byte { return b[:23] }, 256, ProblemCut},
		{"class", func(b []byte) []byte { b[1] = 4; return b }, 256, ProblemClass},
		{"base version", func(b []byte) []byte { b[0] = 2; return b }, 256, ProblemClass},
		{"class version", func(b []byte) []byte { b[2] = 1; return b }, 256, ProblemVersion},
		{"attribute 1", func(b []byte) []byte { b[17] = 1; return b }, 256, ProblemAttribute},
		{"attribute 0x1b", func(b []byte) []byte { b[17] = 0x1b; return b }, 256, ProblemAttribute},
	} {
		var m Message
		if ok := Decode(c.change(mad(t, sampleREQ)), c.declared, &m); ok != (c.problem == "") || m.Problem != c.problem {
			t.Errorf("%s: %v, %q; want %q", c.name, ok, m.Problem, c.problem)
		}
	}
}

// TestDecodeOther decodes the kinds of messages that Linux sends rarely.
func TestDecodeOther(t *testing.T) {
	decode := func(a Attribute, fill func(d []byte)) Message {
		b, m := Append(nil, a, 7)
		fill(m.Data())
		var got Message
		if !Decode(b, len(b), &got) {
			t.Fatalf("%s: %s", a, got.Problem)
		}
		return got
	}
	m := decode(AttributeMRA, func(d []byte) {
		MRA(d).SetIDs(1, 2)
		MRA(d).SetReceived(RejectedREP)
		MRA(d).SetServiceTimeout(19)
		copy(d[mraPrivate:], "mra")
	})
	if m.LocalID != 1 || m.RemoteID != 2 || m.Rejected != RejectedREP || !strings.HasPrefix(string(m.Private), "mra\x00") {
		t.Errorf("%+v", m)
	}
	m = decode(AttributeSIDRREQ, func(d []byte) {
		wire.Put32(d, localID, 77)
		wire.Put64(d, sidrServiceID, uint64(IPServiceID(17, 5)))
		copy(d[sidrPrivate:], bytes.Repeat([]byte("?"), 300))
		IPHeader(d[sidrPrivate:]).Set(netip.MustParseAddrPort("192.0.2.9:9"), netip.MustParseAddr("192.0.2.8"))
	})
	if m.LocalID != 77 || m.RemoteID != 0 || !m.IP || m.Src.String() != "192.0.2.9" || m.Dst.String() != "192.0.2.8" ||
		m.SrcPort != 9 || len(m.Private) != 180 || m.Private[0] != '?' {
		t.Errorf("%+v", m)
	}
	m = decode(AttributeSIDRREP, func(d []byte) {
		wire.Put32(d, localID, 77)
		wire.Put24(d, sidrQPN, 0x123456)
		wire.Put64(d, sidrRepService, 5)
	})
	if m.LocalID != 77 || m.RemoteID != 0 || m.QPN != 0x123456 || m.ServiceID != 5 || len(m.Private) != 136 {
		t.Errorf("%+v", m)
	}
	m = decode(AttributeLAP, func(d []byte) {
		putIDs(d, 3, 4)
		wire.Put24(d, lapQPN, 5)
	})
	if m.LocalID != 3 || m.RemoteID != 4 || m.QPN != 5 || len(m.Private) != 168 {
		t.Errorf("%+v", m)
	}
	m = decode(AttributeAPR, func(d []byte) { putIDs(d, 3, 4) })
	if m.LocalID != 3 || m.RemoteID != 4 || len(m.Private) != 148 {
		t.Errorf("%+v", m)
	}
	m = decode(AttributeREJ, func(d []byte) {
		REJ(d).SetReason(ReasonConsumerDefined)
		REJ(d).SetRejected(RejectedREP)
		REJ(d).SetInfo([]byte{1, 2, 3})
		REJ(d).SetPrivate([]byte("no"))
	})
	if m.Reason != ReasonConsumerDefined || m.Rejected != RejectedREP || len(REJ(m.Data).Info()) != 3 || m.Private[1] != 'o' {
		t.Errorf("%+v", m)
	}
	// A service id that is not of IP: all of the private data is the consumer's.
	m = decode(AttributeREQ, func(d []byte) {
		REQ(d).SetServiceID(0x1000000000000001)
		REQ(d).SetTransport(TransportXRC)
	})
	if m.IP || len(m.Private) != 92 || m.Transport != TransportXRC {
		t.Errorf("%+v", m)
	}
	// The header of IP addressed services in a version that is not known.
	m = decode(AttributeREQ, func(d []byte) {
		REQ(d).SetServiceID(IPServiceID(6, 20049))
		REQ(d).IPHeader()[0] = 0x10
	})
	if m.IP || len(m.Private) != 56 {
		t.Errorf("%+v", m)
	}
}

func TestNames(t *testing.T) {
	for a, name := range map[Attribute]string{
		0: "unknown", 0x0f: "unknown", 0x10: "REQ", 0x16: "DREP", 0x17: "SIDR_REQ", 0x1a: "APR", 0x1b: "unknown", 0xffff: "unknown",
	} {
		if a.String() != name {
			t.Errorf("%#x is called %q", uint16(a), a)
		}
	}
	for r, name := range map[Reason]string{
		0: "unknown reason", 1: "no queue pair available", 8: "invalid service id", 10: "stale connection", 28: "rejected by the consumer",
		33: "invalid alternate flow label", 34: "unknown reason", 35: "vendor option not supported", 36: "unknown reason", 65535: "unknown reason",
	} {
		if r.String() != name {
			t.Errorf("%d is called %q", r, r)
		}
	}
	seen := map[string]bool{}
	for r := ReasonNoQP; r <= ReasonInvalidAltFlowLabel; r++ {
		if s := r.String(); seen[s] || s == "unknown reason" {
			t.Errorf("reason %d is called %q", r, s)
		}
		seen[r.String()] = true
	}
	for tr, name := range map[Transport]string{0: "RC", 1: "UC", 2: "RD", 3: "extended", TransportXRC: "XRC", 9: "extended"} {
		if tr.String() != name {
			t.Errorf("transport %d is called %q", tr, tr)
		}
	}
	for r, name := range map[Rejected]string{0: "REQ", 1: "REP", 2: "other", 3: "reserved"} {
		if r.String() != name {
			t.Errorf("%d is called %q", r, r)
		}
	}
}

func TestUnits(t *testing.T) {
	for code, mtu := range map[uint8]uint32{0: 0, 1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096, 6: 0, 255: 0} {
		if MTUBytes(code) != mtu {
			t.Errorf("code %d is %d bytes", code, MTUBytes(code))
		}
		if mtu != 0 && MTUCode(mtu) != code {
			t.Errorf("%d bytes are code %d", mtu, MTUCode(mtu))
		}
	}
	if MTUCode(1500) != 0 || MTUCode(128) != 0 {
		t.Error("a code for an MTU that has none")
	}
	for e, d := range map[uint8]time.Duration{0: 4096 * time.Nanosecond, 17: 536870912 * time.Nanosecond, 31: 8796093022208 * time.Nanosecond} {
		if Timeout(e) != d {
			t.Errorf("exponent %d is %v", e, Timeout(e))
		}
	}
	for s, want := range map[ServiceID][3]int{
		0x01064e51: {6, 20049, 1}, 0x0111ffff: {17, 65535, 1}, 0x02064e51: {0, 0, 0}, 0x1000000001064e51: {0, 0, 0}, 0: {0, 0, 0},
	} {
		p, port, ok := s.IP()
		if int(p) != want[0] || int(port) != want[1] || ok != (want[2] == 1) {
			t.Errorf("%#x is protocol %d, port %d, %v", uint64(s), p, port, ok)
		}
		if ok && IPServiceID(p, port) != s {
			t.Errorf("%#x becomes %#x", uint64(s), uint64(IPServiceID(p, port)))
		}
	}
}

func TestDecodeAllocs(t *testing.T) {
	b := mad(t, sampleREQ)
	var m Message
	if n := minAllocs(func() { Decode(b, len(b), &m) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	out := make([]byte, 0, 512)
	if n := minAllocs(func() {
		_, mad := Append(out, AttributeREQ, 1)
		REQ(mad.Data()).SetIP(netip.AddrPortFrom(m.Src, 5), m.Dst, m.Private)
	}); n != 0 {
		t.Errorf("%v allocations in Append", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range messages {
		b := mad(f, c.hex)
		f.Add(b, len(b))
		f.Add(b[:150], len(b))
	}
	for a := AttributeREQ; a <= AttributeAPR; a++ {
		b, _ := Append(nil, a, 1)
		f.Add(b, len(b))
	}
	f.Fuzz(func(t *testing.T, b []byte, declared int) {
		var m Message
		ok := Decode(b, declared, &m)
		if ok != (m.Problem == "") || len(m.Data) > DataSize || len(m.Private) > len(m.Data) {
			t.Fatalf("%v: %+v", ok, m)
		}
		if m.PathMTU > 4096 || m.QPN > 0xffffff || m.StartPSN > 0xffffff || m.AckTimeout > 31 {
			t.Fatalf("%+v", m)
		}
		for _, h := range types {
			h.get(m.Data)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range messages {
		data := mad(b, c.hex)
		b.Run(c.name, func(b *testing.B) {
			var m Message
			for b.Loop() {
				Decode(data, len(data), &m)
			}
		})
	}
}
