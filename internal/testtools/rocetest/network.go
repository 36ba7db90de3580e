package rocetest

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// network is the simulation: events in the order of time.
type network struct {
	Config
	rng          *rand.Rand
	luck         *rand.Rand // decides what is lost
	now          int64
	seq          int
	events       events
	taps         [2][]Record
	transactions []*Transaction
	resent       int
	handle       uint32
	address      uint64
	spare        []memory // handles and addresses to be used again
}

type memory struct {
	handle uint32
	offset uint64
}

type event struct {
	at  int64
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// after does something d nanoseconds from now.
func (n *network) after(d int64, do func()) {
	n.seq++
	heap.Push(&n.events, event{n.now + d, n.seq, do})
}

// maxEvents ends a simulation that does not come to an end.
const maxEvents = 20_000_000

func (n *network) run() {
	for i := range n.Connections {
		n.connect(i)
	}
	for i := 0; len(n.events) > 0; i++ {
		if i == maxEvents {
			panic("rocetest: the traffic does not end")
		}
		e := heap.Pop(&n.events).(event)
		n.now = e.at
		e.do()
	}
}

func (n *network) chance(p float64) bool { return p > 0 && n.luck.Float64() < p }

// Times in nanoseconds.
const (
	toNear   = 500  // from a host to the capture point beside it
	toFar    = 3000 // from there to that beside the other host
	toHost   = 500
	tooLate  = 4000 // by how much a packet is late that others overtake
	perFrame = 400  // that a host needs to send one
)

// send takes a packet from a host to the other.
func (n *network) send(p *Packet, arrive func(*Packet)) {
	l := &n.Loss
	if n.chance(l.Near) {
		return
	}
	delay := int64(toNear)
	if n.chance(l.Late) {
		delay += tooLate + n.luck.Int64N(tooLate)
	}
	near, far := int(p.From), int(p.From.Other())
	copies := 1
	if n.chance(l.Copied) {
		copies = 2
	}
	for i := range copies {
		at := n.now + delay + int64(i)*50
		n.record(near, at, p)
		if n.chance(l.Middle) {
			continue
		}
		n.record(far, at+toFar, p)
		if n.chance(l.Far) || p.Role == Acknowledge && n.chance(l.AckLost) {
			continue
		}
		n.after(at+toFar+toHost-n.now, func() { arrive(p) })
	}
}

func (n *network) record(tap int, at int64, p *Packet) {
	n.taps[tap] = append(n.taps[tap], Record{Time: at, Tap: uint16(tap), Cut: -1, Packet: p})
}

func (n *network) sorted() [2][]Record {
	for i := range n.taps {
		slices.SortStableFunc(n.taps[i], func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
	}
	return n.taps
}

// Link is a connection between the two hosts.
type Link struct {
	Index int
	Ends  [2]*end
	QPN   [2]uint32
	PSN   [2]uint32

	n      *network
	xid    uint32
	cbXID  uint32
	left   int // calls to be made
	open   map[uint32]*pending
	cbOpen map[uint32]*pending
	cbLeft int
	ended  bool
}

func (n *network) connect(i int) {
	l := &Link{
		Index: i, n: n, left: n.Calls, cbLeft: n.Callbacks,
		xid: n.FirstXID + uint32(i)<<16, open: make(map[uint32]*pending), cbOpen: make(map[uint32]*pending),
	}
	l.cbXID = l.xid + 1<<12
	if n.SameXID {
		l.cbXID = l.xid
	}
	for s := range rdma.Side(2) {
		l.QPN[s] = n.Config.QPN[s] + uint32(i)
		if n.LocalHost && s == 1 {
			l.QPN[s] += 0x1000
		}
		l.PSN[s] = n.Config.PSN[s]
		if l.PSN[s] == 0 {
			l.PSN[s] = n.rng.Uint32() & mask24
		}
		l.PSN[s] &= mask24
	}
	for s := range rdma.Side(2) {
		l.Ends[s] = newEnd(l, s)
	}
	begin := int64(i)*20_000 + n.rng.Int64N(5000)
	if n.CM {
		n.after(begin, func() { l.setup() })
		begin += 60_000
	}
	n.after(begin, func() { l.begin() })
}

const mask24 = 1<<24 - 1

func diff(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

// packet makes a packet of a link.
func (l *Link) packet(from rdma.Side, op roce.Opcode) *Packet {
	p := &Packet{From: from, Link: l, Src: l.n.Addr[from], Dst: l.n.Addr[from.Other()]}
	p.Opcode = op
	p.PKey = roce.DefaultPKey
	p.DestQP = l.QPN[from.Other()]
	p.SrcPort = 0xc000 + uint16(l.QPN[0]*7+l.QPN[1])&0x3fff
	if !l.n.OnePort {
		p.SrcPort += uint16(from) * 97
	}
	return p
}
