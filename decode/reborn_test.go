package decode_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/tcp"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestReborn: a connection that has ended is followed by another one on the same ports, whose SYNs the capture lacks.
func TestReborn(t *testing.T) {
	const window = 1 << 24
	for _, name := range []string{"iwarp-nfs41-recall.pcap", "iwarp-nfs3-crc.pcap.zst"} { // the second one has RPC over TCP, too
		packets := sample(t, name, 0)
		want := decoded(packets, decode.Options{})
		last := packets[len(packets)-1].Time - packets[0].Time
		for _, c := range []struct {
			client, server uint32 // how much further its sequence numbers are
			another        bool
			opened         bool // the SYNs are there
		}{
			{500 << 20, 500 << 20, true, false}, {1 << 31, 1 << 31, true, false}, {1<<32 - 500<<20, 1<<32 - 500<<20, true, false},
			{0, 500 << 20, true, false}, {500 << 20, 0, true, false}, {0, 2 * window, true, false}, {2 * window, 0, true, false},
			{500 << 20, 500 << 20, true, true}, {window / 2, window / 2, true, true},
			{0, 0, false, false}, {1000, 1000, false, false}, {1<<32 - 1000, 1000, false, false}, {window / 2, window / 2, false, false},
		} {
			var second []capture.Packet
			var f link.Frame
			for _, p := range packets {
				link.Decode(p.Link, p.Data, p.Length, &f)
				if f.Proto != link.TCP || f.TCPFlags&tcp.SYN != 0 && !c.opened {
					continue
				}
				seq, ack := c.client, c.server
				if f.SrcPort < f.DstPort {
					seq, ack = ack, seq
				}
				p.Data = slices.Clone(p.Data)
				at := 14 + int(p.Data[14]&15)*4
				binary.BigEndian.PutUint32(p.Data[at+4:], f.TCPSeq+seq)
				binary.BigEndian.PutUint32(p.Data[at+8:], f.TCPAck+ack)
				p.Time += last + 5e9
				second = append(second, p)
			}
			got := decoded(slices.Concat(packets, second), decode.Options{})
			n := 1
			if c.another {
				n = 2
			}
			if len(got.conns) != n*len(want.conns) || len(got.rows) != n*len(want.rows) || !slices.Equal(got.rows[:len(want.rows)], want.rows) ||
				c.another && !slices.Equal(got.rows[len(want.rows):], want.rows) {
				t.Errorf("%s, %#x and %#x further: %d connections, %d transactions; alone %d, %d", name, c.client, c.server, len(got.conns), len(got.rows), len(want.conns), len(want.rows))
			}
		}
	}
}

// TestNotReborn: what comes after the end of a connection and is near to it is of that connection, and so is what comes behind a large gap.
func TestNotReborn(t *testing.T) {
	call := oncrpc.AppendRecord(nil, (&oncrpc.Call{XID: 1, RPCVersion: oncrpc.Version, Program: 100003, Version: 3}).Append(nil))
	reply := oncrpc.AppendRecord(nil, (&oncrpc.Reply{XID: 1}).Append(nil))
	for _, c := range []struct {
		name string
		late func(d *dialogue)
		want int // transactions
	}{
		{"a reply, when only the call's side had been seen", func(d *dialogue) { d.say(1, reply) }, 1},
		{"the call again, and nothing was seen of its peer", func(d *dialogue) { d.segment(0, 1<<30, 0x10, call) }, 1},
		{"one without an acknowledgment", func(d *dialogue) {
			d.next[1] += 1 << 29
			d.segment(0, 1<<30, 0x08, call)
		}, 1},
		{"another connection", func(d *dialogue) {
			d.next = [2]uint32{1 << 31, 1 << 31}
			d.say(0, call)
			d.say(1, reply)
		}, 2},
	} {
		d := dialogue{next: [2]uint32{1 << 30, 1 << 30}}
		d.say(0, call)
		if c.name == "one without an acknowledgment" {
			d.say(1, make([]byte, 8))
		}
		d.segment(0, d.next[0], tcp.RST, nil)
		for range 3000 {
			d.segment(0, 0, 0, nil) // time passes
			b := d.packets[len(d.packets)-1].Data
			b[14+9] = 99 // not TCP
		}
		c.late(&d)
		n := 0
		decodedWith(d.packets, decode.Options{}, func(*transaction.Transaction) { n++ })
		if n != c.want {
			t.Errorf("%s: %d transactions, want %d", c.name, n, c.want)
		}
	}

	packets := sample(t, "iwarp-nfs41-recall.pcap", 0)
	want := decoded(packets, decode.Options{})
	var f link.Frame
	for i := range packets {
		link.Decode(packets[i].Link, packets[i].Data, packets[i].Length, &f)
		if f.Proto != link.TCP || i < len(packets)/2 {
			continue
		}
		packets[i].Data = slices.Clone(packets[i].Data)
		at := 14 + int(packets[i].Data[14]&15)*4
		binary.BigEndian.PutUint32(packets[i].Data[at+4:], f.TCPSeq+50<<20)
		binary.BigEndian.PutUint32(packets[i].Data[at+8:], f.TCPAck+50<<20)
	}
	got := decoded(packets, decode.Options{})
	if c := got.conns; len(c) != 1 || c[0].Sent[0].Gaps != 50<<20 || c[0].Sent[1].Gaps != 50<<20 || len(got.rows) < len(want.rows)-1 {
		t.Errorf("50 MiB are missing: %d connections, %d transactions", len(c), len(got.rows))
	}
}

// TestQueuePairReborn: a connection whose end was announced is followed at once by another one on the same queue pairs, whose setup the
// capture lacks. What is near the ended one's packets has come late.
func TestQueuePairReborn(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs42-basic.pcap.zst"} {
		packets := sample(t, name, 0)
		want := decoded(packets, decode.Options{})
		end, first := packets[len(packets)-1].Time, int64(0)
		for _, c := range []struct {
			further uint32
			damaged bool
			another bool
		}{
			{1 << 23, false, true}, {1 << 20, false, true}, {1<<24 - 1<<20, false, true}, {1 << 15, false, true}, {1<<24 - 1, false, false}, {1<<24 - 1<<15, false, false},
			{1 << 20, true, false},
		} {
			var second []capture.Packet
			for _, p := range changed(packets, func(v *view) { v.bth.SetPSN((v.q.PSN + c.further) & 0xffffff) }) {
				v, ok := look(&p)
				if !ok || v.q.Opcode.Service() != roce.ServiceRC {
					continue
				}
				if len(second) == 0 {
					first = p.Time
				}
				if p.Time += end + 1e6 - first; p.Time-end >= 2e9 {
					break
				}
				if c.damaged {
					p.Data[len(p.Data)-1]++
				}
				second = append(second, p)
			}
			if len(second) < 40 {
				t.Fatalf("%s: %d packets", name, len(second))
			}
			alone := decoded(second, decode.Options{})
			got := decoded(slices.Concat(packets, second), decode.Options{})
			if !slices.Equal(got.rows[:len(want.rows)], want.rows) {
				t.Errorf("%s, %#x further: the first connection's transactions have changed", name, c.further)
			}
			if rest := got.rows[len(want.rows):]; c.another && !slices.Equal(rest, alone.rows) || !c.another && len(rest) > 0 {
				t.Errorf("%s, %#x further: %d transactions of the second, alone %d", name, c.further, len(rest), len(alone.rows))
			}
		}
	}
}

// TestEndContradicted: the messages that end a connection come in its middle, and the capture lacks what follows them. What comes later
// is shown.
func TestEndContradicted(t *testing.T) {
	packets := sample(t, "rocev2-nfs41-recall.pcap", 0)
	var ends, rest []capture.Packet
	for _, p := range packets {
		if v, ok := look(&p); ok && v.q.Opcode.Service() == roce.ServiceUD && ibcm.MAD(v.q.Payload).Attribute() >= ibcm.AttributeDREQ {
			ends = append(ends, p)
			continue
		}
		rest = append(rest, p)
	}
	if len(ends) != 2 {
		t.Fatal("another capture")
	}
	want := len(decoded(packets, decode.Options{}).rows)
	for _, at := range []int{100, 150, 200, 240} {
		for _, missing := range []int{0, 1, 2, 3, 5, 8, 13} {
			for i := range ends {
				ends[i].Time = rest[at].Time
			}
			got := decoded(slices.Concat(rest[:at], ends, rest[at+missing:]), decode.Options{})
			counted := uint64(0)
			for _, c := range got.conns {
				counted += c.Sent[0].Packets + c.Sent[1].Packets
			}
			// Up to the next requests, acknowledgements are stragglers.
			if all := uint64(len(rest) - missing); counted+12 < all || len(got.rows) < want-missing/2 {
				t.Errorf("%d packets missing behind an end before packet %d: %d of %d counted, %d of %d transactions", missing, at+1, counted, all, len(got.rows), want)
			}
		}
	}
}
