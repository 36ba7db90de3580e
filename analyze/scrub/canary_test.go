package scrub

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// canaries are what fields are filled with: a text, of which each character is one of the alphabet, bytes of which none is, and the text in
// other encodings: UTF-16 of both orders, hexadecimal digits, base64.
var canaries = []string{
	"Canary7x", "\xc7\x5a\x6b\xf7\x91\x0d\xe2\x88", "C\x00a\x00n\x00a\x00r\x00y\x007\x00x\x00", "\x00C\x00a\x00n\x00a\x00r\x00y\x007\x00x",
	"43616e6172793778", "Q2FuYXJ5N3hDYW5hcnk3eENhbmFyeTd4",
}

// canaryPiece is how much of a canary must not be found, and encodedPiece how much of one in another encoding, of fewer characters.
const (
	canaryPiece  = 4
	encodedPiece = 8
)

func canaryOf(n int) []byte {
	c := canaries[n%len(canaries)]
	return bytes.Repeat([]byte(c), n/len(c)+1)[:n]
}

// findCanary looks for pieces of canaries, as bytes and as text in other alphabets.
func findCanary(t *testing.T, where string, b []byte) {
	t.Helper()
	for i, c := range canaries {
		piece := canaryPiece
		if i > 1 {
			piece = encodedPiece
		}
		for i := range len(c) {
			if at := bytes.Index(b, []byte((c + c)[i:i+piece])); at >= 0 {
				t.Fatalf("%s: a piece of a canary at offset %d: % x", where, at, b)
			}
		}
	}
	for side := range 2 {
		mac, v4, v6 := canaryMAC[side][:], canaryAddr[side].AsSlice(), canaryIPv6[side].AsSlice()
		for _, a := range [][]byte{
			mac[1:], v4, v6[8:], []byte(canaryAddr[side].String()), []byte(canaryIPv6[side].String()), []byte(net.HardwareAddr(mac).String()),
			hex.AppendEncode(nil, mac), hex.AppendEncode(nil, v4), hex.AppendEncode(nil, v6),
		} {
			if at := bytes.Index(b, a); at >= 0 {
				t.Fatalf("%s: address %x at offset %d: % x", where, a, at, b)
			}
		}
	}
}

// canaryFiller fills messages with canaries.
type canaryFiller struct {
	*rand.Rand
	count   int
	symbols map[reflect.Type][]uint64
}

func (f *canaryFiller) next() []byte {
	if f.count++; f.count%13 == 0 {
		return []byte(canaryAddr[0].String() + ".8.1 " + canaryIPv6[1].String() + " " + net.HardwareAddr(canaryMAC[0][:]).String() + hex.EncodeToString(canaryAddr[1].AsSlice()))
	}
	return canaryOf(5 + f.count*7%31)
}

type symboler interface{ Symbol() string }

// symbol is a value that the enumeration of v defines.
func (f *canaryFiller) symbol(v reflect.Value) uint64 {
	t := v.Type()
	if f.symbols[t] == nil {
		probe := reflect.New(t).Elem()
		for _, from := range []uint64{0, 10000, 390000} {
			for n := from; n < from+200; n++ {
				probe.SetUint(n)
				if probe.Interface().(symboler).Symbol() != "" {
					f.symbols[t] = append(f.symbols[t], n)
				}
			}
		}
		f.symbols[t] = append(f.symbols[t], 0)
	}
	all := f.symbols[t]
	if f.Intn(2) == 0 {
		return all[0] // as a status, the one with most behind it
	}
	return all[f.Intn(len(all))]
}

func (f *canaryFiller) fill(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *nfs4.Bitmap4:
		*p = nfs4.NewBitmap4(uint32(f.Intn(60)))
		return
	case *nfs4.Fattr4:
		*p = f.attributes()
		return
	case *xdr.Data:
		p.Inline = f.next()
		p.Length = uint32(len(p.Inline))
		return
	}
	if _, ok := v.Interface().(symboler); ok {
		v.SetUint(f.symbol(v))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.Intn(4) > 0)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.Intn(7)))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.Intn(7)))
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			reflect.Copy(v, reflect.ValueOf(canaryOf(v.Len()+f.Intn(2))))
			return
		}
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(f.next())
			return
		}
		n := 1 + f.Intn(2)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	default:
		panic("no rule for " + v.Type().String())
	}
}

// attributes are some, with all that they hold.
func (f *canaryFiller) attributes() nfs4.Fattr4 {
	a := new(nfs4.Attrs)
	v := reflect.ValueOf(a).Elem()
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; name {
		case "Mask", "Rest", "RestFrom", "Partial", "reader":
		default:
			f.fill(v.Field(i))
		}
	}
	for range 5 {
		a.Mask = a.Mask.With(uint32(f.Intn(nfs4.FATTR4_OPEN_ARGUMENTS + 1)))
	}
	return a.Fattr4()
}

// valid fills a message until it can be decoded.
func (f *canaryFiller) valid(t *testing.T, m xdr.Message) []byte {
	for range 300 {
		if v := reflect.ValueOf(m); v.Kind() == reflect.Pointer {
			f.fill(v.Elem())
		}
		b := m.Append(nil)
		var r xdr.Reader
		r.Reset(b, 0)
		if m.Decode(&r); r.Err() == nil && r.Remaining() == 0 {
			return b
		}
	}
	t.Errorf("no valid %T", m)
	return nil
}

// operation is an empty body of a COMPOUND, found by decoding one; nil if there is none of that number.
func operation(head []byte, number uint32, status uint32, ops func(*xdr.Reader) []nfs4.Op) xdr.Message {
	b := binary.BigEndian.AppendUint32(append([]byte(nil), head...), 1)
	b = binary.BigEndian.AppendUint32(b, number)
	b = binary.BigEndian.AppendUint32(b, status)
	var r xdr.Reader
	r.Reset(append(b, make([]byte, 400)...), 0)
	for _, op := range ops(&r) {
		if v := reflect.ValueOf(op.Body); v.Kind() == reflect.Pointer {
			return reflect.New(v.Type().Elem()).Interface().(xdr.Message)
		}
	}
	return nil
}

// compounds are bodies of calls and replies of NFSv4 with one operation each.
func (f *canaryFiller) compounds(t *testing.T, callback bool) (all [][2][]byte) {
	tag := f.next()
	head := xdr.AppendOpaque(nil, tag)
	res := append(make([]byte, 4), head...)
	args := binary.BigEndian.AppendUint32(head[:len(head):len(head)], 2)
	if callback {
		args = binary.BigEndian.AppendUint32(args, 0)
	}
	with := func(head []byte, number uint32, m xdr.Message) []byte {
		b := binary.BigEndian.AppendUint32(append([]byte(nil), head...), 1)
		b = binary.BigEndian.AppendUint32(b, number)
		if m == nil {
			return b
		}
		return append(b, f.valid(t, m)...)
	}
	found := 0
	for number := uint32(3); number < 90; number++ {
		var a, r xdr.Message
		if callback {
			a = operation(args, number, 0, func(r *xdr.Reader) []nfs4.Op { var c nfs4.CbCompoundArgs; c.Decode(r); return c.Ops })
			r = operation(res, number, 5, func(r *xdr.Reader) []nfs4.Op { var c nfs4.CbCompoundRes; c.Decode(r); return c.Ops })
		} else {
			a = nfs4.NewArgs(number)
			if a == (xdr.Void{}) {
				a = nil
			}
			r = operation(res, number, 5, func(r *xdr.Reader) []nfs4.Op { var c nfs4.CompoundRes; c.Decode(r); return c.Ops })
		}
		if r == nil {
			continue
		}
		found++
		for range 3 {
			all = append(all, [2][]byte{with(args, number, a), with(res, number, r)})
		}
	}
	if want := map[bool]int{false: 70, true: 12}[callback]; found < want {
		t.Errorf("%d operations", found)
	}
	return all
}

// exchange is a call with its reply.
type exchange struct {
	program, version, procedure uint32
	args, result                []byte
}

// exchanges are calls of all procedures of all programs.
func exchanges(t *testing.T) (all []exchange) {
	f := &canaryFiller{Rand: rand.New(rand.NewSource(3)), symbols: map[reflect.Type][]uint64{}}
	for p := range nfs.All() {
		number := p.Number
		if p.Number == nfs4.NFS4_PROGRAM && p.Version == 4 {
			for _, x := range f.compounds(t, false) {
				all = append(all, exchange{p.Number, 4, 1, x[0], x[1]})
			}
			continue
		}
		if p.Number == nfs4.NFS4_CALLBACK {
			for _, x := range f.compounds(t, true) {
				all = append(all, exchange{p.Number, p.Version, 1, x[0], x[1]})
			}
			continue
		}
		for i := range p.Procedures {
			proc := p.Procedure(uint32(i))
			if proc == nil || proc.Name == "" {
				continue
			}
			for range 5 {
				all = append(all, exchange{number, p.Version, uint32(i), f.valid(t, proc.NewArgs()), f.valid(t, proc.NewResult())})
			}
		}
	}
	return all
}

// say sends calls and replies.
func say(f fabric, all []exchange) {
	sys := oncrpc.Sys{Stamp: 7, Machine: canaryOf(20), UID: 1, GID: 2, Count: 1}
	for i, x := range all {
		xid := uint32(i) + 1
		c := oncrpc.Call{
			XID: xid, RPCVersion: 2, Program: x.program, Version: x.version, Procedure: x.procedure,
			Cred: oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}, Verf: oncrpc.Auth{Flavor: oncrpc.AuthShort, Body: canaryOf(12)},
		}
		r := oncrpc.Reply{XID: xid, Verf: oncrpc.Auth{Flavor: oncrpc.AuthShort, Body: canaryOf(16)}}
		from := 0
		if x.program >= nfs4.NFS4_CALLBACK && x.program < transientEnd {
			from = 1
		}
		f.send(from, xid, append(c.Append(nil), x.args...))
		if i%17 != 5 { // without a reply
			f.send(1-from, xid, append(r.Append(nil), x.result...))
		}
		if i%29 == 7 {
			f.send(0, xid+0x10000, canaryOf(77)) // no message
		}
	}
}

// secure sends what RPCSEC_GSS protects, and what creates a context.
func secure(f fabric) {
	token := xdr.AppendOpaque(nil, canaryOf(40))
	for i := range uint32(8) {
		procedure, service := uint32(0), 1+i%3
		if i%4 == 0 {
			procedure = 1 // INIT
		}
		cred := []byte{0, 0, 0, 1, 0, 0, 0, byte(procedure), 0, 0, 0, 9, 0, 0, 0, byte(service)}
		c := oncrpc.Call{
			XID: 0x500 + i, RPCVersion: 2, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: 1 - procedure,
			Cred: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: append(cred, xdr.AppendOpaque(nil, canaryOf(12))...)},
			Verf: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: canaryOf(28)},
		}
		f.send(0, c.XID, append(append(c.Append(nil), token...), token...))
		r := oncrpc.Reply{XID: c.XID, Verf: c.Verf}
		result := append(xdr.AppendOpaque(nil, canaryOf(16)), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128)
		f.send(1, c.XID, append(append(r.Append(nil), result...), token...))
	}
}

// hidden sends messages with canaries where no field is: behind their ends, in what rejects a call, in headers of other versions and in
// credentials.
func hidden(f fabric) {
	text := []byte(canaries[0] + canaries[0] + canaries[0] + canaries[0] + canaries[0])
	xid := uint32(0x900)
	say := func(from int, parts ...[]byte) {
		xid++
		f.send(from, xid, append(binary.BigEndian.AppendUint32(nil, xid), slices.Concat(parts...)...))
	}
	null := []byte{0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	accepted := []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	again := func() { xid-- }
	say(0, null, text)
	again()
	say(1, accepted, []byte{0, 0, 0, 0}, text)
	for _, stat := range []byte{1, 2, 3, 5, 77} { // PROG_UNAVAIL, PROG_MISMATCH, PROC_UNAVAIL, SYSTEM_ERR, and none that exists
		say(0, null)
		again()
		say(1, accepted, []byte{0, 0, 0, stat, 0, 0, 0, 2, 0, 0, 0, 3}, text)
	}
	for _, stat := range []byte{0, 1, 9} { // RPC_MISMATCH, AUTH_ERROR, and none that exists
		say(0, null)
		again()
		say(1, []byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, stat, 0, 0, 0, 2, 0, 0, 0, 2}, text)
	}
	say(0, null)
	again()
	say(1, []byte{0, 0, 0, 1}, text) // accepted or not, it does not say
	say(0, null)
	again()
	say(1, []byte{0, 0, 0, 1, 0, 0, 0, 0}, text)             // a verifier that is none
	say(0, null[:20], text)                                  // nor is this a credential
	say(0, null[:28], text)                                  // nor this the verifier of a call
	say(0, []byte{0, 0, 0, 0, 0, 0, 0, 3}, text)             // another version of RPC
	say(0, []byte{0, 0, 0, 0}, text)                         // hardly one
	say(0, null[:20], []byte{0, 0, 0, 1, 0, 0, 0, 40}, text) // a credential of AUTH_SYS that is none
	say(0, null[:20], []byte{0, 0, 0, 3, 0, 0, 0, 40}, text, null[24:32])
	say(0, null[:20], []byte{0, 0, 0, 6, 0, 0, 0, 40}, text, null[24:32])
	sys := oncrpc.Sys{Stamp: binary.BigEndian.Uint32(text), Machine: text[:5], Count: 1}
	body := sys.Append(nil)
	copy(body[13:16], text) // behind the name
	say(0, null[:20], []byte{0, 0, 0, 1}, xdr.AppendOpaque(nil, append(body, text[:8]...)), null[24:32])
}

// TestPadding: what fills words up is zero in the copy.
func TestPadding(t *testing.T) {
	w := new(wire)
	sys := oncrpc.Sys{Machine: []byte("host5"), Count: 1}
	c := oncrpc.Call{XID: 1, RPCVersion: 2, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_LOOKUP, Cred: oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}}
	b := append(c.Append(nil), xdr.AppendOpaque(xdr.AppendOpaque(nil, []byte("handle789")), []byte("n"))...)
	const filler = 0xee
	for _, name := range []string{"host5", "handle789", "n\x00\x00\x00"} {
		at := bytes.LastIndex(b, []byte(name)) + len(strings.TrimRight(name, "\x00"))
		for ; at%4 != 0; at++ {
			b[at] = filler
		}
	}
	datagrams{w}.send(0, 1, b)
	out, st := scrubbed(t, w.all, Options{})
	if payload := out[0].Data[42:]; bytes.IndexByte(payload, filler) >= 0 || st.Messages != 1 {
		t.Errorf("%+v: % x", st, payload)
	}
}

// others sends what is none of the protocols, and headers with more in them than they need.
func others(w *wire) {
	p := newPair(w, 256)
	for i, a := range []ibcm.Attribute{
		ibcm.AttributeREQ, ibcm.AttributeREP, ibcm.AttributeREJ, ibcm.AttributeMRA, ibcm.AttributeRTU, ibcm.AttributeDREQ, ibcm.AttributeDREP,
		ibcm.AttributeSIDRREQ, ibcm.AttributeSIDRREP, ibcm.AttributeLAP, ibcm.AttributeAPR,
	} {
		private := map[ibcm.Attribute]int{
			ibcm.AttributeREQ: 140, ibcm.AttributeREP: 36, ibcm.AttributeREJ: 12, ibcm.AttributeMRA: 10, ibcm.AttributeRTU: 8, ibcm.AttributeDREQ: 12,
			ibcm.AttributeDREP: 8, ibcm.AttributeSIDRREQ: 16, ibcm.AttributeSIDRREP: 24, ibcm.AttributeLAP: 20, ibcm.AttributeAPR: 10,
		}[a]
		p.manage(0, a, 0x1234, private)
		p.manage(i&1, a, ibcm.IPServiceID(6, 20049), private+1)
	}
	for _, op := range []roce.Opcode{
		roce.RCSendOnlyImmediate, roce.RCWriteOnlyImmediate, roce.RCAtomicAcknowledge, roce.RCCompareSwap, roce.RCFetchAdd, roce.RCAtomicWrite,
		roce.UDSendOnly, roce.UDSendOnlyImmediate, 0x3f, 0xc3,
	} {
		canary := binary.BigEndian.Uint64(canaryOf(8))
		q := roce.Packet{Opcode: op, Imm: uint32(canary), Atomic: roce.AtomicFields{SwapAdd: canary, Compare: canary}, AtomicAck: canary}
		p.raw(0, &q, canaryOf(32))
		p.raw(0, &q, canaryOf(33))
	}
	s := stream{wire: w, ports: [2]uint16{33000, 22}}
	s.open()
	s.bytes(0, canaryOf(3000))
	s.segment(1, s.seq[1], 0x18, append([]byte{34, 12}, canaryOf(10)...), canaryOf(9)) // TCP Fast Open
	s.segment(1, s.seq[1], 0x18, append([]byte{8, 10}, canaryOf(6)...), nil)           // malformed
	for _, kind := range []byte{2, 3, 4, 5, 8, 15, 28, 30, 253} {                      // longer than they are
		s.segment(1, s.seq[1], 0x18, append([]byte{kind, 36}, canaryOf(36)[:34]...), nil)
		s.segment(1, s.seq[1], 0x18, append([]byte{0}, canaryOf(31)...), nil)
	}
	w.udp(0, 5000, 53, canaryOf(60))
	for _, start := range [][]byte{{0x7f, 0}, {0xff, 0}, {4, 0x0f}, {4, 0x30}, {4, 0x40, 0, 0}, {0x81, 0}} { // opcodes, versions and pads that RoCE does not have, a CNP that is too long
		w.udp(0, 5000, 4791, append(start, canaryOf(60)...))
	}
	w.udp(0, 5000, 4791, append([]byte{0x7f, 0}, canaryOf(9)...))
	w.udp(0, 5000, 6343, canaryOf(600))
	w.udp(0, 5000, 4789, append(append([]byte{8, 0, 0, 0, 0, 0, 1, 0}, w.all[0].Data...), canaryOf(20)...)) // VXLAN
	w.frame(0, 47, append([]byte{0, 0, 8, 0}, w.all[0].Data[14:]...), canaryOf(12), nil)                    // GRE
	w.frame(0, 17, make([]byte, 8), canaryOf(30), nil)                                                      // padding of Ethernet
	w.frame(0, 17, make([]byte, 12), nil, append([]byte{0x88, 8}, canaryOf(6)...))                          // options of IP
	w.frame(0, 1, canaryOf(64), nil, nil)
	for side := range 2 {
		a, b := canaryIPv6[side].AsSlice(), canaryIPv6[1-side].AsSlice()
		v6 := append(append([]byte{0x60, 0, 0, 0, 0, 48, 0, 64}, a...), b...)
		v6 = append(v6, append([]byte{60, 1, 5, 12}, canaryOf(12)...)...) // hop by hop
		v6 = append(v6, append([]byte{17, 1, 1, 12}, canaryOf(12)...)...) // destination
		v6 = append(v6, append([]byte{9, 9, 0, 53, 0, 16, 0, 0}, canaryOf(8)...)...)
		w.packet(capture.LinkRaw, v6)
		w.packet(capture.LinkSLL, append(append([]byte{0, 0, 0, 32, 0, 8}, canaryOf(8)...), append([]byte{0x86, 0xdd}, v6...)...))
		w.packet(capture.LinkSLL2, append(append([]byte{0x86, 0xdd, 0, 0, 0, 0, 0, 1, 0, 1, 0, 8}, canaryOf(8)...), v6...))
	}
	arp := append(append([]byte(nil), w.all[0].Data[:12]...), 8, 6, 0, 1, 8, 0, 6, 4, 0, 1)
	arp = append(append(arp, canaryMAC[0][:]...), canaryAddr[0].AsSlice()...)
	w.packet(capture.LinkEthernet, append(append(arp, canaryMAC[1][:]...), canaryAddr[1].AsSlice()...))
	w.packet(capture.LinkEthernet, append(append(append([]byte(nil), w.all[0].Data[:12]...), 0x88, 0xcc), canaryOf(80)...)) // LLDP
	for _, protocol := range []byte{2, 4, 41, 50, 51, 88, 89, 103, 112, 115, 132, 137, 255} {                               // IGMP, IP in IP, ESP, AH, EIGRP, OSPF, PIM, VRRP, L2TP, SCTP, MPLS
		w.frame(0, protocol, canaryOf(70), canaryOf(10), nil)
		w.frame(1, protocol, append(append(w.all[0].Data[14:34:34], 0x9c, 0x40, 0, 53), canaryOf(40)...), nil, nil)
	}
	quoted := append(append([]byte{3, 4, 0, 0, 0, 0, 5, 0}, w.all[0].Data[14:]...), canaryOf(40)...)
	w.frame(0, 1, quoted, nil, nil) // ICMP quotes a packet
	for _, port := range []uint16{67, 111, 123, 137, 161, 389, 514, 546, 1812, 5353, 5355, 8472} {
		w.udp(0, port, port, canaryOf(90))
		w.udp(0, 40000, port, append([]byte{0, 0, 0, 1, 0, 0, 0, 0}, canaryOf(90)...))
	}
	for _, tags := range [][]byte{{0x81, 0, 0, 5}, {0x88, 0xa8, 0, 5, 0x81, 0, 0, 6}, {0x88, 0xe5, 0x20, 0, 0, 0, 0, 1}, {0x88, 0x47, 0, 1, 0x01, 64}, {0x89, 0x02, 1, 1}} {
		for _, next := range [][]byte{{0, 46, 0xaa, 0xaa, 3, 0, 0, 0}, {0x88, 0x8e}, {0x12, 0x34}} { // VLAN, MACsec, MPLS, CFM
			b := append(append(append([]byte(nil), w.all[0].Data[:12]...), tags...), next...)
			w.packet(capture.LinkEthernet, append(b, canaryOf(60)...))
		}
	}
	for _, at := range []uint16{1, 0x2003, 0x1fff} { // fragments whose rest is missing, and one beyond the end of a datagram
		w.frame(0, 17, canaryOf(72), nil, nil)
		binary.BigEndian.PutUint16(w.all[len(w.all)-1].Data[20:], at)
	}
	w.packet(capture.LinkEthernet, canaryOf(9))
	w.packet(capture.LinkType(147), canaryOf(99))
	w.packet(capture.LinkInfiniBand, canaryOf(99))
}

// flows are what the packets of UDP and TCP carry, put together by their ends.
func flows(in packets) map[tuple][]byte {
	all := make(map[tuple][]byte)
	var f link.Frame
	for i := range in {
		link.Decode(in[i].Link, in[i].Data, in[i].Length, &f)
		k := tuple{f.Src, f.Dst, f.SrcPort, f.DstPort}
		all[k] = append(all[k], f.Payload...)
	}
	return all
}

// malformed is how many messages are at most: those of secure, which have arguments where they say that nothing protects them, some of hidden, and in chunks what is no message.
const malformed = 64

// TestNoCanary: nothing of what any field of any protocol held is in the copy, over any fabric, in a small window and a large one, of whole
// packets and of those that were cut.
func TestNoCanary(t *testing.T) {
	all := exchanges(t)
	captures := map[string]func(w *wire){
		"TCP": func(w *wire) {
			f := &records{stream{wire: w, ports: [2]uint16{801, 2049}}}
			f.open()
			say(f, all)
			secure(f)
			hidden(f)
		},
		"UDP":       func(w *wire) { say(datagrams{w}, all); secure(datagrams{w}); hidden(datagrams{w}) },
		"fragments": func(w *wire) { f := &fragments{wire: w}; say(f, all); secure(f); hidden(f) },
		"RoCE": func(w *wire) {
			p := newPair(w, 256)
			say(p, all)
			secure(p)
			hidden(p)
			p.write(1, canaryOf(2000))
		},
		"chunks": func(w *wire) {
			p := chunked{newPair(w, 256)}
			say(p, all)
			secure(p)
			hidden(p)
			for i := range uint32(2) { // chunks of text
				h := rpcrdma.Header{XID: 0xb00 + i, Version: 1, Credits: 32, Type: rpcrdma.TypeMsg, HasReply: true, Reply: rpcrdma.WriteChunk{{Handle: 7 + i, Length: 900, Offset: 1 << 20}}}
				null := binary.BigEndian.AppendUint32(nil, h.XID)
				null = append(null, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
				op := [4]roce.Opcode{roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCSendOnly}
				p.cut(0, append(h.Append(nil), null...), op, roce.Packet{})
				p.cut(1, canaryOf(600), [4]roce.Opcode{roce.RCWriteFirst, roce.RCWriteMiddle, roce.RCWriteLast, roce.RCWriteOnly}, roce.Packet{RETH: roce.RETHFields{VA: 1 << 20, RKey: 7 + i, DMALen: 600}})
				h.Type, h.Reply[0].Length = rpcrdma.TypeNoMsg, 600
				p.cut(1, h.Append(nil), op, roce.Packet{})
			}
		},
		"other": others,
	}
	for name, d := range map[string]ddp{"iWARP": {crc: true}, "iWARP, markers": {crc: true, marked: true}, "iWARP, no CRC": {}} {
		captures[name] = func(w *wire) {
			d.stream = stream{wire: w, ports: [2]uint16{33001, 20049}}
			d.open(canaryOf(50))
			say(&d, all)
			secure(&d)
			hidden(&d)
			d.write(1, canaryOf(900))
			terminate := iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpTerminate, true), 2, 1, 0)
			d.fpdu(1, append(append(terminate, 0, 0, 0, 0), canaryOf(42)...))
		}
	}
	for name, make := range captures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := new(wire)
			make(w)
			out, st := scrubbed(t, w.all, Options{})
			for i := range out {
				findCanary(t, name, out[i].Data)
			}
			t.Logf("%d packets, %+v", len(out), st)
			if name != "other" && (st.Late > 0 || st.Malformed > malformed || st.Messages < uint64(len(all))*3/2) {
				t.Errorf("%+v of %d exchanges", st, len(all))
			}
			eachMessage(t, out, func(_ uint64, b []byte) { findCanary(t, name, b) })
			for _, b := range flows(out) {
				findCanary(t, name+", across packets", b)
			}
			short := packets{}
			for i := range w.all {
				p := w.all[i]
				p.Data = p.Data[:min(len(p.Data), 60+i%200)]
				short = append(short, p)
			}
			for _, in := range []packets{w.all, short} {
				out, _ := scrubbed(t, in, Options{Window: 30000})
				for i := range out {
					findCanary(t, name, out[i].Data)
				}
			}
		})
	}
}
