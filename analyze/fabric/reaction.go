package fabric

import (
	"net"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// reaction is how much the sides that got CNPs sent after them, by the time since the
// last: bin 0 before the first, bin n from 2^(n+12) ns on, the first of these from 0.
type reaction struct {
	bytes [reactionBins]uint64
	time  [reactionBins]int64 // how long sides were in this bin
	cnps  uint64
}

const (
	reactionBins = 16
	reactionUnit = 14 // 2^14 ns are 16 µs
)

// reactionStart is the start of a bin.
func reactionStart(bin int) int64 {
	if bin <= 1 {
		return 0
	}
	return 1 << (reactionUnit + bin - 2)
}

func reactionBin(since int64) int {
	bin := 1
	for bin+1 < reactionBins && since >= reactionStart(bin+1) {
		bin++
	}
	return bin
}

// sent counts a packet.
func (x *reaction) sent(m *congestion, s *rdma.Sighting) {
	if s.Class != rdma.ClassRequest && s.Class != rdma.ClassReadResponse {
		return
	}
	if m.begun == 0 {
		m.begun = s.Ref.Time
	}
	m.newest = s.Ref.Time
	if !m.lastCNP.Seen() {
		m.bytes += uint64(s.Bytes)
		return
	}
	if since := s.Ref.Time - m.lastCNP.Time; since >= 0 {
		x.bytes[reactionBin(since)] += uint64(s.Bytes)
	}
}

// reacted ends the time after the last CNP: at the next one, or at the last packet. A side of which nothing was seen but the
// CNPs that it got says nothing about rates.
func (x *reaction) reacted(m *congestion, now int64) {
	if m.begun == 0 {
		return
	}
	if !m.lastCNP.Seen() {
		if now > m.begun {
			x.bytes[0] += m.bytes
			x.time[0] += now - m.begun
		}
		m.bytes = 0
		return
	}
	x.cnps++
	left := now - m.lastCNP.Time
	for bin := 1; bin < reactionBins && left > reactionStart(bin); bin++ {
		end := left
		if bin+1 < reactionBins {
			end = min(end, reactionStart(bin+1))
		}
		x.time[bin] += end - reactionStart(bin)
	}
}

// Rate is how fast sides sent at a given time after a CNP.
type Rate struct {
	From  int64   `json:"from_ns"` // since the CNP; −1: before the first
	Bytes uint64  `json:"bytes"`
	Time  int64   `json:"time_ns"` // of all sides together
	Rate  float64 `json:"bytes_per_second"`
}

func (x *reaction) report() []Rate {
	out := []Rate{}
	if x.cnps == 0 {
		return out
	}
	for bin := range x.time {
		if x.time[bin] <= 0 {
			continue
		}
		r := Rate{From: reactionStart(bin), Bytes: x.bytes[bin], Time: x.time[bin], Rate: float64(x.bytes[bin]) / float64(x.time[bin]) * 1e9}
		if bin == 0 {
			r.From = -1
		}
		out = append(out, r)
	}
	return out
}

// limited is the narrowest scope in which CNPs keep a minimum distance that they do not keep in a
// wider one.
func (r *Recorder) limited() string {
	const few = 10
	if r.cnpPort.Count() < few || r.cnpAddr.Count() == 0 || r.cnpConn.Count() == 0 {
		return ""
	}
	conn, addr, port := r.cnpConn.Distribution(), r.cnpAddr.Distribution(), r.cnpPort.Distribution()
	// A scope that is limited shows a least interval that is not much less than the usual one, or than the
	// least of a connection. Streams with limits of their own, mixed, come as close as they like. What is
	// shorter than a microsecond can be the packets themselves.
	const shortest = 1000 // ns
	keeps := func(d *latency.Distribution) bool {
		return d.Min >= shortest && (d.Min*2 >= conn.Min || float64(d.Min) >= 0.8*float64(d.P90))
	}
	switch {
	case addr.Count == conn.Count && port.Count == addr.Count:
		return "" // one connection: the three are the same
	case keeps(port):
		return "sender"
	case keeps(addr) && addr.Count > conn.Count:
		return "addresses"
	case conn.Count >= few && conn.Min >= shortest:
		return "connection"
	}
	return ""
}

// pauses count frames of flow control.
type pauses struct {
	list [9]Pause // by priority; 8 is PAUSE, which has none
	held [9]rdma.Stopped
}

// maxSenders bounds the senders that are named of one priority.
const maxSenders = 8

// Pause is flow control of a priority.
type Pause struct {
	Priority int    `json:"priority"` // −1: PAUSE, which stops all
	Stops    uint64 `json:"stops"`
	Resumes  uint64 `json:"resumes"`
	Quanta   uint64 `json:"quanta"` // that were asked for, of 512 bit times
	// Stopped is the time from a stop to the next resume. A stop without one ends by itself,
	// after a time that depends on the speed of the link.
	Stopped int64 `json:"stopped_ns"`
	// Held is the time of stops that no resume ended and that were repeated, from the first to the last and as long again as they
	// are apart: who repeats them keeps the priority stopped.
	Held int64 `json:"held_ns"`
	// Senders are the MAC addresses that have sent such frames, where they are known.
	Senders []string `json:"senders"`
}

// take takes a stop or, with 0 quanta, a resume.
func (x *pauses) take(i int, q uint16, at int64) (stop bool) {
	p := &x.list[i]
	switch ended, resumed := x.held[i].Take(q, at); {
	case resumed:
		p.Stopped += max(at-ended.Since, 0)
	default:
		p.Held += ended.Least()
	}
	if q == 0 {
		p.Resumes++
		return false
	}
	p.Stops++
	p.Quanta += uint64(q)
	return true
}

// from notes who has sent a frame.
func (p *Pause) from(mac [6]byte) {
	if mac == ([6]byte{}) || len(p.Senders) == maxSenders {
		return
	}
	if s := net.HardwareAddr(mac[:]).String(); !slices.Contains(p.Senders, s) {
		p.Senders = append(p.Senders, s)
	}
}

// Paused implements rdma.Watcher.
func (r *Recorder) Paused(p *rdma.Pause, ref rdma.Ref) {
	x := &r.pauses
	stop := false
	if !p.PerPriority {
		stop = x.take(8, p.Quanta[0], ref.Time)
		x.list[8].from(p.From)
	}
	for i, q := range p.Quanta {
		if p.PerPriority && p.Priorities&(1<<i) != 0 {
			stop = x.take(i, q, ref.Time) || stop
			x.list[i].from(p.From)
		}
	}
	if stop && !r.opt.Lean {
		r.series.at(ref.Time).Pauses++
	}
}

func (x *pauses) report() []Pause {
	out := []Pause{}
	for i, p := range x.list {
		if p.Stops+p.Resumes > 0 {
			if p.Priority = i; i == 8 {
				p.Priority = -1
			}
			p.Held += x.held[i].Least()
			p.Senders = append([]string{}, p.Senders...)
			out = append(out, p)
		}
	}
	return out
}
