package fabric

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// congestion is the state of the packets that one side sends.
type congestion struct {
	first   rdma.Ref // the first marked packet since the last CNP
	lastCNP rdma.Ref // that went to this side
	pace    int64    // time between two packets of a transfer while no CNP has come, in 1/16 ns
	limited bool     // a CNP has come, and the usual pace has not come back since
	steady  uint8    // packets in a row at the usual pace

	begun, newest int64 // first and latest packet with payload
	bytes         uint64
}

// congested records marks, CNPs and rates.
func (r *Recorder) congested(k *conn, s *rdma.Sighting, again bool) {
	if r.opt.Lean {
		if s.Class == rdma.ClassCNP {
			m := &k.marks[s.From.Other()]
			m.limited, m.steady = true, 0
		}
		return
	}
	r.series.add(s, again)
	if s.Marked {
		r.totals.Marked++
		if m := &k.marks[s.From]; !m.first.Seen() {
			m.first = s.Ref
		}
	}
	r.totals.Packets++
	r.totals.Bytes += uint64(s.Bytes)
	r.after.sent(&k.marks[s.From], s)
	if s.Class != rdma.ClassCNP {
		return
	}
	r.totals.CNPs++
	m := &k.marks[s.From.Other()] // whose packets were marked
	m.limited, m.steady = true, 0
	r.after.reacted(m, s.Ref.Time)
	if d, ok := between(m.first, s.Ref); ok {
		r.samples.Add(&r.markToCNP, int64(d))
		m.first = rdma.Ref{}
	} else {
		r.totals.UnmarkedCNPs++
	}
	if d, ok := between(m.lastCNP, s.Ref); ok {
		r.samples.Add(&r.cnpConn, int64(d))
	}
	m.lastCNP = s.Ref
	to, from := k.c.Ends[s.From.Other()].Addr, k.c.Ends[s.From].Addr
	r.cnpWithin(cnpScope{tenant: k.c.Tenant, from: from, to: to}, s.Ref, &r.cnpAddr)
	r.cnpWithin(cnpScope{tenant: k.c.Tenant, from: from}, s.Ref, &r.cnpPort)
}

// cnpScope is what a receiver may limit CNPs by: its address, with or without the address that they go to.
// Equal addresses of two tenants are two adapters.
type cnpScope struct {
	tenant   uint64
	from, to netip.Addr
}

// cnpWithin records the time since the last CNP of a scope.
func (r *Recorder) cnpWithin(scope cnpScope, now rdma.Ref, intervals *latency.Sampler) {
	at, ok := r.cnpAt[scope]
	if !ok && len(r.cnpAt) >= maxAddresses {
		return
	}
	if d, ok := between(at, now); ok {
		r.samples.Add(intervals, int64(d))
	}
	r.cnpAt[scope] = now
}

// maxAddresses is how many senders of CNPs, and pairs of addresses, are distinguished.
const maxAddresses = 1024

// Congestion is the part of the report about marks and CNPs.
type Congestion struct {
	Marked uint64  `json:"marked"`
	Share  float64 `json:"marked_share"` // of all packets
	CNPs   uint64  `json:"cnps"`
	// WithoutMark counts the CNPs without a marked packet since the previous CNP: the packet was
	// marked behind the capture point, or several CNPs were sent for one mark.
	WithoutMark uint64 `json:"cnps_without_mark"`
	// MarkToCNP is from the first marked packet since the last CNP to the CNP.
	MarkToCNP *latency.Distribution `json:"mark_to_cnp,omitempty"`
	// The time between two CNPs: to one side of a connection, from one address
	// to another, and from one address. A receiver that limits CNPs shows its limit as the
	// minimum of the scope that it limits.
	PerConnection *latency.Distribution `json:"cnp_interval_connection,omitempty"`
	PerAddresses  *latency.Distribution `json:"cnp_interval_addresses,omitempty"`
	PerSender     *latency.Distribution `json:"cnp_interval_sender,omitempty"`
	// Limited is the scope in which CNPs keep a minimum distance: "connection", "addresses" or
	// "sender"; empty if the minimum is the same for several of them, or there are too few CNPs.
	Limited string `json:"cnps_limited_by"`
	// Reaction is how much the sides that got CNPs sent, by the time since the last one; the
	// first entry is before any CNP. Rates are bytes a second.
	Reaction []Rate `json:"reaction"`
	// Pauses are the frames of Ethernet flow control, by priority.
	Pauses []Pause `json:"pauses"`
}

func (r *Recorder) congestionReport() Congestion {
	c := Congestion{Marked: r.totals.Marked, CNPs: r.totals.CNPs, WithoutMark: r.totals.UnmarkedCNPs}
	if r.totals.Packets > 0 {
		c.Share = float64(c.Marked) / float64(r.totals.Packets)
	}
	get := func(s *latency.Sampler) *latency.Distribution {
		if s.Count() == 0 {
			return nil
		}
		return s.Distribution()
	}
	c.Limited, c.Reaction, c.Pauses = r.limited(), r.after.report(), r.pauses.report()
	c.MarkToCNP, c.PerConnection, c.PerAddresses, c.PerSender = get(&r.markToCNP), get(&r.cnpConn), get(&r.cnpAddr), get(&r.cnpPort)
	return c
}

// Interval is a part of the capture's time.
type Interval struct {
	Start   int64  `json:"start_ns"` // since the first packet
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Marked  uint64 `json:"marked"`
	CNPs    uint64 `json:"cnps"`
	Again   uint64 `json:"again"`  // packets that were seen again
	NAKs    uint64 `json:"naks"`   // RNR NAKs included
	Pauses  uint64 `json:"pauses"` // frames of flow control that stop something
}

const (
	maxIntervals  = 512
	firstInterval = 1_000_000 // nanoseconds; it doubles when there are too many
)

// series counts over time.
type series struct {
	begun   bool
	fixed   bool // the user has asked for the length
	coarser bool
	start   int64
	length  int64
	list    []Interval
}

func (x *series) add(s *rdma.Sighting, again bool) {
	v := x.at(s.Ref.Time)
	v.Packets++
	v.Bytes += uint64(s.Bytes)
	if s.Marked {
		v.Marked++
	}
	switch s.Class {
	case rdma.ClassCNP:
		v.CNPs++
	case rdma.ClassNAK, rdma.ClassRNR:
		v.NAKs++
	}
	if again {
		v.Again++
	}
}

// at is the interval that a time is in.
func (x *series) at(ns int64) *Interval {
	if !x.begun {
		x.begun, x.start = true, ns
		if x.length == 0 {
			x.length = firstInterval
		}
		x.list = make([]Interval, 0, maxIntervals)
	}
	at := max(ns-x.start, 0)
	for at/x.length >= maxIntervals {
		x.halve()
	}
	i := int(at / x.length)
	for len(x.list) <= i {
		x.list = append(x.list, Interval{})
	}
	return &x.list[i]
}

// halve joins pairs of intervals.
func (x *series) halve() {
	x.coarser = x.coarser || x.fixed
	n := (len(x.list) + 1) / 2
	for i := range n {
		v := x.list[2*i]
		if 2*i+1 < len(x.list) {
			w := &x.list[2*i+1]
			v.Packets += w.Packets
			v.Bytes += w.Bytes
			v.Marked += w.Marked
			v.CNPs += w.CNPs
			v.Again += w.Again
			v.NAKs += w.NAKs
			v.Pauses += w.Pauses
		}
		x.list[i] = v
	}
	x.list = x.list[:n]
	if x.length > 1<<61 {
		x.length = 1<<63 - 1
	} else {
		x.length *= 2
	}
}

// Series is the traffic over time. Intervals after the last packet are omitted.
type Series struct {
	Length    int64      `json:"interval_ns"`
	Coarser   bool       `json:"coarser"` // intervals had to become longer than asked for
	Intervals []Interval `json:"intervals"`
}

func (x *series) report() Series {
	s := Series{Length: x.length, Coarser: x.coarser, Intervals: append([]Interval{}, x.list...)}
	for i := range s.Intervals {
		s.Intervals[i].Start = int64(i) * x.length
	}
	return s
}
