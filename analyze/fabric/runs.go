package fabric

import (
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Observer returns what tells the Recorder of the fabric. Whoever wants only stalls needs little of packets that are the next expected.
func (r *Recorder) Observer() decode.Observer {
	if r.opt.wantsOperations() {
		return decode.Observer{Watcher: r}
	}
	return decode.Observer{Watcher: r, Runs: r}
}

// NextSend implements rdma.RunWatcher.
func (r *Recorder) NextSend(c *rdma.Connection, s *rdma.Send, seq uint64, psn uint32) *rdma.Run {
	k := r.conn(c)
	if k == nil {
		return nil
	}
	d := &k.dirs[s.From]
	k.started[s.From][rdma.WorkSend]++
	g := &d.open
	if g.first == g.next {
		// Nobody will ask for it: it has no slot, as if it had ended.
		g.first, g.next = seq+1, seq+1
	} else {
		r.listed(k, s, seq)
	}
	if !k.guessed && len(s.Data) > 0 {
		k.guess(s.Data, uint32(s.Length), s.From)
	}
	d.requested(r, psn, 1, s.First)
	// If nothing is open, and nothing awaited, what NextSend, NextSendAcked and NextAck change is in the Run.
	if g.first != g.next || !k.guessed || !d.HasAcked || !d.idle() || r.opt.Live {
		return nil
	}
	return &d.Run
}

// listed gives a Send of one packet a slot, as WorkStarted, and then WorkData and WorkDone.
func (r *Recorder) listed(k *conn, s *rdma.Send, seq uint64) {
	length := uint32(s.Length)
	o := r.start(k, s.From, seq)
	o.Connection, o.Kind, o.From, o.Seq, o.Length = k.c, rdma.WorkSend, s.From, seq, length
	o.Bytes, o.Packets, o.Again, o.InFlight = uint64(length), 1, 0, k.dirs[s.From].open.live
	o.First, o.Last, o.done, o.live = s.First, s.First, true, true
}

// NextSendAcked implements rdma.RunWatcher.
func (r *Recorder) NextSendAcked(c *rdma.Connection, from rdma.Side, seq uint64, psn uint32, ref rdma.Ref) {
	r.WorkAcked(c, from.Other(), seq, ref)
	r.NextAck(c, from, psn, ref)
}

// NextAck implements rdma.RunWatcher.
func (r *Recorder) NextAck(c *rdma.Connection, from rdma.Side, psn uint32, ref rdma.Ref) {
	k := r.conn(c)
	if k == nil {
		return
	}
	r.advance(k, &k.dirs[from.Other()], psn, ref)
}

// idle reports whether nothing is awaited. An acknowledgement then tells only how far it goes.
func (d *direction) idle() bool {
	return d.wait.since.Number|d.late.ref.Number == 0 && !d.active && len(d.gaps.list) == 0
}

// requested notes a request that is new, with nothing missing before it; count is how many PSNs it takes.
func (d *direction) requested(r *Recorder, psn, count uint32, ref rdma.Ref) {
	span := d.span()
	d.Begun, d.High = true, rdma.PSNAdd(psn, count)
	if d.HasAcked {
		d.Window = max(d.Window, rdma.PSNDiff(d.High, d.Acked))
	} else {
		d.Window = min(d.Window+int32(count), trailMost)
	}
	d.sent().note(r, psn, ref, span)
	d.LastSent = ref
}

// span is how many PSNs of requests are to be remembered.
func (d *direction) span() int32 {
	if d.HasAcked {
		return rdma.PSNDiff(d.High, d.Acked)
	}
	return trailUnknown
}
