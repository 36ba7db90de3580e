package roce

import "github.com/rpcrdma/toolkit/decode/rdma"

// atomicBytes is the size of the operand of every atomic operation.
const atomicBytes = 8

// noted is where to note an acknowledgement of requests of fl that takes the short way; nil if the watcher is to be told of it.
func (t *Tracker) noted(fl *flow) *rdma.Run {
	if fl.plain.epoch != t.epoch {
		return nil
	}
	return fl.plain.run
}

// watch tells the watcher, if there is one, what happens on the wire.
type watch struct {
	watcher rdma.Watcher
	runs    rdma.RunWatcher // nil: the watcher sees each packet
	saw     rdma.Sighting   // the packet at hand
	work    rdma.Work
}

// began tells the watcher of the first packet of an operation, and returns the
// number that it has from then on.
func (w *watch) began(fl *flow, kind rdma.WorkKind, p *Packet, ref rdma.Ref) uint64 {
	if w.watcher == nil {
		return 0
	}
	x := &w.work
	*x = rdma.Work{Seq: fl.works, Kind: kind, From: fl.side, PSN: p.PSN}
	switch kind {
	case rdma.WorkWrite, rdma.WorkRead:
		x.Handle, x.Offset, x.Length = p.RETH.RKey, p.RETH.VA, p.RETH.DMALen
	case rdma.WorkAtomic:
		switch p.Opcode.Operation() {
		case RCCompareSwap, RCFetchAdd, RCAtomicWrite:
			x.Length = atomicBytes
		}
	}
	fl.works++
	w.watcher.WorkStarted(fl.c.Connection, x, ref)
	return x.Seq
}

// plainAck tells the watcher of an acknowledgement that takes the short way, of requests of fl: of the only one, if r is not nil.
func (w *watch) plainAck(fl *flow, r *request, psn uint32, ref rdma.Ref) {
	c, from := fl.c.Connection, fl.side.Other()
	if r != nil {
		w.runs.NextSendAcked(c, from, r.work, psn, ref)
	} else {
		w.runs.NextAck(c, from, psn, ref)
	}
}

// carried tells the watcher of a packet of an operation of fl.
func (w *watch) carried(fl *flow, work uint64, bytes uint32, again bool, ref rdma.Ref) {
	if w.watcher != nil {
		w.watcher.WorkData(fl.c.Connection, fl.side, work, bytes, again, ref)
	}
}

// requested notes for the watcher that the packet at hand is a request.
func (w *watch) requested(p *Packet) {
	if w.watcher == nil {
		return
	}
	w.saw.Class, w.saw.Novelty, w.saw.Count = rdma.ClassRequest, rdma.NoveltyNew, 1
	w.saw.Read, w.saw.Inside = p.Opcode.IsReadRequest(), !p.Opcode.Starts()
	if w.saw.Read {
		w.saw.Count = 0 // until it is known
	}
}

// answered notes for the watcher that the packet at hand is a response.
func (w *watch) answered(p *Packet) {
	if w.watcher == nil {
		return
	}
	w.saw.Novelty = rdma.NoveltyNew
	switch op := p.Opcode.Operation(); op {
	case RCReadResponseFirst, RCReadResponseMiddle, RCReadResponseLast, RCReadResponseOnly:
		w.saw.Class, w.saw.Inside = rdma.ClassReadResponse, !p.Opcode.Starts()
	case RCAtomicAcknowledge:
		w.saw.Class = rdma.ClassAck
	case RCAcknowledge:
		w.saw.Syndrome = uint8(p.AETH.Syndrome)
		switch p.AETH.Syndrome & syndromeKind {
		case 0:
			w.saw.Class = rdma.ClassAck
		case syndromeRNR:
			w.saw.Class = rdma.ClassRNR
		case syndromeNAK:
			w.saw.Class = rdma.ClassNAK
		}
	}
}

// atomicDone tells the watcher that an atomic operation or a FLUSH has its response. The acknowledgement of a later request does not
// stand for it (IBTA volume 1, section 9.7.5.1.2).
func (w *watch) atomicDone(fl *flow, r *request, ref rdma.Ref) {
	if w.watcher != nil && r != nil && r.kind == atomicRequest {
		w.watcher.WorkAcked(fl.c.Connection, fl.side, r.work, ref)
	}
}

// answeredBefore tells the watcher which operations of a flow were acknowledged, or answered, before it was known by whom. When is no
// longer known: the next acknowledgement, which covers them too, comes later.
func (w *watch) answeredBefore(fl *flow) {
	peer := fl.peer()
	if w.watcher == nil || peer == nil || !peer.hasResp {
		return
	}
	acked := peer.lastResp
	if peer.lastRefused {
		acked = psnAdd(acked, psnMask)
	}
	for pos := fl.oldest(); pos < fl.head; pos++ {
		r := fl.request(pos)
		if psnDiff(psnAdd(r.start, max(r.count, 1)-1), acked) > 0 {
			break
		}
		switch {
		case r.kind != readRequest:
			w.watcher.WorkAcked(fl.c.Connection, fl.side, r.work, rdma.Ref{})
		case !r.asked && r.got == 0:
			w.watcher.WorkDone(fl.c.Connection, fl.side, r.work, r.op.Length, nil, rdma.Ref{})
		}
	}
}
