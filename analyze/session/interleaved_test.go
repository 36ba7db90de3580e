package session

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// decoderOf has a decoder for a Recorder, of which o is told, and what it reports.
func decoderOf(s *Recorder, o decode.Observer) *decode.Decoder {
	opt := decode.Options{Observer: o}
	opt.Transactions.Ended = s.Ended
	v := rpc.View{Names: &rpc.Names{}}
	return decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		v.Learn()
		s.Transaction(&v)
	})
}

func reportOf(t *testing.T, s *Recorder) string {
	t.Helper()
	b, err := json.Marshal(s.Report(nil))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(s.held, s.paid, s.pending(), string(b))
}

// packetsOf are the packets of a capture.
func packetsOf(t *testing.T, file string) []capture.Packet {
	t.Helper()
	var all []capture.Packet
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for p, err := range capture.Packets(r) {
		if err != nil {
			t.Fatal(err)
		}
		x := *p
		x.Data = bytes.Clone(p.Data)
		all = append(all, x)
	}
	return all
}

// TestCut: what is found is the same if the state is saved and restored after any packet.
func TestCut(t *testing.T) {
	for which := range traffic.Count() {
		rng := rand.New(rand.NewPCG(uint64(which), 37))
		for round := range 6 {
			var program []byte
			for range 8 * round {
				program = append(program, byte(rng.Uint32()))
			}
			packets := traffic.Apply(uint8(which), program)
			begin := func(table bool) (*Recorder, *decode.Decoder) {
				s := New(nil)
				s.Apart()
				if table {
					return s, decoderOf(s, collecting{s})
				}
				return s, decoderOf(s, s)
			}
			s, d := begin(true)
			traffic.Run(d, packets, 64)
			want := reportOf(t, s)
			for range 8 {
				s, d := begin(false)
				at := rng.IntN(len(packets) + 1)
				feed(d, packets[:at])
				var b bytes.Buffer
				if err := d.SaveState(&b, decode.StateOptions{Parts: []decode.StatePart{s}}); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(3) > 0 { // else it goes on itself
					s, d = begin(false)
					if _, err := d.LoadState(b.Bytes(), decode.StateOptions{Parts: []decode.StatePart{s}}); err != nil {
						t.Fatal(err)
					}
				}
				traffic.Run(d, packets[at:], 64)
				if got := reportOf(t, s); got != want {
					t.Fatalf("capture %d, program %v, cut at %d:\n%s\nnot cut, without the short way\n%s", which, program, at, got, want)
				}
			}
		}
	}
}

// message is a message of RPC behind a header of RPC-over-RDMA.
func message(xid uint32, list ...uint32) []byte {
	h := rpcrdma.Header{Version: rpcrdma.Version1, XID: xid, Credits: 8, Type: rpcrdma.TypeMsg}
	b := binary.BigEndian.AppendUint32(h.Append(nil), xid)
	for _, w := range list {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// interleaved runs calls and replies of a few clients on a few connections, some of which share a place in Recorder.counts, and returns what is
// found. Most of the time few calls are open, and most replies follow their calls. With table, nothing takes a short way.
func interleaved(t *testing.T, seed uint64, table bool) string {
	t.Helper()
	s := New(nil)
	opt := transaction.Options{Messages: s, Detach: true}
	if table {
		opt.Messages = collecting{s}
	} else {
		s.Apart()
		s.Copies()
		opt.Ended = s.Ended
	}
	view := rpc.View{Names: &rpc.Names{}}
	tracker := transaction.NewTracker(opt, func(tx *transaction.Transaction) {
		view.Set(tx)
		view.Learn()
		s.Transaction(&view)
	})
	type call struct {
		c    *rdma.Connection
		from rdma.Side
		data []byte
		tag  rdma.Tag
	}
	var conns [5]*rdma.Connection
	for i := range conns {
		conns[i] = &rdma.Connection{ID: 1 + i%3 + i/3*64, Fabric: rdma.RoCEv2}
		conns[i].Ends[0].Addr = netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + i/3)})
		conns[i].Ends[1].Addr = netip.AddrFrom4([4]byte{192, 0, 2, 1})
	}
	rng := rand.New(rand.NewPCG(seed, 41))
	var ref rdma.Ref
	send := func(c *rdma.Connection, from rdma.Side, data []byte) rdma.Tag {
		ref.Number++
		if ref.Time += 1000; rng.IntN(40) == 0 {
			ref.Time -= 2500 // the clock goes back
		}
		return tracker.Send(c, &rdma.Send{From: from, Data: data, Length: len(data), First: ref, Last: ref, Packets: 1})
	}
	most := 1 + rng.IntN(3)*(1+rng.IntN(2)*rng.IntN(40))
	newest := rng.IntN(2) == 0        // replies come to the newest call
	odd := 24 + 1_000_000*rng.IntN(2) // how seldom a call is repeated, or gets no reply
	var open []call
	for xid := range uint32(300) {
		x := call{c: conns[rng.IntN(1+rng.IntN(len(conns)))], from: rdma.Side(rng.IntN(10) / 9)}
		version := 3 - uint32(rng.IntN(8)/7)
		x.data = message(xid, 0, 2, 100003, version, 0, 0, 0, 0, 0)
		x.tag = send(x.c, x.from, x.data)
		open = append(open, x)
		for len(open) > 0 && (len(open) >= most || rng.IntN(3) == 0) {
			i := rng.IntN(len(open))
			if newest {
				i = len(open) - 1
			}
			x := open[i]
			open = slices.Delete(open, i, i+1)
			switch rng.IntN(odd) {
			case 0: // it gets no reply
			case 1:
				send(x.c, x.from, x.data)
				fallthrough
			default:
				tag := send(x.c, x.from.Other(), message(binary.BigEndian.Uint32(x.data), 1, 0, 0, 0, 0))
				if rng.IntN(4) > 0 {
					tracker.SendAcked(x.c, x.from.Other(), tag, ref)
				}
			}
		}
	}
	tracker.Flush()
	return reportOf(t, s)
}

// TestInterleaved: calls are counted the same with the short way and without.
func TestInterleaved(t *testing.T) {
	for seed := range uint64(100) {
		if all, some := interleaved(t, seed, true), interleaved(t, seed, false); all != some {
			t.Fatalf("%d: without the short way\n%s\nwith it\n%s", seed, all, some)
		}
	}
}

// feed decodes packets that others follow.
func feed(d *decode.Decoder, packets []capture.Packet) {
	b := new(capture.Batch)
	for _, p := range packets {
		b.Append(p)
	}
	d.Batch(b)
}
