package iwarp

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// recorder is a Handler that records its calls.
type recorder struct {
	log       []string // operations, without packet numbers
	refs      []string // what concerns single packets
	sends     []gotSend
	events    map[rdma.Event]int
	acked     []uint64
	again     int
	sendAgain int
	opAgain   int
	closed    int
	quiet     bool
}

type gotSend struct {
	from        rdma.Side
	data        []byte
	length      int
	first, last uint64
	packets     int
	again       int
}

func newRecorder() *recorder {
	return &recorder{events: map[rdma.Event]int{}}
}

func (r *recorder) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func sum(b []byte) uint64 {
	return uint64(checksum(b))<<32 | uint64(crc32.ChecksumIEEE(b))
}

func (r *recorder) Send(c *rdma.Connection, s *rdma.Send) rdma.Tag {
	if r.quiet {
		return rdma.Tag{}
	}
	r.note("send %d %d/%d %x inv=%v %x se=%v", s.From, len(s.Data), s.Length, sum(s.Data), s.Invalidates, s.Handle, s.Solicited)
	r.sends = append(r.sends, gotSend{s.From, append([]byte(nil), s.Data...), s.Length, s.First.Number, s.Last.Number, s.Packets, s.Again})
	return rdma.Tag{W0: uint64(len(r.sends))}
}

func (r *recorder) SendAgain(c *rdma.Connection, from rdma.Side, tag rdma.Tag, ref rdma.Ref, complete bool) {
	r.sendAgain++
	r.refs = append(r.refs, fmt.Sprintf("again send %d packet %d complete %v", tag.W0, ref.Number, complete))
}

func (r *recorder) SendAcked(c *rdma.Connection, from rdma.Side, tag rdma.Tag, ref rdma.Ref) {
	if r.quiet {
		return
	}
	r.acked = append(r.acked, tag.W0)
	r.refs = append(r.refs, fmt.Sprintf("acked send %d packet %d", tag.W0, ref.Number))
}

func (r *recorder) OpStart(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	if r.quiet {
		return
	}
	op.Tag = rdma.Tag{W0: uint64(op.Handle), W1: 1}
	if op.Kind == rdma.Read {
		r.note("read %d handle=%x offset=%x length=%d", op.From, op.Handle, op.Offset, op.Length)
		return
	}
	r.note("write %d handle=%x offset=%x", op.From, op.Handle, op.Offset)
}

func (r *recorder) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	if r.quiet {
		return
	}
	if op.Tag != (rdma.Tag{W0: uint64(op.Handle), W1: 1}) {
		r.note("lost the tag of %x", op.Handle)
	}
	if f.Again {
		r.again++
		r.refs = append(r.refs, fmt.Sprintf("again kind %d offset %x length %d packet %d", op.Kind, f.Offset, f.Length, f.Ref.Number))
		return
	}
	r.note("data %d kind=%d offset=%x %d/%d %x last=%v total=%d", op.From, op.Kind, f.Offset, len(f.Data), f.Length, sum(f.Data), f.Last, op.Length)
}

func (r *recorder) OpAgain(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	r.opAgain++
	r.refs = append(r.refs, fmt.Sprintf("again read %x packet %d", op.Handle, ref.Number))
}

func (r *recorder) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	r.events[e]++
}
func (r *recorder) Merged(*rdma.Connection, rdma.Side, *rdma.Connection, rdma.Side) {}
func (r *recorder) Closed(c *rdma.Connection, ref rdma.Ref) {
	r.closed++
}
func (r *recorder) FindCall(c *rdma.Connection, xid uint32) (rdma.Side, bool) { return 0, false }

// peer builds one direction of an iWARP connection.
type peer struct {
	crc, markers bool
	mulpdu       int // largest ULPDU
	stream       []byte
	base         int   // length of the MPA frame
	starts       []int // offset of each FPDU
	messages     []int // offset of each message's first FPDU
	msn          [4]uint32
}

func newPeer(crc, markers bool, mulpdu int) *peer {
	return &peer{crc: crc, markers: markers, mulpdu: mulpdu}
}

func (p *peer) mpa(f *MPAFrame) {
	p.stream = f.Append(p.stream)
	p.base = len(p.stream)
}

func (p *peer) ulpdu(u []byte) {
	p.starts = append(p.starts, len(p.stream))
	if p.markers {
		p.stream = AppendMarkedFPDU(p.stream, u, p.crc, uint64(len(p.stream)-p.base))
		return
	}
	p.stream = AppendFPDU(p.stream, u, p.crc)
}

func (p *peer) untagged(op Opcode, stag uint32, payload []byte) {
	p.messages = append(p.messages, len(p.stream))
	qn := op.Queue()
	p.msn[qn]++
	for mo := 0; ; {
		n := min(p.mulpdu-UntaggedLen, len(payload)-mo)
		last := mo+n == len(payload)
		u := AppendUntagged(nil, NewControl(op, last), stag, p.msn[qn], uint32(mo))
		p.ulpdu(append(u, payload[mo:mo+n]...))
		mo += n
		if last {
			return
		}
	}
}

func (p *peer) tagged(op Opcode, stag uint32, to uint64, payload []byte) {
	p.messages = append(p.messages, len(p.stream))
	for at := 0; ; {
		n := min(p.mulpdu-TaggedLen, len(payload)-at)
		last := at+n == len(payload)
		u := AppendTagged(nil, NewControl(op, last), stag, to+uint64(at))
		p.ulpdu(append(u, payload[at:at+n]...))
		at += n
		if last {
			return
		}
	}
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	r.Read(b)
	return b
}

// scenario is a connection with traffic of all kinds.
type scenario struct {
	peers [2]*peer
	// order is the order in which the two streams depend on each other: the
	// direction dir may send up to to once the other has sent up to after.
	order []step
}

type step struct {
	dir, to int
}

type setup struct {
	crc     bool
	markers [2]bool // in the stream of that direction
	mulpdu  int
	big     int // largest payload
	n       int // messages
}

// newScenario makes traffic as NFS has it: calls, Reads, Writes, replies.
func newScenario(r *rand.Rand, s setup) *scenario {
	x := &scenario{}
	x.peers[0] = newPeer(s.crc, s.markers[0], s.mulpdu)
	x.peers[1] = newPeer(s.crc, s.markers[1], s.mulpdu)
	private := rdma.PrivateData{RemoteInvalidate: true, SendSize: 4096, ReceiveSize: 4096}
	done := func(dir int) { x.order = append(x.order, step{dir, len(x.peers[dir].stream)}) }
	x.peers[0].mpa(&MPAFrame{Revision: 2, Enhanced: true, IRD: 128, CRC: s.crc, Markers: s.markers[1], Private: private.Append(nil)})
	done(0)
	x.peers[1].mpa(&MPAFrame{Reply: true, Revision: 2, Enhanced: true, ORD: 128, CRC: s.crc, Markers: s.markers[0], Private: private.Append(nil)})
	done(1)
	sends := []Opcode{OpSend, OpSendInvalidate, OpSendSolicited, OpSendSolicitedInvalidate}
	for range s.n {
		op := sends[r.Intn(len(sends))]
		stag := uint32(0)
		if op.Invalidates() {
			stag = r.Uint32()
		}
		x.peers[0].untagged(op, stag, random(r, 1+r.Intn(s.big)))
		done(0)
		type read struct {
			stag uint32
			to   uint64
			n    int
		}
		var reads []read
		for range r.Intn(4) {
			// The sink STag is shared by all Reads, as Linux has it.
			q := read{7, r.Uint64() >> 1, r.Intn(s.big)}
			reads = append(reads, q)
			x.peers[1].untagged(OpReadRequest, 0, AppendReadRequest(nil, q.stag, q.to, uint32(q.n), r.Uint32(), r.Uint64()>>1))
		}
		done(1)
		for _, q := range reads {
			x.peers[0].tagged(OpReadResponse, q.stag, q.to, random(r, q.n))
		}
		done(0)
		for range r.Intn(3) {
			x.peers[1].tagged(OpWrite, r.Uint32(), r.Uint64()>>1, random(r, r.Intn(s.big)))
		}
		x.peers[1].untagged(sends[r.Intn(2)], 0, random(r, 1+r.Intn(s.big)))
		done(1)
	}
	return x
}

func connection() *rdma.Connection {
	return &rdma.Connection{ID: 1, Ends: [2]rdma.End{
		{Addr: netip.MustParseAddr("192.0.2.2"), Port: 40000},
		{Addr: netip.MustParseAddr("192.0.2.1"), Port: 20049},
	}}
}

// reference is what the scenario is decoded to without any trouble: each FPDU whole, in its own segment.
func (x *scenario) reference(t testing.TB) *recorder {
	t.Helper()
	r := newRecorder()
	c := NewTracker(r, Options{}).New(connection())
	c.halves[0].sure, c.halves[1].sure = true, true
	var at [2]int
	n := uint64(0)
	for _, s := range x.order {
		p := x.peers[s.dir]
		for at[s.dir] < s.to {
			end := s.to
			for _, b := range p.starts {
				if b > at[s.dir] {
					end = min(end, b)
					break
				}
			}
			n++
			c.halves[s.dir].data(p.stream[at[s.dir]:end:end], rdma.Ref{Time: int64(n), Number: n})
			at[s.dir] = end
		}
	}
	c.Close("", rdma.Ref{})
	for _, k := range c.c.Sent {
		if k.BadCRC != 0 {
			t.Fatalf("%d wrong CRCs", k.BadCRC)
		}
	}
	return r
}

func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
