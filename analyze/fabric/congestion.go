package fabric

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// congestion is what is known of the packets that one side sends.
type congestion struct {
	first   rdma.Ref // the first marked packet since the last CNP
	lastCNP rdma.Ref // that went to this side
}

// congested takes note of marks, CNPs and rates.
func (r *Recorder) congested(k *conn, s *rdma.Sighting, again bool) {
	r.series.add(s, again)
	if s.Marked {
		r.totals.Marked++
		if m := &k.marks[s.From]; !m.first.Seen() {
			m.first = s.Ref
		}
	}
	r.totals.Packets++
	r.totals.Bytes += uint64(s.Bytes)
	if s.Class != rdma.ClassCNP {
		return
	}
	r.totals.CNPs++
	m := &k.marks[s.From.Other()] // whose packets were marked
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
	pair := [2]netip.Addr{from, to}
	if at, ok := r.cnpAt[pair]; ok || len(r.cnpAt) < maxAddresses {
		if d, ok := between(at, s.Ref); ok {
			r.samples.Add(&r.cnpAddr, int64(d))
		}
		r.cnpAt[pair] = s.Ref
	}
	pair = [2]netip.Addr{from}
	if at, ok := r.cnpAt[pair]; ok || len(r.cnpAt) < maxAddresses {
		if d, ok := between(at, s.Ref); ok {
			r.samples.Add(&r.cnpPort, int64(d))
		}
		r.cnpAt[pair] = s.Ref
	}
}

// maxAddresses is how many senders of CNPs, and pairs of addresses, are told apart.
const maxAddresses = 1024

// Congestion is the part of the report about marks and CNPs.
type Congestion struct {
	Marked uint64  `json:"marked"`
	Share  float64 `json:"marked_share"` // of all packets
	CNPs   uint64  `json:"cnps"`
	// WithoutMark counts the CNPs of which no marked packet was seen since the
	// CNP before: the mark was made behind the capture, or several were sent for
	// one.
	WithoutMark uint64 `json:"cnps_without_mark"`
	// MarkToCNP is from the first marked packet since the last CNP to the CNP.
	MarkToCNP *latency.Distribution `json:"mark_to_cnp,omitempty"`
	// The time between two CNPs: to one side of a connection, from one address
	// to another, and from one address. A receiver that limits CNPs shows its
	// limit as the least of the scope that it limits.
	PerConnection *latency.Distribution `json:"cnp_interval_connection,omitempty"`
	PerAddresses  *latency.Distribution `json:"cnp_interval_addresses,omitempty"`
	PerSender     *latency.Distribution `json:"cnp_interval_sender,omitempty"`
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
	Again   uint64 `json:"again"` // packets that were seen once more
	NAKs    uint64 `json:"naks"`  // RNR NAKs included
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
	if !x.begun {
		x.begun, x.start = true, s.Ref.Time
		if x.length == 0 {
			x.length = firstInterval
		}
		x.list = make([]Interval, 0, maxIntervals)
	}
	at := max(s.Ref.Time-x.start, 0)
	for at/x.length >= maxIntervals {
		x.halve()
	}
	i := int(at / x.length)
	for len(x.list) <= i {
		x.list = append(x.list, Interval{})
	}
	v := &x.list[i]
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

// halve makes one interval of two.
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

// Series is what went by over time. Intervals after the last packet are left out.
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
