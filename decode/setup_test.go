package decode_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// managed changes a copy of each message of the kind of, and puts it before (at 0) or behind (at 1) the message, in its
// place (at 2), or between the first and the second half of the capture (at 3).
func managed(packets []capture.Packet, of ibcm.Attribute, at int, change func(ibcm.MAD)) (out []capture.Packet) {
	var middle []capture.Packet
	for i := range packets {
		if i == len(packets)/2 {
			for _, p := range middle {
				p.Time = packets[i].Time
				out = append(out, p)
			}
		}
		p := packets[i : i+1]
		v, ok := look(&p[0])
		if !ok || v.q.Opcode.Service() != roce.ServiceUD || ibcm.MAD(v.q.Payload).Attribute() != of {
			out = append(out, p...)
			continue
		}
		copied := changed(p, func(v *view) { change(ibcm.MAD(v.q.Payload)) })
		switch at {
		case 0:
			out = append(append(out, copied...), p...)
		case 1:
			out = append(append(out, p...), copied...)
		case 2:
			out = append(out, copied...)
		default:
			out, middle = append(out, p...), append(middle, copied...)
		}
	}
	if of == ibcm.AttributeDREQ && at == 3 { // the message comes behind the middle
		half := packets[len(packets)/2]
		for i := len(packets) - 1; i >= 0; i-- {
			if v, ok := look(&packets[i]); ok && v.q.Opcode.Service() == roce.ServiceUD && ibcm.MAD(v.q.Payload).Attribute() == of {
				p := packets[i]
				p.Time = half.Time
				return slices.Insert(out, len(packets)/2, p)
			}
		}
	}
	return out
}

// TestSetupContradicted: messages of the connection manager that name false queue pairs, or end a connection that goes
// on, hide no transaction.
func TestSetupContradicted(t *testing.T) {
	qpn := func(offset int) func(ibcm.MAD) {
		return func(m ibcm.MAD) { copy(m.Data()[offset:], "\x12\x34\x56") }
	}
	as := func(a ibcm.Attribute) func(ibcm.MAD) { return func(m ibcm.MAD) { m.SetAttribute(a) } }
	const reqQPN, repQPN = 36, 12 // InfiniBand Architecture, volume 1, sections 12.6.5 and 12.6.8
	for _, x := range []struct {
		name      string
		of        ibcm.Attribute
		at        int
		change    func(ibcm.MAD)
		resyncs   bool
		falseEnds bool
	}{
		{"REQ names another queue pair", ibcm.AttributeREQ, 2, qpn(reqQPN), false, false},
		{"REP names another queue pair", ibcm.AttributeREP, 2, qpn(repQPN), true, false},
		{"REP comes twice, the first is false", ibcm.AttributeREP, 0, qpn(repQPN), true, false},
		{"REP comes twice, the second is false", ibcm.AttributeREP, 1, qpn(repQPN), false, false},
		{"REJ after the setup", ibcm.AttributeRTU, 1, as(ibcm.AttributeREJ), false, true},
		{"DREQ after the setup", ibcm.AttributeRTU, 1, as(ibcm.AttributeDREQ), false, true},
		{"DREP after the setup", ibcm.AttributeRTU, 1, as(ibcm.AttributeDREP), false, true},
		{"REJ in place of RTU", ibcm.AttributeRTU, 2, as(ibcm.AttributeREJ), false, false},
		{"DREQ in the middle", ibcm.AttributeDREQ, 3, func(ibcm.MAD) {}, false, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			packets := sample(t, "rocev2-nfs41-recall.pcap", 0)
			want := decoded(packets, decode.Options{})
			got := decoded(managed(packets, x.of, x.at, x.change), decode.Options{})
			got.equal(t, want)
			var ends uint64
			for _, c := range got.conns {
				ends += c.Sent[0].FalseEnds + c.Sent[1].FalseEnds
			}
			if got.resyncs > 0 != x.resyncs || ends > 0 != x.falseEnds {
				t.Errorf("%d resyncs, %d false ends", got.resyncs, ends)
			}
			if x.falseEnds && (len(got.conns) != 1 || got.conns[0].State != rdma.Closed || got.notes[transaction.ConnectionEnded] != 0) {
				t.Errorf("%d connections, %v", len(got.conns), got.notes)
			}
		})
	}
}

// TestMPAContradicted: an MPA frame that cannot be believed hides nothing but itself.
func TestMPAContradicted(t *testing.T) {
	for _, file := range []string{"iwarp-nfs41-recall.pcap", "iwarp-nfs3-crc.pcap.zst"} {
		packets := sample(t, file, 0)
		want := decoded(packets, decode.Options{})
		for _, key := range []string{"MPA ID Req Frame", "MPA ID Rep Frame"} {
			for _, x := range []struct {
				name, bytes string
				offset      int
			}{
				{"another key", "XXXX", 0}, {"private data of none", "\x00\x00", 18}, {"private data of 512 bytes", "\x02\x00", 18},
				{"private data of 64 KiB", "\xff\xff", 18},
			} {
				t.Run(file+"/"+key+"/"+x.name, func(t *testing.T) {
					mutant := slices.Clone(packets)
					for i := range mutant {
						if at := bytes.Index(mutant[i].Data, []byte(key)); at >= 0 {
							mutant[i].Data = slices.Clone(mutant[i].Data)
							copy(mutant[i].Data[at+x.offset:], x.bytes)
						}
					}
					var got outcome
					d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
						if tx.Connection.Resolve().Fabric == rdma.IWARP {
							got.rows = append(got.rows, row{XID: tx.XID, State: tx.State})
						}
					})
					traffic.Run(d, mutant, 64)
					n := 0
					for _, r := range want.rows {
						for _, g := range got.rows {
							if g.XID == r.XID && g.State == r.State {
								n++
								break
							}
						}
					}
					if n < len(got.rows) || len(got.rows) == 0 || len(want.rows)-n > 9 {
						t.Errorf("%d of %d transactions, %d as they were", len(got.rows), len(want.rows), n)
					}
					if g := d.Stats().Misframed; g.Count != 1 || g.Bytes != 32 || g.Offset != 0 {
						t.Errorf("given up: %+v", g)
					}
				})
			}
		}
	}
}

// TestMPAUnheeded: where the traffic contradicts what an MPA frame says, the first transaction of the direction says so, and nothing else changes.
func TestMPAUnheeded(t *testing.T) {
	const request, reply = "MPA ID Req Frame", "MPA ID Rep Frame"
	packets := sample(t, "iwarp-nfs41-recall.pcap", 0)
	want := decoded(packets, decode.Options{})
	kinds := []transaction.NoteKind{transaction.MPARejected, transaction.MPARevision, transaction.MarkersMissing, transaction.MarkersUnasked}
	for _, x := range []struct {
		name, key string
		flags     byte // changed
		revision  byte
		note      transaction.NoteKind // 0 for none
		n         uint64
	}{
		{"nothing", request, 0, 2, 0, 0},
		{"revision 1", request, 0, 1, 0, 0},
		{"reject", reply, 0x20, 2, transaction.MPARejected, 0},
		{"a reject of the client", request, 0x20, 2, 0, 0}, // the bit has no meaning there
		{"the server's markers", reply, 0x80, 2, transaction.MarkersMissing, 0},
		{"the client's markers", request, 0x80, 2, transaction.MarkersMissing, 0},
		{"the server's revision", reply, 0, 9, transaction.MPARevision, 9},
		{"the client's revision", request, 0, 9, transaction.MPARevision, 9},
		{"revision 0", request, 0, 0, transaction.MPARevision, 0},
		{"revision 3", request, 0, 3, transaction.MPARevision, 3},
	} {
		mutant := slices.Clone(packets)
		for i := range mutant {
			if at := bytes.Index(mutant[i].Data, []byte(x.key)); at >= 0 {
				mutant[i].Data = slices.Clone(mutant[i].Data)
				mutant[i].Data[at+16] ^= x.flags
				mutant[i].Data[at+17] = x.revision
			}
		}
		got := decoded(mutant, decode.Options{})
		got.equal(t, want)
		for _, k := range kinds {
			n := 0
			if k == x.note {
				n = 1
			}
			if got.notes[k] != n {
				t.Errorf("%s: %d notes %s, want %d", x.name, got.notes[k], k, n)
			}
		}
		if c := got.conns[0]; c.State != want.conns[0].State || c.Terminated != want.conns[0].Terminated {
			t.Errorf("%s: %v, %q", x.name, c.State, c.Terminated)
		}
		decodedWith(mutant, decode.Options{}, func(tx *transaction.Transaction) {
			for _, n := range tx.Notes {
				if n.Kind == x.note && (n.N != x.n || tx.XID != want.rows[0].XID) {
					t.Errorf("%s: %+v at %#x", x.name, n, tx.XID)
				}
			}
		})
	}
}

// TestMarkersUnasked takes the markers out of the setup of a connection that has them.
func TestMarkersUnasked(t *testing.T) {
	packets := sample(t, "iwarp-nfs41-recall.pcap", 0)
	for _, strip := range []bool{false, true} {
		marked := withMarkers(t, packets, strip)
		got := decoded(marked, decode.Options{})
		n := 0
		if strip {
			n = 1
		}
		if got.notes[transaction.MarkersUnasked] != n || got.notes[transaction.MarkersMissing] != 0 || len(got.rows) == 0 || got.rows[0].State != transaction.Complete {
			t.Errorf("asked for %v: %v, %d transactions", !strip, got.notes, len(got.rows))
		}
		without := slices.DeleteFunc(marked, func(p capture.Packet) bool { return bytes.Contains(p.Data, []byte("MPA ID Req Frame")) })
		if got := decoded(without, decode.Options{}); got.notes[transaction.MarkersUnasked] != 0 || len(got.rows) == 0 {
			t.Errorf("without the frame that would ask: %v, %d transactions", got.notes, len(got.rows))
		}
	}
	if got := decoded(sample(t, "iwarp-nfs41-midstream.pcap.zst", 0), decode.Options{}); got.notes[transaction.MPARevision] != 0 {
		t.Errorf("without a setup: %v", got.notes)
	}
}

// TestMarkersNotKnown: an FPDU that had to be looked for, before it was known that the peer asks for markers, does not show that there are none.
func TestMarkersNotKnown(t *testing.T) {
	packets := sample(t, "iwarp-nfs41-recall.pcap", 0)
	var f link.Frame
	var out []capture.Packet
	for i := range packets {
		p := &packets[i]
		link.Decode(p.Link, p.Data, p.Length, &f)
		at := bytes.Index(p.Data, []byte("MPA ID Req Frame"))
		switch {
		case f.Proto != link.TCP || f.PayloadLen == 0:
		case at >= 0:
			out = append(out, segmentOf(p, f.TCPFlags, f.TCPSeq, p.Data[at:], 0))
			out[len(out)-1].Data[len(out[len(out)-1].Data)-len(p.Data[at:])+16] |= 0x80
		case f.SrcPort == 20049 && f.Payload[0] != 'M' && len(out) == 1: // in place of the server's MPA Reply
			junk := segmentOf(p, f.TCPFlags, f.TCPSeq-300, make([]byte, 300), 0)
			out = []capture.Packet{junk, out[0], *p}
		case len(out) > 1:
			out = append(out, *p)
		}
	}
	got := decoded(out, decode.Options{})
	if len(got.rows) < 20 || got.notes[transaction.MarkersMissing] != 0 {
		t.Errorf("%d transactions, %v", len(got.rows), got.notes)
	}
}

// withMarkers is the start of a connection, up to its first reply, in which the server's FPDUs have markers. The setup asks for them unless
// strip is set.
func withMarkers(t *testing.T, packets []capture.Packet, strip bool) (out []capture.Packet) {
	var f link.Frame
	var pos uint64
	for i := range packets {
		p := packets[i]
		link.Decode(p.Link, p.Data, p.Length, &f)
		if f.Proto != link.TCP {
			continue
		}
		switch at := bytes.Index(p.Data, []byte("MPA ID Req Frame")); {
		case at >= 0 && !strip:
			p.Data = slices.Clone(p.Data)
			p.Data[at+16] |= 0x80
		case f.SrcPort == 20049 && f.PayloadLen > 0 && !bytes.Contains(p.Data, []byte("MPA ID Rep Frame")):
			length := int(binary.BigEndian.Uint16(f.Payload))
			payload := iwarp.AppendMarkedFPDU(nil, f.Payload[2:2+length], true, pos)
			return append(out, segmentOf(&p, f.TCPFlags, f.TCPSeq, payload, 0))
		}
		out = append(out, p)
	}
	t.Fatal("no reply")
	return nil
}

// TestSetupDamaged: where all ICRCs are wrong, the place of capture is to blame, and the setup counts like all else. Where
// one is, the receiver drops the message, and what it says counts only until another copy is seen.
func TestSetupDamaged(t *testing.T) {
	damage := func(p *capture.Packet) { p.Data[len(p.Data)-1] ^= 1 }
	// doubled puts a damaged copy, with other depths, before each message of that kind.
	doubled := func(packets []capture.Packet, of ibcm.Attribute) (out []capture.Packet) {
		for _, p := range managed(packets, of, 0, func(m ibcm.MAD) {
			ibcm.REQ(m.Data()).SetResponderResources(77)
			ibcm.REP(m.Data()).SetResponderResources(77)
		}) {
			if v, ok := look(&p); ok && v.q.Opcode.Service() == roce.ServiceUD {
				if m := ibcm.MAD(v.q.Payload); m.Attribute() == of && (ibcm.REQ(m.Data()).ResponderResources() == 77 || ibcm.REP(m.Data()).ResponderResources() == 77) {
					damage(&p)
				}
			}
			out = append(out, p)
		}
		return out
	}
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs41-restart.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst"} {
		packets := load(t, "../samples/"+name)
		want, setups := decodedWithSetups(packets)
		for _, c := range []struct {
			name    string
			packets func() []capture.Packet
		}{
			{"all", func() []capture.Packet {
				out := slices.Clone(packets)
				for i := range out {
					if _, ok := look(&out[i]); ok {
						out[i].Data = bytes.Clone(out[i].Data)
						damage(&out[i])
					}
				}
				return out
			}},
			{"a REQ", func() []capture.Packet { return doubled(packets, ibcm.AttributeREQ) }},
			{"a REP", func() []capture.Packet { return doubled(packets, ibcm.AttributeREP) }},
		} {
			damaged := number(c.packets())
			if more := len(damaged) - len(packets); (more > 0) != (c.name != "all") {
				t.Fatalf("%s, %s: %d packets more", name, c.name, more)
			}
			got, gotSetups := decodedWithSetups(damaged)
			same(t, name+", "+c.name, got, want)
			same(t, name+", "+c.name+", connections", gotSetups, setups)
		}
	}
}
