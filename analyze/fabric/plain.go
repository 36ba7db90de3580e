package fabric

import "github.com/rpcrdma/toolkit/decode/rdma"

var _ rdma.PlainWatcher = (*Recorder)(nil)

// Plain implements rdma.PlainWatcher. Whoever wants only stalls needs little of ordinary packets.
func (r *Recorder) Plain() bool { return !r.opt.told() }

// PlainSend implements rdma.PlainWatcher.
func (r *Recorder) PlainSend(c *rdma.Connection, s *rdma.Send, seq uint64, psn uint32) {
	k := r.conn(c)
	if k == nil {
		return
	}
	length := uint32(s.Length)
	o := r.start(k, s.From, seq)
	// As in WorkStarted, and then in WorkData and WorkDone.
	o.Connection, o.Kind, o.From, o.Seq, o.Length = c, rdma.WorkSend, s.From, seq, length
	o.Bytes, o.Packets, o.Again, o.InFlight = uint64(length), 1, 0, k.dirs[s.From].open.live
	o.First, o.Last, o.done, o.live = s.First, s.First, true, true
	k.started[s.From][rdma.WorkSend]++
	if !k.guessed && len(s.Data) > 0 {
		k.guess(s.Data, length, s.From)
	}
	k.dirs[s.From].requested(r, psn, 1, s.First)
}

// PlainAck implements rdma.PlainWatcher.
func (r *Recorder) PlainAck(c *rdma.Connection, from rdma.Side, psn uint32, ref rdma.Ref) {
	if k := r.conn(c); k != nil {
		side := from.Other()
		r.advance(k, side, &k.dirs[side], psn, ref)
	}
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
