package fabric

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// BlockedBy is what the packets of a direction have in common that never got through.
type BlockedBy string

// What they have in common.
const (
	BlockedBySize      BlockedBy = "size"      // they are larger than all that got through: a link on the way has a smaller MTU
	BlockedByPort      BlockedBy = "port"      // connections with other UDP source ports go on: one of several paths is broken
	BlockedByDirection BlockedBy = "direction" // they are all packets from then on
	BlockedUnknown     BlockedBy = "unknown"
)

// Blocked is a direction in which packets were sent again and again without an acknowledgement until their
// connections, or the capture, ended.
type Blocked struct {
	From        string    `json:"from"`
	To          string    `json:"to"`
	By          BlockedBy `json:"blocked_by"`
	Connections int       `json:"connections"` // that ended so
	Others      int       `json:"other_connections"`
	Attempts    uint64    `json:"attempts"`         // to send the packets in question
	Least       uint32    `json:"payload_min"`      // of these packets, bytes
	Most        uint32    `json:"payload_max"`      // the same
	Passed      uint32    `json:"payload_received"` // the largest that was acknowledged, bytes
	MTU         uint32    `json:"path_mtu"`         // as the connections use it, bytes; 0 if unknown
	Ports       []uint16  `json:"source_ports"`     // UDP source ports of Connections
	Asked       bool      `json:"read_responses"`   // they are Read Responses that the requester asked for as often; the capture need not have them
}

// outward is what one side sent, as far as it tells which packets get through.
type outward struct {
	least, most uint32 // payload of packets that did not
	passed      uint32 // largest payload that was acknowledged
	attempts    uint64
	any, stuck  bool // something was acknowledged; nothing was at the end
	sent, asked bool // stuck: with requests, with Read Responses
}

func (o *outward) merge(x *outward) {
	if x.attempts > 0 {
		if o.attempts == 0 || x.least < o.least {
			o.least = x.least
		}
		o.most = max(o.most, x.most)
	}
	o.attempts += x.attempts
	o.passed = max(o.passed, x.passed)
	o.any, o.stuck = o.any || x.any, o.stuck || x.stuck
	o.sent, o.asked = o.sent || x.sent, o.asked || x.asked
}

// completed notes that the packets of an operation were received.
func (k *conn) completed(o *Operation) {
	sender, packets, payload := o.From, o.Packets, uint32(min(o.Bytes, 1<<32-1))
	switch o.Kind {
	case rdma.WorkRead:
		sender, packets = sender.Other(), packets-1
	case rdma.WorkAtomic:
		return
	}
	if packets > 1 {
		payload = max(payload/packets, k.c.MTU) // a packet before the last has as much as the MTU allows
	}
	if x := &k.out[sender]; o.Kind != rdma.WorkRead || payload <= x.passed {
		x.any, x.passed = true, max(x.passed, payload)
		return
	}
	a := &k.dirs[o.From].asked
	if a.newest = append(a.newest, response{o.PSN, payload}); len(a.newest) > maxUnproven {
		k.out[sender].take(a.newest[0])
		a.newest = append(a.newest[:0], a.newest[1:]...)
	}
}

// response is Read Responses: their first PSN, and the payload of a packet.
type response struct{ psn, payload uint32 }

// take notes that Read Responses were received.
func (o *outward) take(x response) { o.any, o.passed = true, max(o.passed, x.payload) }

// maxUnproven is how many of the newest Reads of a direction may have been answered without their requester having the answers:
// more are not under way at once.
const maxUnproven = 16

// asked is what a requester asks for again and again, although the capture may have all Read Responses: it does not get them.
type asked struct {
	response            // that the newest of these requests asks for
	attempts uint32     // to get it
	last     uint32     // newest PSN that was asked for again
	high     uint32     // PSN behind the newest request then
	newest   []response // to the newest Reads, larger than all that was received before
}

// repeated notes that a Read was asked for again, from a PSN on.
func (d *direction) repeated(psn uint32) {
	a := &d.asked
	further := a.attempts > 0 && a.high == d.High && rdma.PSNDiff(psn, a.last) > 0
	a.last = psn
	if further {
		return // more of the same attempt
	}
	if a.attempts == 0 || a.psn != psn || a.high != d.High {
		a.attempts, a.response = 1, response{psn: psn}
	}
	a.attempts++
	a.high = d.High
	a.newest = slices.DeleteFunc(a.newest, func(x response) bool { return rdma.PSNDiff(x.psn, psn) >= 0 })
	if !d.hasAnswer || rdma.PSNDiff(d.answered, psn) < 0 {
		return // the request may not have arrived
	}
	for seq := d.open.first; seq < d.open.next; seq++ {
		if o := d.open.at(seq); o != nil && o.Kind == rdma.WorkRead && rdma.PSNDiff(o.PSN, psn) <= 0 {
			a.payload = min(o.Length, o.Connection.MTU)
		}
	}
}

// unread notes at the end of a direction what it asked for last, and what it got.
func (k *conn) unread(side rdma.Side, d *direction) {
	a, o := &d.asked, &k.out[side.Other()]
	for _, x := range a.newest {
		o.take(x)
	}
	if a.attempts < stuckAfter || a.high != d.High || a.payload == 0 {
		return
	}
	o.merge(&outward{least: a.payload, most: a.payload, attempts: uint64(a.attempts), stuck: true, asked: true})
}

// stuckAfter is how many times a packet is sent before a missing acknowledgement counts as a blocked path.
const stuckAfter = 3

// tried notes that a packet was sent again, with its payload.
func (e *Episode) tried(psn, payload uint32) {
	if psn == e.psn {
		e.attempts, e.payload = max(e.attempts, 1)+1, payload
	}
}

// unacknowledged notes an episode that did not end.
func (k *conn) unacknowledged(e *Episode) {
	if e.attempts < stuckAfter || e.Notice == ByRNR || e.Responses { // of responses see unread
		return
	}
	k.out[e.From].merge(&outward{least: e.payload, most: e.payload, attempts: uint64(e.attempts), stuck: true, sent: true})
}

// way is a direction between two hosts.
type way struct {
	tenant   uint64
	from, to netip.Addr
}

// maxPorts is how many UDP source ports of a way are compared.
const maxPorts = 64

// lanes is what the connections of one direction have sent.
type lanes struct {
	sum           outward
	mtu           uint32
	stuck, others int
	ports, passed []uint16 // of connections that are stuck, and of others
}

// sent adds what the sides of a connection sent, at its end.
func (r *Recorder) sent(k *conn) {
	if k.c.Fabric == rdma.IWARP {
		return
	}
	for side := range k.out {
		o := &k.out[side]
		if !o.any && !o.stuck {
			continue
		}
		w := way{k.c.Tenant, k.c.Ends[side].Addr, k.c.Ends[side^1].Addr}
		x := r.ways[w]
		if x == nil {
			if len(r.ways) >= maxAddresses {
				continue
			}
			x = new(lanes)
			r.ways[w] = x
		}
		x.sum.merge(o)
		list := &x.passed
		if o.stuck {
			x.mtu = max(x.mtu, k.c.MTU)
			x.stuck++
			list = &x.ports
		} else {
			x.others++
		}
		if p := k.c.Ports[side]; len(*list) < maxPorts && !slices.Contains(*list, p) {
			*list = append(*list, p)
		}
	}
}

// by is what distinguishes the packets that did not get through.
func (x *lanes) by() BlockedBy {
	apart := func() bool {
		return !slices.ContainsFunc(x.ports, func(p uint16) bool { return slices.Contains(x.passed, p) })
	}
	switch {
	case x.sum.any && x.sum.least > x.sum.passed:
		return BlockedBySize
	case x.others > 0 && len(x.passed) < maxPorts && apart():
		return BlockedByPort
	case x.others == 0:
		return BlockedByDirection
	}
	return BlockedUnknown
}

// blocked are the directions that the report names, in the order of their addresses.
func (r *Recorder) blocked() []Blocked {
	var ways []way
	for w, x := range r.ways {
		if x.stuck > 0 {
			ways = append(ways, w)
		}
	}
	slices.SortFunc(ways, func(a, b way) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), a.from.Compare(b.from), a.to.Compare(b.to))
	})
	list := []Blocked{}
	for _, w := range ways {
		x := r.ways[w]
		slices.Sort(x.ports)
		list = append(list, Blocked{
			From: link.AddrString(w.from), To: link.AddrString(w.to), By: x.by(), Connections: x.stuck, Others: x.others, Attempts: x.sum.attempts,
			Least: x.sum.least, Most: x.sum.most, Passed: x.sum.passed, MTU: x.mtu, Ports: x.ports,
			Asked: x.sum.asked && !x.sum.sent,
		})
	}
	return list
}
