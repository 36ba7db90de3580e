package decode_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// sample reads the first n packets of a capture into memory; all if n is 0.
func sample(t testing.TB, name string, n int) (out []capture.Packet) {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join("../samples", name)
	}
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	for n == 0 || len(out) < n {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			p.Data = slices.Clone(p.Data)
			out = append(out, p)
		}
	}
	if n > 0 && len(out) > n {
		out = out[:n]
	}
	return out
}

// view is a packet of RoCEv2 that may be changed.
type view struct {
	*capture.Packet
	link.Frame
	q   roce.Packet
	bth roce.BTH
}

// look decodes p; ok is false if it is not RoCEv2.
func look(p *capture.Packet) (v view, ok bool) {
	v.Packet = p
	link.Decode(p.Link, p.Data, p.Length, &v.Frame)
	if v.Proto != link.UDP || v.DstPort != 4791 || !roce.Decode(v.Payload, v.PayloadLen, &v.q) {
		return v, false
	}
	v.bth = roce.BTH(v.Payload)
	return v, true
}

// seal computes the ICRC again.
func (v *view) seal() {
	n := len(v.Payload) - roce.ICRCSize
	if sum, ok := roce.ICRC(v.Proto, v.Net, v.Transport, v.Payload[:n]); ok {
		binary.LittleEndian.PutUint32(v.Payload[n:], sum)
	}
}

// changed is a copy of packets in which change was called for each of RoCEv2.
func changed(packets []capture.Packet, change func(*view)) []capture.Packet {
	out := slices.Clone(packets)
	for i := range out {
		out[i].Data = slices.Clone(out[i].Data)
		if v, ok := look(&out[i]); ok {
			change(&v)
			v.seal()
		}
	}
	return out
}

// startPSN changes the start PSNs of a setup. REQ comes with 0, REP with 1.
func startPSN(v *view, change func(side int, psn uint32) uint32) {
	if v.q.Opcode.Service() != roce.ServiceUD {
		return
	}
	switch mad := ibcm.MAD(v.q.Payload); mad.Attribute() {
	case ibcm.AttributeREQ:
		m := ibcm.REQ(mad.Data())
		m.SetStartingPSN(change(0, m.StartingPSN()) & 0xffffff)
	case ibcm.AttributeREP:
		m := ibcm.REP(mad.Data())
		m.SetStartingPSN(change(1, m.StartingPSN()) & 0xffffff)
	}
}

// row is what a capture must tell of a transaction, however it was captured.
type row struct {
	XID       uint32
	State     transaction.State
	Procedure uint32
	Backward  bool
	Reads     int
	Writes    int
	ReadB     uint64
	WriteB    uint64
	CallB     uint64
	ReplyB    uint64
}

// outcome is what was decoded of a capture.
type outcome struct {
	rows    []row
	notes   map[transaction.NoteKind]int
	resyncs uint64
	conns   []*rdma.Connection
}

func decodedWith(packets []capture.Packet, opt decode.Options, emit func(*transaction.Transaction)) {
	numbered := slices.Clone(packets)
	for i := range numbered {
		numbered[i].Number = uint64(i + 1)
	}
	traffic.Run(decode.New(opt, emit), numbered, 64)
}

func decoded(packets []capture.Packet, opt decode.Options) *outcome {
	o := &outcome{notes: map[transaction.NoteKind]int{}}
	seen := map[*rdma.Connection]bool{}
	decodedWith(packets, opt, func(tx *transaction.Transaction) {
		o.rows = append(o.rows, row{
			tx.XID, tx.State, tx.Procedure, tx.Backward, tx.Reads, tx.Writes,
			tx.ReadBytes, tx.WriteBytes, tx.Call.Bytes, tx.Reply.Bytes,
		})
		for _, n := range tx.Notes {
			o.notes[n.Kind]++
		}
		if c := tx.Connection.Resolve(); !seen[c] {
			seen[c] = true
			o.conns = append(o.conns, c)
		}
	})
	for _, c := range o.conns {
		o.resyncs += c.Sent[0].Resyncs + c.Sent[1].Resyncs
	}
	return o
}

func (o *outcome) equal(t *testing.T, want *outcome) {
	t.Helper()
	if len(o.rows) != len(want.rows) {
		t.Errorf("%d transactions, want %d", len(o.rows), len(want.rows))
	}
	wrong := 0
	for i := range min(len(o.rows), len(want.rows)) {
		if o.rows[i] != want.rows[i] {
			if wrong++; wrong <= 3 {
				t.Errorf("transaction %d:\n got %+v\nwant %+v", i+1, o.rows[i], want.rows[i])
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d transactions differ", wrong)
	}
}

// TestStartPSNContradicted: the traffic decides, not the PSNs of the setup.
func TestStartPSNContradicted(t *testing.T) {
	packets := sample(t, "rocev2-nfs3-basic.pcap.zst", 0)
	want := decoded(packets, decode.Options{})
	var psn [2]uint32
	changed(packets, func(v *view) {
		startPSN(v, func(side int, p uint32) uint32 { psn[side] = p; return p })
	})
	cases := map[string]func(int, uint32) uint32{
		"swapped": func(side int, _ uint32) uint32 { return psn[1-side] },
	}
	for _, d := range []int32{1, 2, 5, 17, 64, 65, 200, 1000, 10_000, 65_536, 1 << 22} {
		cases[fmt.Sprint("ahead by ", d)] = func(_ int, p uint32) uint32 { return p + uint32(d) }
		cases[fmt.Sprint("behind by ", d)] = func(_ int, p uint32) uint32 { return p - uint32(d) }
		cases[fmt.Sprint("client's ahead by ", d)] = func(side int, p uint32) uint32 { return p + uint32(d)*uint32(side) }
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			got := decoded(changed(packets, func(v *view) { startPSN(v, change) }), decode.Options{})
			got.equal(t, want)
			switch name {
			case "behind by 1", "behind by 2", "behind by 5", "behind by 17", "behind by 64":
				if got.resyncs != 0 {
					t.Errorf("%d resyncs, want a gap", got.resyncs)
				}
			case "behind by 65", "behind by 200", "behind by 1000", "behind by 10000":
				// The capture may lack what came between.
				if got.resyncs == 0 || got.notes[transaction.SequenceRestart] != 0 {
					t.Errorf("%d resyncs, %d notes, want none", got.resyncs, got.notes[transaction.SequenceRestart])
				}
			default:
				if got.resyncs == 0 || got.notes[transaction.SequenceRestart] == 0 {
					t.Errorf("%d resyncs, %d notes", got.resyncs, got.notes[transaction.SequenceRestart])
				}
			}
		})
	}
}

// TestQueuePairReused: the queue pairs of a connection without setup carry
// another one later, whose PSNs lie below.
func TestQueuePairReused(t *testing.T) {
	packets := sample(t, "rocev2-nfs3-basic.pcap.zst", 0)
	packets = slices.DeleteFunc(packets, func(p capture.Packet) bool {
		v, ok := look(&p)
		return !ok || v.q.Opcode.Service() != roce.ServiceRC
	})
	one := decoded(packets, decode.Options{})
	for _, down := range []uint32{0, 1, 7, 100, 1000, 5000, 20_000, 60_000} {
		for _, later := range []int64{1e6, 400e9} {
			t.Run(fmt.Sprint(down, " below after ", later), func(t *testing.T) {
				last := packets[len(packets)-1].Time - packets[0].Time
				second := changed(packets, func(v *view) {
					v.bth.SetPSN((v.q.PSN - down) & 0xffffff)
					v.Time += last + later
					if op := v.q.Opcode; op.IsSend() && op.Starts() { // other XIDs
						var h rpcrdma.Header
						if h.Decode(v.q.Payload, v.q.PayloadLen) == nil && h.Inline() {
							v.q.Payload[h.Length+3] ^= 0x55
						}
						v.q.Payload[3] ^= 0x55
					}
				})
				got := decoded(append(slices.Clone(packets), second...), decode.Options{})
				if len(got.rows) != 2*len(one.rows) {
					t.Fatalf("%d transactions, want twice %d", len(got.rows), len(one.rows))
				}
				for i, r := range one.rows {
					if got.rows[i] != r {
						t.Fatalf("transaction %d:\n got %+v\nwant %+v", i+1, got.rows[i], r)
					}
					r.XID ^= 0x55
					if g := got.rows[len(one.rows)+i]; g != r {
						t.Fatalf("transaction %d of the second:\n got %+v\nwant %+v", i+1, g, r)
					}
				}
				if got.resyncs == 0 {
					t.Error("no resync")
				}
			})
		}
	}
}

// TestOvertaken: a packet that comes a little before the beginning of its
// message, or a Read Response before its request, changes nothing.
func TestOvertaken(t *testing.T) {
	kinds := map[string]func(a, b *view) bool{
		"write":    func(a, b *view) bool { return a.q.Opcode.IsWrite() && a.q.Opcode.IsFirst() && b.q.Opcode.IsWrite() },
		"send":     func(a, b *view) bool { return a.q.Opcode.IsSend() && a.q.Opcode.IsFirst() && b.q.Opcode.IsSend() },
		"response": func(a, b *view) bool { return a.q.Opcode.IsReadRequest() && b.q.Opcode.IsReadResponse() },
	}
	for name, is := range kinds {
		n := 0
		for _, file := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs3-longcall.pcap", "rocev2-nfs41-ipv6.pcap.zst"} {
			packets := sample(t, file, 0)
			want := decoded(packets, decode.Options{})
			for i := 0; i+1 < len(packets) && n < 40; i++ {
				a, ok := look(&packets[i])
				b, ok2 := look(&packets[i+1])
				if !ok || !ok2 || !is(&a, &b) {
					continue
				}
				n++
				got := decoded(disturbed(packets, "swap", i, 1), decode.Options{})
				got.equal(t, want)
				if got.resyncs != 0 || t.Failed() {
					t.Fatalf("%s: %s at packet %d: %d resyncs", file, name, i+1, got.resyncs)
				}
			}
		}
		t.Logf("%s: %d swapped", name, n)
		if n == 0 && name != "send" {
			t.Errorf("%s: nothing to swap", name)
		}
	}
}

// TestLostReadRequest: without its Read Request a call is not complete, though
// all Responses are there.
func TestLostReadRequest(t *testing.T) {
	packets := sample(t, "rocev2-nfs3-basic.pcap.zst", 0)
	want := decoded(packets, decode.Options{})
	n := 0
	for i := range packets {
		v, ok := look(&packets[i])
		if !ok || !v.q.Opcode.IsReadRequest() {
			continue
		}
		n++
		got := decoded(disturbed(packets, "drop", i, 0), decode.Options{})
		if len(got.rows) != len(want.rows) {
			t.Fatalf("packet %d: %d transactions, want %d", i+1, len(got.rows), len(want.rows))
		}
		incomplete := 0
		for j, r := range got.rows {
			switch {
			case r == want.rows[j]:
			case r.State == transaction.Incomplete && r.ReadB < want.rows[j].ReadB:
				incomplete++
			default:
				t.Fatalf("packet %d: got %+v, want %+v", i+1, r, want.rows[j])
			}
		}
		if incomplete != 1 {
			t.Fatalf("packet %d: %d incomplete", i+1, incomplete)
		}
	}
	t.Logf("%d Read Requests", n)
}

// TestServerQueuePairReplaced: without a setup in the capture, the client's queue pair continues with another
// one of the server.
func TestServerQueuePairReplaced(t *testing.T) {
	packets := sample(t, "rocev2-nfs3-basic.pcap.zst", 0)
	packets = slices.DeleteFunc(packets, func(p capture.Packet) bool {
		v, ok := look(&p)
		return !ok || v.q.Opcode.Service() != roce.ServiceRC
	})
	whole := decoded(packets, decode.Options{})
	if len(whole.conns) != 1 {
		t.Fatalf("%d connections", len(whole.conns))
	}
	side, ok := transaction.ClientOf(whole.conns[0])
	if !ok {
		t.Fatal("nobody is known to send calls")
	}
	client := whole.conns[0].Ends[side].Addr
	quiet := func(o *outcome) bool {
		return !slices.ContainsFunc(o.rows, func(r row) bool { return r.State != transaction.Complete })
	}
	tried := 0
	for at := 100; at < len(packets) && tried < 5; at += 50 {
		before, after := decoded(packets[:at], decode.Options{}), decoded(packets[at:], decode.Options{})
		if !quiet(before) || !quiet(after) || len(before.rows)+len(after.rows) != len(whole.rows) {
			continue
		}
		tried++
		for _, shift := range [][2]uint32{{3000, 7000}, {0xfff000, 0xffe000}, {100, 0xffff00}, {1 << 22, 1 << 21}, {1 << 22, 20}} {
			second := changed(packets[at:], func(v *view) {
				if v.Src == client {
					v.bth.SetDestQP(v.q.DestQP + 1000)
				}
				ofServer := (v.Src == client) == v.q.Opcode.IsResponse()
				by := shift[0]
				if ofServer {
					by = shift[1]
				}
				v.bth.SetPSN((v.q.PSN + by) & 0xffffff)
			})
			got := decoded(slices.Concat(packets[:at], second), decode.Options{})
			got.equal(t, whole)
			if len(got.conns) != 2 {
				t.Errorf("%d connections, want 2", len(got.conns))
			}
			if t.Failed() {
				t.Fatalf("at packet %d, by %x; notes %v", at, shift, got.notes)
			}
		}
	}
	if tried == 0 {
		t.Error("no place found")
	}
}

// TestReadBeyond: a Read Request for more than the call offers is noted, though the peer refuses it.
func TestReadBeyond(t *testing.T) {
	packets := sample(t, "rocev2-nfs3-longcall.pcap", 0)
	if n := decoded(packets, decode.Options{}).notes[transaction.BeyondSegment]; n != 0 {
		t.Fatalf("%d notes", n)
	}
	tried := 0
	for i := range packets {
		v, ok := look(&packets[i])
		if !ok || !v.q.Opcode.IsReadRequest() {
			continue
		}
		tried++
		one := changed(packets[:i+1], func(v *view) {
			if v.q.Opcode.IsReadRequest() && v.Packet.Time == packets[i].Time {
				roce.RETH(v.Payload[roce.BTHSize:]).SetDMALen(v.q.RETH.DMALen + 1)
			}
		})
		if n := decoded(one, decode.Options{}).notes[transaction.BeyondSegment]; n != 1 {
			t.Errorf("packet %d: %d notes", i+1, n)
		}
		if tried == 10 {
			break
		}
	}
	if tried == 0 {
		t.Error("no Read Request")
	}
}
