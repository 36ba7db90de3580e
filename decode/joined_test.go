package decode_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// How packets get into one datagram.
type joining uint8

const (
	offload  joining = iota // a sender's: identifications count up from the first
	alike                   // a receiver's, of packets with one identification
	received                // a receiver's, of packets with the identifications that they have
)

// joined puts random runs of real packets, of any sizes, into one datagram each.
// It returns how many it put behind another one.
func joined(t *testing.T, packets []capture.Packet, how joining, rnd *rand.Rand) (out []capture.Packet, n int) {
	t.Helper()
	var first, f link.Frame
	var check roce.Checker
	for i := 0; i < len(packets); {
		p := packets[i]
		link.Decode(p.Link, p.Data, p.Length, &first)
		i++
		if first.Proto != link.UDP || first.DstPort != decode.RoCEPort || len(first.Payload) < first.PayloadLen {
			out = append(out, p)
			continue
		}
		at := bytes.Index(p.Data, first.Net)
		head := bytes.Clone(p.Data[:at+len(first.Net)+len(first.Transport)])
		net, udp := head[at:at+len(first.Net)], head[at+len(first.Net):]
		var body []byte
		add := func(payload []byte, index uint16) {
			ib := bytes.Clone(payload)
			if how != received {
				id := binary.BigEndian.Uint16(net[4:])
				lengths(net, udp, len(ib))
				if net[0]>>4 == 4 && how == offload {
					binary.BigEndian.PutUint16(net[4:], id+index)
				}
				end := len(ib) - roce.ICRCSize
				sum, ok := check.Sum(link.UDP, net, udp, ib[:end])
				if !ok {
					t.Fatalf("packet %d has no ICRC", p.Number)
				}
				binary.LittleEndian.PutUint32(ib[end:], sum)
				if net[0]>>4 == 4 {
					binary.BigEndian.PutUint16(net[4:], id)
				}
			}
			body = append(body, ib...)
		}
		add(first.Payload[:first.PayloadLen], 0)
		for index, k := uint16(1), uint16(1+rnd.IntN(16)); i < len(packets) && index < k; index++ {
			q := &packets[i]
			link.Decode(q.Link, q.Data, q.Length, &f)
			if f.Proto != link.UDP || f.Src != first.Src || f.Dst != first.Dst || f.SrcPort != first.SrcPort || f.DstPort != first.DstPort ||
				q.Tap != p.Tap || f.VLAN != first.VLAN || len(f.Net) != len(first.Net) || !bytes.Equal(f.Net[6:7], first.Net[6:7]) && net[0]>>4 == 4 ||
				len(f.Payload) < f.PayloadLen || len(body)+f.PayloadLen > 60000 {
				break
			}
			add(f.Payload[:f.PayloadLen], index)
			i++
			n++
		}
		lengths(net, udp, len(body))
		p.Data = append(head, body...)
		p.Length = uint32(len(p.Data))
		out = append(out, p)
	}
	return out, n
}

// lengths sets those of IP and UDP, for n bytes of payload.
func lengths(net, udp []byte, n int) {
	be := binary.BigEndian
	be.PutUint16(udp[4:], uint16(len(udp)+n))
	if net[0]>>4 == 4 {
		be.PutUint16(net[2:], uint16(len(net)+len(udp)+n))
	} else {
		be.PutUint16(net[4:], uint16(len(net)-40+len(udp)+n))
	}
}

// Packets of any sizes in one datagram make no difference, except for numbers and times.
func TestJoined(t *testing.T) {
	total := 0
	for _, name := range captures(t) {
		packets := load(t, name)
		want, wantStats := substance(t, packets)
		for _, how := range []joining{offload, alike, received} {
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(name), how), func(t *testing.T) {
				super, n := joined(t, packets, how, rand.New(rand.NewPCG(7, uint64(how))))
				total += n
				got, stats := substance(t, super)
				same(t, name, got, want)
				if stats.GoodICRC != wantStats.GoodICRC || stats.BadICRC != wantStats.BadICRC || stats.NotSplit != 0 ||
					stats.JoinedPackets-stats.Joined != uint64(n) || len(super)+n != len(packets) {
					t.Errorf("%d joined: %+v\nwant %+v", n, stats, wantStats)
				}
			})
		}
	}
	t.Logf("%d packets joined", total)
	if total < 1000 && !testing.Short() { // a short run has captures of iWARP only
		t.Errorf("%d packets joined", total)
	}
}

// substance is what transactions say, without the numbers and times of packets.
func substance(t *testing.T, packets []capture.Packet) (list []string, stats decode.Stats) {
	t.Helper()
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		list = append(list, fmt.Sprintf("#%d %v>%v %#x %v R%d/%d W%d/%d %d+%d again %d %v %v",
			tx.Connection.ID, tx.Client(), tx.Server(), tx.XID, tx.Backward, tx.Reads, tx.ReadBytes, tx.Writes, tx.WriteBytes,
			tx.Call.Bytes, tx.Reply.Bytes, tx.Retransmits, tx.State, tx.Notes))
	})
	if err := d.Run(&slice{packets: packets, batch: 64}); err != nil {
		t.Error(err)
	}
	return list, d.Stats()
}

// With the kernel's word, packets come apart without their ICRCs.
func TestJoinedTold(t *testing.T) {
	traffic := rocetest.Make(rocetest.Config{Seed: 6, CM: true, Data: 60000, Transfer: 65536, Kinds: []rocetest.Kind{rocetest.Small, rocetest.ReadData, rocetest.WriteData}})
	super, n := rocetest.Join(traffic.Taps[0], 16)
	if n == 0 {
		t.Fatal("nothing joined")
	}
	want, stats := substance(t, super)
	for i := range super {
		var f link.Frame
		var s roce.Splitter
		var p roce.Packet
		q := &super[i]
		link.Decode(q.Link, q.Data, q.Length, &f)
		if s.Reset(&f); !s.Next(&p) || !s.Segmented() {
			continue
		}
		q.Segment = uint16(p.Opcode.HeaderSize() + p.PayloadLen + int(p.Pad) + roce.ICRCSize)
		for at := int(q.Segment); at <= len(f.Payload); at += int(q.Segment) {
			clear(f.Payload[at-roce.ICRCSize : at])
		}
	}
	got, told := substance(t, super)
	same(t, "told", got, want)
	if told.JoinedPackets != stats.JoinedPackets || told.NotChecked == 0 || told.BadICRC != 0 {
		t.Errorf("%+v, want %+v", told, stats)
	}
	// It is believed even where headers say something else.
	for i := range super {
		super[i].Segment /= 2
	}
	if _, halved := substance(t, super); halved.JoinedPackets <= stats.JoinedPackets {
		t.Errorf("halved: %+v", halved)
	}
}
