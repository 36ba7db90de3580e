package decode_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/tcp"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// forged is a segment of the direction of p without payload: with other flags and
// sequence number, and an acknowledgment that is its own.
func forged(p *capture.Packet, f *link.Frame, flags byte, seq uint32) capture.Packet {
	out := *p
	at := len(p.Data) - len(f.Transport)
	if at < 0 || len(f.Transport) < 20 {
		panic("not whole")
	}
	// Ethernet and IPv4 without options, TCP without options.
	out.Data = slices.Clone(p.Data[:14+20+20])
	h := out.Data[34:]
	binary.BigEndian.PutUint32(h[4:], seq)
	h[12], h[13] = 5<<4, flags
	binary.BigEndian.PutUint16(out.Data[16:], 40)
	out.Length = uint32(len(out.Data))
	out.Time++
	return out
}

// TestForgedTCP: segments that nobody who is part of a connection would send do not
// end it, nor begin another one, since it goes on.
func TestForgedTCP(t *testing.T) {
	const syn, ack, fin, rst = tcp.SYN, 0x10, tcp.FIN, tcp.RST
	kinds := []struct {
		name  string
		flags byte
		seq   func(f *link.Frame, rng *rand.Rand) uint32
	}{
		{"RST anywhere", rst, func(_ *link.Frame, rng *rand.Rand) uint32 { return rng.Uint32() }},
		{"RST far ahead", rst | ack, func(f *link.Frame, _ *rand.Rand) uint32 { return f.TCPSeq + 1<<21 }},
		{"RST in the window", rst, func(f *link.Frame, _ *rand.Rand) uint32 { return f.TCPSeq + 1000 }},
		{"RST exact", rst | ack, func(f *link.Frame, _ *rand.Rand) uint32 { return f.TCPSeq + uint32(f.PayloadLen) }},
		{"SYN anywhere", syn, func(_ *link.Frame, rng *rand.Rand) uint32 { return rng.Uint32() }},
		{"SYN near", syn, func(f *link.Frame, _ *rand.Rand) uint32 { return f.TCPSeq + 77 }},
		{"SYN and ACK", syn | ack, func(_ *link.Frame, rng *rand.Rand) uint32 { return rng.Uint32() }},
		{"FIN exact", fin, func(f *link.Frame, _ *rand.Rand) uint32 { return f.TCPSeq + uint32(f.PayloadLen) }},
		{"FIN early", fin | ack, func(f *link.Frame, _ *rand.Rand) uint32 { return f.TCPSeq + uint32(f.PayloadLen) - 50 }},
	}
	names := []string{"iwarp-nfs41-recall.pcap", "iwarp-nfs40-basic.pcap.zst", "rocev2-nfs3-basic.pcap.zst", "iwarp-nfs41-midstream.pcap.zst"}
	if testing.Short() {
		names = names[:2]
	}
	for _, name := range names {
		packets := sample(t, name, 0)
		want := decoded(packets, decode.Options{})
		// Segments whose direction goes on after them, by more than its end.
		var places []int
		more := map[string]int{}
		var f link.Frame
		for i := len(packets) - 1; i >= 0; i-- {
			p := &packets[i]
			if link.Decode(p.Link, p.Data, p.Length, &f); f.Proto != link.TCP || f.TCPFlags&(syn|fin|rst) != 0 || !f.Src.Is4() {
				continue
			}
			way := fmt.Sprint(f.Src, f.SrcPort, f.Dst, f.DstPort)
			if more[way] > 0 && f.PayloadLen > 100 {
				places = append(places, i)
			}
			if f.PayloadLen > 1 {
				more[way]++
			}
		}
		if len(places) < 3 {
			t.Fatalf("%s: %d places", name, len(places))
		}
		for _, kind := range kinds {
			t.Run(name+" "+kind.name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, uint64(len(kind.name))))
				counted, rounds := 0, 25
				if testing.Short() {
					rounds = 5
				}
				for range rounds {
					at := places[rng.IntN(len(places))]
					p := &packets[at]
					link.Decode(p.Link, p.Data, p.Length, &f)
					bad := forged(p, &f, kind.flags, kind.seq(&f, rng))
					got := decoded(slices.Insert(slices.Clone(packets), at+1, bad), decode.Options{})
					got.equal(t, want)
					if got.resyncs > want.resyncs {
						counted++
					}
					if len(got.conns) != len(want.conns) {
						t.Errorf("%d connections, want %d", len(got.conns), len(want.conns))
					}
					if t.Failed() {
						t.Fatalf("behind packet %d: seq %#x", at+1, kind.seq(&f, rng))
					}
				}
				t.Logf("%d of %d counted", counted, rounds)
				if counted < rounds*4/5 {
					t.Errorf("%d of %d counted", counted, rounds)
				}
			})
		}
	}
}

// TestOtherBytes: a segment that comes again with other bytes is no repetition.
// One alone changes nothing, is counted and noted.
func TestOtherBytes(t *testing.T) {
	for _, name := range []string{"iwarp-nfs41-recall.pcap", "iwarp-nfs40-basic.pcap.zst", "rocev2-nfs3-basic.pcap.zst"} {
		packets := sample(t, name, 0)
		want := decoded(packets, decode.Options{})
		rng := rand.New(rand.NewPCG(1, 2))
		var f link.Frame
		n, noted, counted := 0, 0, 0
		for range 4000 {
			at := rng.IntN(len(packets) - 10)
			p := packets[at]
			p.Data = slices.Clone(p.Data)
			if link.Decode(p.Link, p.Data, p.Length, &f); f.Proto != link.TCP || f.PayloadLen < 40 || f.TCPFlags&(tcp.SYN|tcp.FIN|tcp.RST) != 0 {
				continue
			}
			if n++; n > 60 {
				break
			}
			for i := range 8 {
				f.Payload[i] ^= 0x5a
			}
			later := at + 1 + rng.IntN(3)
			p.Time = packets[later].Time
			got := decoded(slices.Insert(slices.Clone(packets), later, p), decode.Options{})
			got.equal(t, want)
			if got.resyncs > want.resyncs {
				counted++
			}
			if got.notes[transaction.BytesDiffer] > 0 {
				noted++
			}
			if t.Failed() {
				t.Fatalf("%s: packet %d behind %d", name, at+1, later)
			}
		}
		t.Logf("%s: %d sent again, %d counted, %d noted", name, n, counted, noted)
		if n == 0 || counted < n*9/10 {
			t.Errorf("%s: %d of %d counted", name, counted, n)
		}
	}
}
