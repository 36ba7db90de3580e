package decode_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// line is a transaction in one line.
func line(tx *transaction.Transaction) string {
	p, _ := tx.Phases()
	return fmt.Sprintf("#%d %v %v>%v %#x %v call %d-%d reply %d-%d R%d/%d W%d/%d %d+%d again %d %v %v %v",
		tx.Connection.ID, tx.Connection.Fabric, tx.Client(), tx.Server(), tx.XID, tx.Backward,
		tx.Call.First.Number, tx.Call.Last.Number, tx.Reply.First.Number, tx.Reply.Last.Number,
		tx.Reads, tx.ReadBytes, tx.Writes, tx.WriteBytes, tx.Call.Bytes, tx.Reply.Bytes, tx.Retransmits, p, tx.State, tx.Notes)
}

// slice is a capture.Reader of packets in memory.
type slice struct {
	packets []capture.Packet
	batch   int // packets at a time
	err     error
}

func (s *slice) Read(b *capture.Batch) error {
	if len(s.packets) == 0 {
		if s.err != nil {
			return s.err
		}
		return io.EOF
	}
	n := min(s.batch, len(s.packets))
	b.Packets = append(b.Packets[:0], s.packets[:n]...)
	s.packets = s.packets[n:]
	return nil
}

func (s *slice) Problems() ([]*capture.Problem, int) { return nil, 0 }
func (s *slice) Close() error                        { return nil }

// run decodes packets through the pipeline.
func run(t *testing.T, packets []capture.Packet, batch int, opt decode.Options) ([]string, decode.Stats) {
	t.Helper()
	var out []string
	d := decode.New(opt, func(tx *transaction.Transaction) { out = append(out, line(tx)) })
	if err := d.Run(&slice{packets: packets, batch: batch}); err != nil {
		t.Error(err)
	}
	return out, d.Stats()
}

// sequential decodes packets without the pipeline.
func sequential(packets []capture.Packet, batch int, opt decode.Options) []string {
	var out []string
	d := decode.New(opt, func(tx *transaction.Transaction) { out = append(out, line(tx)) })
	s := &slice{packets: packets, batch: batch}
	var b capture.Batch
	for s.Read(&b) == nil {
		d.Batch(&b)
	}
	d.Flush()
	return out
}

// number gives packets their numbers.
func number(packets []capture.Packet) []capture.Packet {
	for i := range packets {
		packets[i].Number = uint64(i + 1)
	}
	return packets
}

// mixed is RoCE with losses, RPC over TCP and over UDP, by time.
func mixed(seed uint64) []capture.Packet {
	traffic := rocetest.Make(rocetest.Config{
		Seed: seed, Connections: 3, Callbacks: 3, CM: seed%2 == 0, Invalidate: true,
		Loss: rocetest.Loss{Near: 0.01, Middle: 0.01, Far: 0.01, Copied: 0.01},
	})
	packets := rocetest.Frames(rocetest.Merge(nil, traffic.Taps[0]))
	start := traffic.Config.Start
	packets = append(packets, tcpTalk(start, 40)...)
	packets = append(packets, udpTalk(start, 40)...)
	slices.SortStableFunc(packets, func(a, b capture.Packet) int { return int(a.Time - b.Time) })
	return number(packets)
}

// TestRunIsDeterministic wants the same output of the pipeline, each time, as
// without it, whatever the batches.
func TestRunIsDeterministic(t *testing.T) {
	for seed := range uint64(4) {
		packets := mixed(seed)
		want := sequential(packets, 1, decode.Options{})
		if len(want) < 100 {
			t.Fatalf("%d transactions", len(want))
		}
		fabrics := strings.Join(want, "\n")
		for _, f := range []string{" rocev2 ", " tcp ", " udp "} {
			if !strings.Contains(fabrics, f) {
				t.Errorf("nothing over%s", f)
			}
		}
		for _, batch := range []int{1, 7, 1000} {
			for _, concurrent := range []bool{false, true} {
				got, stats := run(t, packets, batch, decode.Options{Concurrent: concurrent})
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, batches of %d, concurrent %v: other output", seed, batch, concurrent)
				}
				if stats.Packets != uint64(len(packets)) || stats.Transactions != uint64(len(got)) || stats.BadICRC != 0 {
					t.Errorf("%+v", stats)
				}
			}
		}
		if !slices.Equal(sequential(packets, 50, decode.Options{}), want) {
			t.Error("batches matter")
		}
	}
}

// TestFrames decodes what the model sent from its Ethernet frames.
func TestFrames(t *testing.T) {
	traffic := rocetest.Make(rocetest.Config{Seed: 5, CM: true, Connections: 2, Callbacks: 3})
	packets := rocetest.Frames(traffic.Taps[1])
	out, stats := run(t, packets, 64, decode.Options{})
	if len(out) != len(traffic.Transactions) || stats.GoodICRC != uint64(len(packets)) || stats.Connections != 2 {
		t.Errorf("%d transactions, %+v", len(out), stats)
	}
	for _, l := range out {
		if !strings.Contains(l, "complete") {
			t.Error(l)
		}
	}
}

// TestSuperPackets joins packets as segmentation offload shows them: it makes no difference except for their
// numbers.
func TestSuperPackets(t *testing.T) {
	traffic := rocetest.Make(rocetest.Config{Seed: 6, CM: true, Data: 60000, Transfer: 65536, Kinds: []rocetest.Kind{rocetest.ReadData, rocetest.WriteData, rocetest.LongReply}})
	records := traffic.Taps[0]
	super, joined := rocetest.Join(records, 16)
	if joined == 0 {
		t.Fatal("nothing joined")
	}
	type facts struct {
		xid                          uint32
		reads, writes                int
		readBytes, writeBytes, again uint64
		state                        transaction.State
	}
	collect := func(packets []capture.Packet) (list []facts, bytes uint64, stats decode.Stats) {
		d := decode.New(decode.Options{Observers: []decode.Observer{{Closed: func(c *rdma.Connection) { bytes += c.Sent[0].Bytes + c.Sent[1].Bytes }}}}, func(tx *transaction.Transaction) {
			list = append(list, facts{tx.XID, tx.Reads, tx.Writes, tx.ReadBytes, tx.WriteBytes, uint64(tx.Retransmits), tx.State})
		})
		if err := d.Run(&slice{packets: packets, batch: 100}); err != nil {
			t.Error(err)
		}
		return list, bytes, d.Stats()
	}
	a, bytesA, statsA := collect(rocetest.Frames(records))
	b, bytesB, statsB := collect(super)
	if !slices.Equal(a, b) {
		t.Errorf("joined:\n%v\nwant\n%v", b, a)
	}
	if bytesA != bytesB || statsA.GoodICRC != statsB.GoodICRC || statsB.BadICRC != 0 || statsB.Packets >= statsA.Packets {
		t.Errorf("%d bytes, %+v; want %d, %+v", bytesB, statsB, bytesA, statsA)
	}
}

func TestStop(t *testing.T) {
	packets := mixed(1)
	for _, batch := range []int{1, 1000} {
		var d *decode.Decoder
		n := 0
		d = decode.New(decode.Options{Observers: []decode.Observer{{Packet: func(*decode.PacketView) {
			if n++; n == 10 {
				d.Stop()
			}
		}}}}, func(*transaction.Transaction) {})
		if err := d.Run(&slice{packets: packets, batch: batch}); err != nil {
			t.Error(err)
		}
		if n != 10 || d.Stats().Packets != 10 {
			t.Errorf("%d packets after Stop at 10, %+v", n, d.Stats())
		}
	}
}

// TestReadError returns what ended the reading, after all that came before.
func TestReadError(t *testing.T) {
	wrong := errors.New("disk on fire")
	count := 0
	d := decode.New(decode.Options{}, func(*transaction.Transaction) { count++ })
	if err := d.Run(&slice{packets: mixed(1), batch: 9, err: wrong}); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
	if count < 100 {
		t.Errorf("%d transactions", count)
	}
}

// TestViews looks at each packet.
func TestViews(t *testing.T) {
	packets := mixed(2)
	n, known := 0, 0
	d := decode.New(decode.Options{Observers: []decode.Observer{{Packet: func(v *decode.PacketView) {
		n++
		if v.Packet.Number != uint64(n) {
			t.Fatalf("packet %d is number %d", n, v.Packet.Number)
		}
		if v.Connection != nil {
			known++
			if v.Connection.ID == 0 {
				t.Errorf("packet %d on a connection without a number", n)
			}
		}
		if v.Fabric == rdma.RoCEv2 && len(v.RoCE) != 1 {
			t.Errorf("packet %d holds %d", n, len(v.RoCE))
		}
	}}}}, func(*transaction.Transaction) {})
	if err := d.Run(&slice{packets: packets, batch: 100}); err != nil {
		t.Error(err)
	}
	if n != len(packets) || known < n*9/10 {
		t.Errorf("%d packets, connection of %d known", n, known)
	}
}

// TestMergedConnections: where a capture begins in the middle, connections that turn out to be parts of others do not count.
func TestMergedConnections(t *testing.T) {
	merged := 0
	for _, name := range []string{"rocev2-nfs3-bulk.pcap.zst", "rocev2-nfs3-longcall.pcap", "rocev2-nfs41-recall.pcap"} {
		packets := load(t, "../samples/"+name)
		for _, trackers := range []int{0, 4} {
			closed, last := 0, 0
			d := decode.New(decode.Options{Trackers: trackers, Observers: []decode.Observer{{Closed: func(c *rdma.Connection) {
				last = max(last, c.ID)
				if c.MergedInto == nil {
					closed++
				}
			}}}}, func(*transaction.Transaction) {})
			if err := d.Run(&slice{packets: packets[len(packets)/2:], batch: 100}); err != nil {
				t.Error(err)
			}
			if n := d.Stats().Connections; n != closed {
				t.Errorf("%s: %d connections, %d closed", name, n, closed)
			}
			merged += last - closed
		}
	}
	if merged == 0 {
		t.Error("none was merged")
	}
}

// TestOrderOfClosing closes connections in the order of their beginnings.
func TestOrderOfClosing(t *testing.T) {
	var ids []int
	d := decode.New(decode.Options{Observers: []decode.Observer{{Closed: func(c *rdma.Connection) { ids = append(ids, c.ID) }}}}, func(*transaction.Transaction) {})
	if err := d.Run(&slice{packets: mixed(3), batch: 100}); err != nil {
		t.Error(err)
	}
	if len(ids) < 5 || d.Stats().Connections != len(ids) {
		t.Errorf("closed %v of %d", ids, d.Stats().Connections)
	}
	seen := make(map[int]bool)
	for _, id := range ids {
		if id == 0 || seen[id] {
			t.Errorf("closed %v", ids)
		}
		seen[id] = true
	}
}

// eth is an Ethernet frame with IPv4.
func eth(side int, proto byte, payload []byte) []byte {
	b := []byte{2, 0, 0, 0, 0, byte(2 - side), 2, 0, 0, 0, 0, byte(1 + side), 8, 0, 0x45, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(20+len(payload)))
	b = append(b, 0, 0, 0x40, 0, 64, proto, 0, 0)
	b = append(b, 192, 0, 2, byte(2-side), 192, 0, 2, byte(1+side))
	return append(b, payload...)
}

func packet(time int64, data []byte) capture.Packet {
	return capture.Packet{Time: time, Link: capture.LinkEthernet, Length: uint32(len(data)), Data: data}
}

// rpc is an RPC call (of MOUNT) or its reply.
func rpc(xid uint32, reply bool, body int) []byte {
	words := []uint32{xid, 0, 2, 100005, 3, 1, 0, 0, 0, 0}
	if reply {
		words = []uint32{xid, 1, 0, 0, 0, 0}
	}
	var b []byte
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return append(b, make([]byte, body)...)
}

// udpTalk is RPC over UDP; every tenth call is sent twice.
func udpTalk(start int64, n int) (out []capture.Packet) {
	datagram := func(side int, payload []byte) []byte {
		ports := [2]uint16{713, 635}
		b := binary.BigEndian.AppendUint16(nil, ports[side])
		b = binary.BigEndian.AppendUint16(b, ports[1-side])
		b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
		return eth(side, 17, append(append(b, 0, 0), payload...))
	}
	for i := range n {
		at := start + int64(i)*7001
		xid := uint32(0x5000 + i)
		out = append(out, packet(at, datagram(0, rpc(xid, false, 40))))
		if i%10 == 0 {
			out = append(out, packet(at+200, datagram(0, rpc(xid, false, 40))))
		}
		out = append(out, packet(at+500, datagram(1, rpc(xid, true, 80))))
	}
	return out
}

// tcpTalk is RPC over TCP: a connection from beginning to end.
func tcpTalk(start int64, n int) (out []capture.Packet) {
	seq := [2]uint32{1000, 0xffffff00} // one wraps
	at := start
	segment := func(side int, flags byte, payload []byte) {
		ports := [2]uint16{713, 2049}
		b := binary.BigEndian.AppendUint16(nil, ports[side])
		b = binary.BigEndian.AppendUint16(b, ports[1-side])
		b = binary.BigEndian.AppendUint32(b, seq[side])
		b = binary.BigEndian.AppendUint32(b, seq[1-side])
		b = append(b, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0)
		at += 1009
		out = append(out, packet(at, eth(side, 6, append(b, payload...))))
		seq[side] += uint32(len(payload))
		if flags&3 != 0 {
			seq[side]++
		}
	}
	record := func(b []byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(b))), b...)
	}
	segment(0, 2, nil)
	segment(1, 0x12, nil)
	segment(0, 0x10, nil)
	for i := range n {
		xid := uint32(0x9000 + i)
		call := record(rpc(xid, false, 2000))
		segment(0, 0x10, call[:1400])
		segment(0, 0x18, call[1400:])
		segment(1, 0x18, record(rpc(xid, true, 100)))
		segment(0, 0x10, nil)
	}
	segment(0, 0x11, nil)
	segment(1, 0x11, nil)
	segment(0, 0x10, nil)
	return out
}

func TestTCP(t *testing.T) {
	out, stats := run(t, number(tcpTalk(1e18, 30)), 10, decode.Options{})
	if len(out) != 30 || stats.Connections != 1 {
		t.Fatalf("%d transactions on %d connections", len(out), stats.Connections)
	}
	for i, l := range out {
		// Three packets of the setup, four of each call.
		want := fmt.Sprintf("call %d-%d reply %d-%d", 4+4*i, 5+4*i, 6+4*i, 6+4*i)
		if !strings.Contains(l, want) || !strings.Contains(l, "complete []") {
			t.Errorf("%s\nwant %s", l, want)
		}
	}
}

// TestTCPAgain makes another connection between the same ports.
func TestTCPAgain(t *testing.T) {
	packets := append(tcpTalk(1e18, 5), tcpTalk(1e18+1e10, 5)...)
	out, stats := run(t, number(packets), 10, decode.Options{})
	if len(out) != 10 || stats.Connections != 2 || !strings.HasPrefix(out[9], "#2 ") {
		t.Errorf("%d transactions on %d connections", len(out), stats.Connections)
	}
}

// TestOtherTCP does not number connections that carry none of ours, and holds
// no memory for them.
func TestOtherTCP(t *testing.T) {
	var packets []capture.Packet
	for i := range 3000 {
		b := binary.BigEndian.AppendUint16(nil, uint16(10000+i%20))
		b = binary.BigEndian.AppendUint16(b, 443)
		b = binary.BigEndian.AppendUint32(b, uint32(1+i*3000)) // with holes
		b = append(b, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0)
		payload := bytes.Repeat([]byte{byte(i), 0xa5, byte(i >> 8), 0x17}, 250)
		packets = append(packets, packet(int64(i)*1000, eth(0, 6, append(b, payload...))))
	}
	packets = append(packets, tcpTalk(int64(len(packets))*1000, 5)...)
	out, stats := run(t, number(packets), 100, decode.Options{TCP: decode.TCPLimits{Connections: 8}})
	if len(out) != 5 || stats.Connections != 1 {
		t.Errorf("%d transactions on %d connections", len(out), stats.Connections)
	}
}

func TestUDP(t *testing.T) {
	out, stats := run(t, number(udpTalk(1e18, 30)), 10, decode.Options{})
	if len(out) != 30 || stats.Connections != 1 {
		t.Errorf("%d transactions on %d connections", len(out), stats.Connections)
	}
	again := 0
	for _, l := range out {
		if !strings.Contains(l, "complete") {
			t.Error(l)
		}
		if strings.Contains(l, "again 1 ") {
			again++
		}
	}
	if again != 3 {
		t.Errorf("%d calls sent again, want 3", again)
	}
}

// TestManyPorts has more pairs of UDP ports than are followed.
func TestManyPorts(t *testing.T) {
	var packets []capture.Packet
	for i := range 20_000 {
		b := binary.BigEndian.AppendUint16(nil, uint16(i))
		b = binary.BigEndian.AppendUint16(b, uint16(2000+i/1000))
		m := rpc(uint32(i), false, 8)
		b = binary.BigEndian.AppendUint16(b, uint16(8+len(m)))
		packets = append(packets, packet(int64(i)*1000, eth(0, 17, append(append(b, 0, 0), m...))))
	}
	out, stats := run(t, number(packets), 100, decode.Options{})
	if len(out) < 19_000 || stats.Connections != len(out) {
		t.Errorf("%d transactions on %d pairs of ports", len(out), stats.Connections)
	}
}

// TestNoAllocations decodes a batch without one, once the memory is there, also of packets in tunnels.
func TestNoAllocations(t *testing.T) {
	traffic := rocetest.Make(rocetest.Config{Seed: 1, CM: true, StayOpen: true, Calls: 3000, Kinds: []rocetest.Kind{rocetest.Small, rocetest.ReadData, rocetest.WriteData}, Data: 4000})
	bare := rocetest.Frames(traffic.Taps[0])
	bare = append(bare, number(udpTalk(traffic.Config.Start, 2000))...)
	noAllocations(t, "bare", bare)
	for _, k := range wrap.Kinds(0x155) {
		if slices.Contains([]string{"vxlan", "erspan3", "gre-ip", "ppp"}, k.Name) {
			noAllocations(t, k.Name, wrapped(bare, k, 7, 0))
		}
	}
}

func noAllocations(t *testing.T, name string, packets []capture.Packet) {
	t.Helper()
	d := decode.New(decode.Options{}, func(*transaction.Transaction) {})
	var b capture.Batch
	at := 0
	feed := func() {
		b.Packets = packets[at : at+50]
		d.Batch(&b)
		at += 50
	}
	for at < len(packets)*3/4 {
		feed()
	}
	least := 1e9
	for range (len(packets) - at) / 150 {
		least = min(least, testing.AllocsPerRun(1, feed))
	}
	if least != 0 {
		t.Errorf("%s: %v allocations for 50 packets", name, least)
	}
}

// FuzzDecoder decodes whole files: nothing may panic, or grow without bounds.
func BenchmarkDecoder(b *testing.B) {
	for _, l := range []struct {
		name   string
		config rocetest.Config
	}{
		{"small RPCs", rocetest.Config{Seed: 1, CM: true, Calls: 5000, Kinds: []rocetest.Kind{rocetest.Small}}},
		{"4 KiB packets", rocetest.Config{Seed: 1, CM: true, Calls: 100, MTU: 4096, Data: 1 << 20, Transfer: 1 << 20, Segment: 1 << 17, Kinds: []rocetest.Kind{rocetest.ReadData}}},
	} {
		b.Run(l.name, func(b *testing.B) {
			packets := rocetest.Frames(rocetest.Make(l.config).Taps[0])
			size := 0
			for i := range packets {
				size += len(packets[i].Data)
			}
			b.SetBytes(int64(size))
			n := 0
			for b.Loop() {
				d := decode.New(decode.Options{}, func(*transaction.Transaction) {})
				s := &slice{packets: packets, batch: 256}
				var batch capture.Batch
				for s.Read(&batch) == nil {
					d.Batch(&batch)
				}
				d.Flush()
				n += len(packets)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/packet")
		})
	}
}
