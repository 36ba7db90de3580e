package roce_test

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// datagram is a RoCEv2 packet over IPv4, with a right ICRC.
func datagram(r *rand.Rand, id uint16, payload int) *link.Frame {
	ib := make([]byte, roce.BTHSize+payload)
	for i := range ib {
		ib[i] = byte(r.Uint32())
	}
	n := 20 + 8 + len(ib) + roce.ICRCSize
	net := []byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	binary.BigEndian.PutUint16(net[2:], uint16(n))
	binary.BigEndian.PutUint16(net[4:], id)
	udp := []byte{0xc0, 0, 0x12, 0xb7, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(udp[4:], uint16(n-20))
	sum, _ := roce.ICRC(link.UDP, net, udp, ib)
	b := binary.LittleEndian.AppendUint32(ib, sum)
	return &link.Frame{Proto: link.UDP, Net: net, Transport: udp, Payload: b, PayloadLen: len(b)}
}

// What was changed on the way is named, with the value that it had.
func TestMisfits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *link.Frame, i int)
		want   roce.Field
		now    uint32
		was    uint32
		ok     bool
	}{
		{"identification", func(f *link.Frame, i int) { binary.BigEndian.PutUint16(f.Net[4:], uint16(0x7700+i)) }, roce.FieldIPID, 0x7700, 5, true},
		{"source address", func(f *link.Frame, _ int) { f.Net[12] = 192 }, roce.FieldSource, 0xc0000001, 0x0a000001, true},
		{"source port", func(f *link.Frame, i int) { f.Transport[1] = byte(9 + i) }, roce.FieldPort, 0xc009, 0xc000, true},
		{"P_Key", func(f *link.Frame, _ int) { f.Payload[2] ^= 0x80 }, roce.FieldPKey, 0, 0, true},
		{"payload", func(f *link.Frame, _ int) { f.Payload[40] ^= 0x11; f.Payload[70] ^= 7 }, 0, 0, 0, false},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		var m roce.Misfits
		for i := range 6 {
			f := datagram(r, uint16(5+i), 100+20*i)
			c.change(f, i)
			m.Look(f, uint64(i+1))
		}
		field, x, ok := m.Fits()
		if ok != c.ok || field != c.want || ok && c.name != "P_Key" && (x.Now != c.now || x.Was != c.was) || ok && (x.Packets != 6 || x.Number != 1) {
			t.Errorf("%s: %v %+v %v", c.name, field, x, ok)
		}
	}
}

// A sender that lets count what a router may change is found out.
func TestMisfitsMasked(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var m roce.Misfits
	for i := range 3 {
		f := datagram(r, uint16(i), 64)
		// The checksum of a message with a TTL of 64 where ones belong.
		masked := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, f.Net...)
		masked[8+1], masked[8+10], masked[8+11] = 0xff, 0xff, 0xff
		masked = append(masked, f.Transport...)
		masked[len(masked)-2], masked[len(masked)-1] = 0xff, 0xff
		ib := append([]byte(nil), f.Payload[:len(f.Payload)-roce.ICRCSize]...)
		ib[4] = 0xff
		binary.LittleEndian.PutUint32(f.Payload[len(ib):], crc32.ChecksumIEEE(append(masked, ib...)))
		m.Look(f, uint64(i+1))
	}
	if field, x, ok := m.Fits(); !ok || field != roce.FieldTTL || x.Was != 64 || !field.Masked() {
		t.Errorf("%v %+v %v", field, x, ok)
	}
}

// TestMisfitsOfNAT: a NAT changes the source one way, the destination the other way. Or it changes both, and a REQ has what they were.
func TestMisfitsOfNAT(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	turn := func(f *link.Frame) *link.Frame { // the same packet the other way
		copy(f.Net[12:], []byte{10, 0, 0, 2, 10, 0, 0, 1})
		sum, _ := roce.ICRC(link.UDP, f.Net, f.Transport, f.Payload[:len(f.Payload)-4])
		binary.LittleEndian.PutUint32(f.Payload[len(f.Payload)-4:], sum)
		return f
	}
	var one, both roce.Misfits
	for i := range 6 {
		a, b := datagram(r, uint16(5+i), 100+20*i), turn(datagram(r, uint16(5+i), 90+20*i))
		copy(a.Net[12:], []byte{198, 51, 100, 9})
		copy(b.Net[16:], []byte{198, 51, 100, 9})
		one.Look(a, uint64(2*i+1))
		one.Look(b, uint64(2*i+2))
	}
	if f, x, ok := one.Fits(); !ok || f != roce.FieldAddress || x.Packets != 12 || x.Number != 1 || x.Now != 0xc6336409 || x.Was != 0x0a000001 {
		t.Errorf("one address: %v %+v %v", f, x, ok)
	}
	req, m := ibcm.Append(make([]byte, roce.BTHSize+roce.DETHSize), ibcm.AttributeREQ, 7)
	ibcm.REQ(m.Data()).SetServiceID(ibcm.IPServiceID(6, 20049))
	ibcm.IPHeader(ibcm.REQ(m.Data()).Private()).Set(netip.MustParseAddrPort("10.0.0.1:700"), netip.MustParseAddr("10.0.0.2"))
	for i := range 6 {
		a, b := datagram(r, uint16(5+i), 100+20*i), turn(datagram(r, uint16(5+i), 90+20*i))
		if i == 0 {
			a = datagram(r, 5, len(req)-roce.BTHSize)
			copy(a.Payload, req)
			a.Payload[0] = uint8(roce.UDSendOnly)
			sum, _ := roce.ICRC(link.UDP, a.Net, a.Transport, a.Payload[:len(req)])
			binary.LittleEndian.PutUint32(a.Payload[len(req):], sum)
		}
		copy(a.Net[12:], []byte{198, 51, 100, 9, 198, 51, 100, 10})
		copy(b.Net[12:], []byte{198, 51, 100, 10, 198, 51, 100, 9})
		both.Look(a, uint64(2*i+1))
		both.Look(b, uint64(2*i+2))
	}
	if f, x, ok := both.Fits(); !ok || f != roce.FieldRequested || x.Packets != 12 || x.Number != 1 || both.Requested[0].String() != "10.0.0.1" {
		t.Errorf("both addresses: %v %+v %v %v", f, x, ok, both.Requested)
	}
}
