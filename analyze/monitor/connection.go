package monitor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Connection is a connection in a listing. Client is the side that sends
// forward calls.
type Connection struct {
	ID          int
	Fabric      string
	State       string // open, connecting, closed, rejected
	Ending      string // why it ended
	Client      Peer
	Server      Peer
	MTU         uint32 // bytes; 0 if unknown
	InlineCall  uint32 // inline thresholds; 0 if the setup was not captured
	InlineReply uint32
	Tunnel      *rdma.Tunnel // outermost wrapping of its packets; nil if they have none
	Tally                    // of all its transactions
	Now         Tally        // of the latest complete interval, even if the connection has ended in it
	// Credits of the forward direction: requested in the latest call and granted in the latest reply, both 0
	// if not seen; in use by unanswered calls.
	Asked, Granted uint32
	Used           int
	Backward       int // calls of the server without a reply
	Stuck          int
	Models         []ModelShare // how transactions were transferred, most frequent first
}

// Peer is one end of a connection.
type Peer struct {
	Address     string
	Endpoint    string // "QP 0x11", "port 20049"
	Packets     uint64
	Bytes       uint64
	Retransmits uint64
	NAKs        uint64
	RNRs        uint64
	CNPs        uint64
	ECN         uint64
	Gaps        uint64
	BadCRC      uint64
}

// ModelShare is how many transactions were transferred in one way.
type ModelShare struct {
	Model string
	Count uint64
}

// Health sums up the transport troubles of all connections.
type Health struct {
	Retransmits uint64 // retransmitted packets
	NAKs        uint64
	RNRs        uint64
	CNPs        uint64
	ECN         uint64
	Gaps        uint64 // packets (RoCE) or bytes (TCP) missing from the capture
	BadCRC      uint64
}

func (h *Health) add(c *rdma.Connection) {
	for i := range c.Sent {
		n := &c.Sent[i]
		h.Retransmits += n.Retransmitted
		h.NAKs += n.NAKs
		h.RNRs += n.RNRs
		h.CNPs += n.CNPs
		h.ECN += n.ECN
		h.Gaps += n.Gaps
		h.BadCRC += n.BadCRC
	}
}

// conn is the state of one connection.
type conn struct {
	c *rdma.Connection

	total          Tally
	cur, now       Tally // of the current interval; of the latest complete one
	place          int   // in connections.all
	touched        int   // in connections.touched, from 1; 0 if it is not there
	asked, granted uint32
	models         []modelCount

	used, backward, stuck int         // at the latest look at open calls
	last                  *Connection // what it was when it ended; its counts may still grow
}

// modelCount is how many transactions were transferred in one way.
type modelCount struct {
	model latency.Model
	count uint64
}

// transferred counts transactions that were transferred in one way.
func (x *conn) transferred(m latency.Model, n uint64) {
	i := slices.IndexFunc(x.models, func(c modelCount) bool { return c.model == m })
	if i < 0 {
		i = len(x.models)
		x.models = append(x.models, modelCount{model: m})
	}
	x.models[i].count += n
}

// connections are the connections with RPC messages.
type connections struct {
	by     map[*rdma.Connection]*conn
	all    []*conn // the same in the order of their beginnings; nil for some that are gone
	limit  int     // of by: maxConnections, or fewer
	byID   map[int]*conn
	last   *conn
	ended  []*conn // latest last
	health Health  // of ended connections
	gone   int     // ended connections
	listed bool    // byID holds all connections
	// touched are those that something was counted of since the end of the latest interval, and
	// shown those of the interval before: most connections do nothing in most intervals. One that is
	// neither followed nor listed any more is not among touched: an interval may see any number of them.
	touched, shown []*conn
}

// touch notes that something is counted.
func (s *connections) touch(x *conn) {
	if x.touched == 0 {
		s.touched = append(s.touched, x)
		x.touched = len(s.touched)
	}
}

func (s *connections) untouch(x *conn) {
	if x.touched == 0 {
		return
	}
	n := len(s.touched) - 1
	last := s.touched[n]
	s.touched[x.touched-1], last.touched = last, x.touched
	s.touched[n] = nil
	s.touched, x.touched = s.touched[:n], 0
}

// see records a connection that carries something.
func (s *connections) see(c *rdma.Connection) {
	if s.last != nil && s.last.c == c {
		return
	}
	x := s.by[c]
	if x == nil {
		if s.by == nil {
			s.by, s.byID = make(map[*rdma.Connection]*conn), make(map[int]*conn)
		}
		if len(s.by) >= s.limit {
			return
		}
		if len(s.all) > 2*len(s.by)+16 {
			s.all = slices.DeleteFunc(s.all, func(x *conn) bool { return x == nil })
			for i, x := range s.all {
				x.place = i
			}
		}
		x = &conn{c: c, place: len(s.all)}
		s.by[c] = x
		s.all = append(s.all, x)
		s.listed = false
	}
	s.last = x
}

// forget removes a connection.
func (s *connections) forget(x *conn) {
	delete(s.by, x.c)
	s.all[x.place] = nil
	if s.byID[x.c.ID] == x {
		delete(s.byID, x.c.ID)
	}
	if s.last == x {
		s.last = nil
	}
}

// of finds the connection of an ended transaction, which holds only a copy.
func (s *connections) of(id int) *conn {
	if s.last != nil && s.last.c.ID == id && s.last.c.MergedInto == nil {
		return s.last
	}
	if x := s.byID[id]; x != nil && x.c.ID == id && x.c.MergedInto == nil {
		return x
	}
	if s.listed {
		return nil
	}
	clear(s.byID)
	for c, x := range s.by {
		if c.MergedInto == nil && c.ID != 0 {
			s.byID[c.ID] = x
		}
	}
	s.listed = true
	return s.byID[id]
}

// add counts an ended transaction.
func (s *connections) add(tx *transaction.Transaction, failed bool, total int64) {
	x := s.of(tx.Connection.ID)
	if x == nil {
		x = s.late(tx.Connection.ID)
	}
	if x == nil {
		return
	}
	s.touch(x)
	for _, t := range [...]*Tally{&x.total, &x.cur} {
		t.one(failed, tx.Call.Bytes+tx.Reply.Bytes, tx.ReadBytes+tx.WriteBytes, total)
	}
	x.transferred(latency.ModelOf(tx), 1)
	if tx.Backward {
		return
	}
	if tx.Call.Seen() && tx.Call.Transport {
		x.asked = tx.Call.Header.Credits
	}
	if tx.Reply.Seen() && tx.Reply.Transport {
		x.granted = tx.Reply.Header.Credits
	}
}

// late finds a connection that has ended, for a transaction that outlived it.
func (s *connections) late(id int) *conn {
	for i := len(s.ended) - 1; i >= 0; i-- {
		if x := s.ended[i]; x.last.ID == id {
			return x
		}
	}
	return nil
}

// roll ends an interval.
func (s *connections) roll() {
	for i, x := range s.shown {
		x.now = Tally{}
		s.shown[i] = nil
	}
	for _, x := range s.touched {
		x.touched = 0
		x.now, x.cur = x.cur, Tally{}
	}
	s.shown, s.touched = s.touched, s.shown[:0]
}

// closed takes a connection at its end.
func (s *connections) closed(c *rdma.Connection) {
	x := s.by[c]
	if x != nil {
		s.forget(x)
	}
	if c.MergedInto != nil {
		if y := s.by[c.Resolve()]; x != nil && y != nil {
			s.touch(y)
			y.merge(x)
		}
		if x != nil {
			s.untouch(x)
		}
		return
	}
	s.health.add(c)
	if x == nil {
		return
	}
	s.gone++
	x.used, x.backward, x.stuck = 0, 0, 0
	m := x.model()
	x.last = &m
	s.ended = append(s.ended, x)
	if len(s.ended) > maxEnded {
		s.untouch(s.ended[0])
		s.ended = slices.Delete(s.ended, 0, 1)
	}
}

// idle finds connections that have become part of others, and clears what the latest look at open calls found.
func (s *connections) idle(counts bool) {
	s.listed = false // connection numbers may have been assigned since
	for _, x := range s.all {
		if x == nil {
			continue
		}
		if counts {
			x.used, x.backward, x.stuck = 0, 0, 0
		}
		if into := x.c.Resolve(); into != x.c {
			// It was merged into another one.
			if y := s.by[into]; y != nil {
				s.touch(y)
				y.merge(x)
			}
			s.forget(x)
			s.untouch(x)
		}
	}
}

func (x *conn) merge(o *conn) {
	x.total.merge(&o.total)
	x.cur.merge(&o.cur)
	x.now.merge(&o.now)
	if x.asked == 0 && x.granted == 0 {
		x.asked, x.granted = o.asked, o.granted
	}
	for _, m := range o.models {
		x.transferred(m.model, m.count)
	}
}

// list describes all connections, ended ones last.
func (s *connections) list() ([]Connection, Health) {
	out := make([]Connection, 0, len(s.by)+len(s.ended))
	h := s.health
	for _, x := range s.all {
		if x != nil && x.c.MergedInto == nil {
			h.add(x.c)
			out = append(out, x.model())
		}
	}
	slices.SortFunc(out, func(a, b Connection) int { return cmp.Compare(a.ID, b.ID) })
	for _, x := range s.ended {
		m := *x.last
		x.count(&m)
		out = append(out, m)
	}
	return out, h
}

func (x *conn) model() Connection {
	c := x.c
	client, _ := transaction.ClientOf(c)
	m := Connection{
		ID: c.ID, Fabric: c.Fabric.String(), State: c.State.String(), Ending: c.Terminated, MTU: c.MTU,
		Client: peer(c, client), Server: peer(c, client.Other()),
		Tunnel: c.Tunnel, Used: x.used, Backward: x.backward, Stuck: x.stuck,
	}
	x.count(&m)
	if c.State == rdma.Established || c.State == rdma.Closed && c.Terminated == "" {
		m.State = "open"
	}
	a, b := &c.Setup[client], &c.Setup[client.Other()]
	if c.Declared(0) && c.Declared(1) && c.Fabric != rdma.TCP && c.Fabric != rdma.UDP {
		m.InlineCall = rdma.InlineThreshold(&a.Private, &b.Private)
		m.InlineReply = rdma.InlineThreshold(&b.Private, &a.Private)
	}
	return m
}

// count sets what has been counted of the connection's transactions.
func (x *conn) count(m *Connection) {
	m.Tally, m.Now, m.Asked, m.Granted, m.Models = x.total, x.now, x.asked, x.granted, nil
	list := slices.Clone(x.models)
	slices.SortFunc(list, func(a, b modelCount) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.model, b.model)) })
	for _, n := range list {
		m.Models = append(m.Models, ModelShare{n.model.String(), n.count})
	}
}

func peer(c *rdma.Connection, side rdma.Side) Peer {
	n, e := &c.Sent[side], &c.Ends[side]
	p := Peer{
		Address: link.AddrString(e.Addr), Endpoint: "QP ?",
		Packets: n.Packets, Bytes: n.Bytes, Retransmits: n.Retransmitted, NAKs: n.NAKs, RNRs: n.RNRs,
		CNPs: n.CNPs, ECN: n.ECN, Gaps: n.Gaps, BadCRC: n.BadCRC,
	}
	switch {
	case e.QPN != 0:
		p.Endpoint = fmt.Sprintf("QP 0x%02x", e.QPN)
	case e.Port != 0:
		p.Endpoint = fmt.Sprintf("port %d", e.Port)
	}
	return p
}
