package fabric

import "github.com/rpcrdma/toolkit/decode/rdma"

var _ rdma.PlainWatcher = (*Recorder)(nil)

// Plain implements rdma.PlainWatcher. Whoever wants only stalls needs little of ordinary packets.
func (r *Recorder) Plain() bool { return !r.opt.told() }

// PlainSend implements rdma.PlainWatcher.
func (r *Recorder) PlainSend(c *rdma.Connection, s *rdma.Send, seq uint64, psn uint32) {
	k := r.last
	if k == nil || k.c != c || r.opt.Live || !k.guessed {
		r.plainSend(c, s, seq, psn)
		return
	}
	d := &k.dirs[s.From&1]
	g, high, n := &d.open, psnAdd(psn, 1), uint32(len(d.sent.steps))
	if g.first != g.next || !d.begun || !d.hasAcked || uint32(psnDiff(d.high, d.acked)) >= n {
		r.plainSend(c, s, seq, psn)
		return
	}
	// As in plainSend and requested, if nothing is open and the trail has room.
	k.started[s.From&1][rdma.WorkSend]++
	g.first, g.next = seq+1, seq+1
	d.high, d.lastSent = high, s.First
	d.window = max(d.window, psnDiff(high, d.acked))
	x := &d.sent.steps[psn&(n-1)]
	x.psn, x.ref = psn, s.First
}

// plainSend is PlainSend for all that the short way does not take.
func (r *Recorder) plainSend(c *rdma.Connection, s *rdma.Send, seq uint64, psn uint32) {
	k := r.conn(c)
	if k == nil {
		return
	}
	d := &k.dirs[s.From]
	k.started[s.From][rdma.WorkSend]++
	if g := &d.open; g.first == g.next {
		// Nobody will ask for it: it has no slot, as if it had ended.
		g.first, g.next = seq+1, seq+1
	} else {
		r.listed(k, s, seq)
	}
	if !k.guessed && len(s.Data) > 0 {
		k.guess(s.Data, uint32(s.Length), s.From)
	}
	d.requested(r, psn, 1, s.First)
}

// listed gives a Send of one packet a slot, as WorkStarted, and then WorkData and WorkDone.
func (r *Recorder) listed(k *conn, s *rdma.Send, seq uint64) {
	length := uint32(s.Length)
	o := r.start(k, s.From, seq)
	o.Connection, o.Kind, o.From, o.Seq, o.Length = k.c, rdma.WorkSend, s.From, seq, length
	o.Bytes, o.Packets, o.Again, o.InFlight = uint64(length), 1, 0, k.dirs[s.From].open.live
	o.First, o.Last, o.done, o.live = s.First, s.First, true, true
}

// PlainAcked implements rdma.PlainWatcher.
func (r *Recorder) PlainAcked(c *rdma.Connection, from rdma.Side, seq uint64, psn uint32, ref rdma.Ref) {
	if k := r.last; k != nil && k.c == c && !r.opt.Live {
		d := &k.dirs[from.Other()&1]
		if seq < d.open.first && d.calm() && d.hasAcked && psnDiff(psn, d.acked) > 0 {
			d.acked, d.progress = psn, ref
			return
		}
	}
	r.WorkAcked(c, from.Other(), seq, ref)
	r.PlainAck(c, from, psn, ref)
}

// PlainAck implements rdma.PlainWatcher.
func (r *Recorder) PlainAck(c *rdma.Connection, from rdma.Side, psn uint32, ref rdma.Ref) {
	k := r.conn(c)
	if k == nil {
		return
	}
	d := &k.dirs[from.Other()]
	switch {
	case !d.calm():
		r.advance(k, from.Other(), d, psn, ref)
	case !d.hasAcked || psnDiff(psn, d.acked) > 0:
		d.hasAcked, d.acked, d.progress = true, psn, ref
	}
}

// calm reports whether nothing is awaited: an acknowledgement says nothing then but how far it goes.
func (d *direction) calm() bool {
	return d.wait.since.Number|d.late.ref.Number == 0 && !d.active && len(d.gaps.list) == 0
}

// requested notes a request that is new, with nothing missing before it; it takes so many PSNs.
func (d *direction) requested(r *Recorder, psn, count uint32, ref rdma.Ref) {
	span := d.span()
	d.begun, d.high = true, psnAdd(psn, count)
	if d.hasAcked {
		d.window = max(d.window, psnDiff(d.high, d.acked))
	} else {
		d.window = min(d.window+int32(count), trailMost)
	}
	d.sent.put(r, psn, ref, span)
	d.lastSent = ref
}

// span is how many PSNs of requests are to be remembered.
func (d *direction) span() int32 {
	if d.hasAcked {
		return psnDiff(d.high, d.acked)
	}
	return trailUnknown
}
