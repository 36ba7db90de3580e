package fabric

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Health is the state of a connection, as counts since its beginning.
type Health struct {
	Connection *rdma.Connection
	Service    Service
	Ended      bool
	Packets    uint64
	Bytes      uint64
	Again      uint64 // packets that were seen again
	NAKs, RNRs uint64
	Marked     uint64
	CNPs       uint64
	Episodes   uint64 // that have ended
	Fatal      uint64
	Lost       Share // stalled time of both sides together
	// Recovering is the first packet of the oldest open episode; zero if there is none.
	Recovering rdma.Ref
}

// maxGone is how many ended connections Options.Live keeps.
const maxGone = 256

// Health calls f for the RDMA connections: the open ones in no particular order, then the most
// recently ended ones. It needs Options.Live.
func (r *Recorder) Health(f func(*Health)) {
	var h Health
	for _, k := range r.live {
		r.health(k, &h)
		f(&h)
	}
	for i := range r.gone {
		f(&r.gone[i])
	}
}

// Active calls f for the connections of Health that something was seen of since the last call,
// and for those that have ended since: an interval costs what happened in it, not as much as there
// are connections.
func (r *Recorder) Active(f func(*Health)) {
	var h Health
	for i, k := range r.touched {
		k.touched = 0
		r.health(k, &h)
		f(&h)
		r.touched[i] = nil
	}
	r.touched = r.touched[:0]
	for i := len(r.gone) - min(r.news, len(r.gone)); i < len(r.gone); i++ {
		f(&r.gone[i])
	}
	r.news = 0
}

// touch notes that something was seen of a connection.
func (r *Recorder) touch(k *conn) {
	if r.opt.Live && k.touched == 0 {
		r.touched = append(r.touched, k)
		k.touched = len(r.touched)
	}
}

// untouch forgets that: a connection that is gone is not held until somebody asks.
func (r *Recorder) untouch(k *conn) {
	if k.touched == 0 {
		return
	}
	n := len(r.touched) - 1
	last := r.touched[n]
	r.touched[k.touched-1], last.touched = last, k.touched
	r.touched[n] = nil
	r.touched, k.touched = r.touched[:n], 0
}

// Watching is how many connections Health reports.
func (r *Recorder) Watching() int { return len(r.live) + len(r.gone) }

func (r *Recorder) health(k *conn, h *Health) {
	c := k.c
	*h = Health{Connection: c, Service: k.service(r), Fatal: k.fatal}
	for side := range c.Sent {
		n := &c.Sent[side]
		h.Packets += n.Packets
		h.Bytes += n.Bytes
		h.Again += n.Retransmitted
		h.NAKs += n.NAKs
		h.RNRs += n.RNRs
		h.Marked += n.ECN
		h.CNPs += n.CNPs
		d := &k.dirs[side]
		for i, x := range d.stalls.lost {
			h.Lost[i] += x
		}
		if d.active {
			if at := d.ep.Start(); !h.Recovering.Seen() || at.Number < h.Recovering.Number {
				h.Recovering = at
			}
		}
	}
	if k.notices != nil {
		for i := range k.notices {
			h.Episodes += k.notices[i].count
		}
	}
}

// opened and over keep the list of Options.Live.
func (r *Recorder) opened(k *conn) {
	if r.opt.Live {
		k.place = len(r.live)
		r.live = append(r.live, k)
	}
}

func (r *Recorder) left(k *conn, ended bool) {
	if !r.opt.Live || k.place >= len(r.live) || r.live[k.place] != k {
		return
	}
	last := r.live[len(r.live)-1]
	r.live[k.place], last.place = last, k.place
	r.live[len(r.live)-1] = nil
	r.live = r.live[:len(r.live)-1]
	r.untouch(k)
	if !ended || k.c.ID == 0 {
		return
	}
	if len(r.gone) == maxGone {
		r.gone = r.gone[:copy(r.gone, r.gone[1:])]
	}
	var h Health
	r.health(k, &h)
	h.Ended, h.Recovering = true, rdma.Ref{}
	copied := k.c.Copy()
	copied.Watched = nil
	h.Connection = &copied
	r.gone = append(r.gone, h)
	r.news++
}
