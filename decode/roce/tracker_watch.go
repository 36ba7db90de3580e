package roce

import "github.com/rpcrdma/toolkit/decode/rdma"

// atomicBytes is the size of the operand of every atomic operation.
const atomicBytes = 8

// began tells the watcher of the first packet of an operation, and returns the
// number that it has from then on.
func (t *Tracker) began(fl *flow, kind rdma.WorkKind, p *Packet, ref rdma.Ref) uint64 {
	if t.watcher == nil {
		return 0
	}
	w := &t.work
	*w = rdma.Work{Seq: fl.works, Kind: kind, From: fl.side, PSN: p.PSN}
	switch kind {
	case rdma.WorkWrite, rdma.WorkRead:
		w.Handle, w.Offset, w.Length = p.RETH.RKey, p.RETH.VA, p.RETH.DMALen
	case rdma.WorkAtomic:
		switch p.Opcode.Operation() {
		case RCCompareSwap, RCFetchAdd, RCAtomicWrite:
			w.Length = atomicBytes
		}
	}
	fl.works++
	t.watcher.WorkStarted(fl.c.Connection, w, ref)
	return w.Seq
}

// noted is where to note an acknowledgement of requests of fl that takes the short way; nil if the watcher is to be told of it.
func (t *Tracker) noted(fl *flow) *rdma.Run {
	if fl.plain.epoch != t.epoch {
		return nil
	}
	return fl.plain.run
}

// plainAck tells the watcher of an acknowledgement that takes the short way, of requests of fl: of the only one, if r is not nil.
func (t *Tracker) plainAck(fl *flow, r *request, psn uint32, ref rdma.Ref) {
	c, from := fl.c.Connection, fl.side.Other()
	if r != nil {
		t.runs.NextSendAcked(c, from, r.work, psn, ref)
	} else {
		t.runs.NextAck(c, from, psn, ref)
	}
}

// carried tells the watcher of a packet of an operation of fl.
func (t *Tracker) carried(fl *flow, work uint64, bytes uint32, again bool, ref rdma.Ref) {
	if t.watcher != nil {
		t.watcher.WorkData(fl.c.Connection, fl.side, work, bytes, again, ref)
	}
}

// requested notes for the watcher that the packet at hand is a request.
func (t *Tracker) requested(p *Packet) {
	if t.watcher == nil {
		return
	}
	t.saw.Class, t.saw.Novelty, t.saw.Count = rdma.ClassRequest, rdma.NoveltyNew, 1
	t.saw.Read = p.Opcode.IsReadRequest()
	if t.saw.Read {
		t.saw.Count = 0 // until it is known
	}
}

// answered notes for the watcher that the packet at hand is a response.
func (t *Tracker) answered(p *Packet) {
	if t.watcher == nil {
		return
	}
	t.saw.Novelty = rdma.NoveltyNew
	switch op := p.Opcode.Operation(); op {
	case RCReadResponseFirst, RCReadResponseMiddle, RCReadResponseLast, RCReadResponseOnly:
		t.saw.Class = rdma.ClassReadResponse
	case RCAtomicAcknowledge:
		t.saw.Class = rdma.ClassAck
	case RCAcknowledge:
		t.saw.Syndrome = uint8(p.AETH.Syndrome)
		switch p.AETH.Syndrome & syndromeKind {
		case 0:
			t.saw.Class = rdma.ClassAck
		case syndromeRNR:
			t.saw.Class = rdma.ClassRNR
		case syndromeNAK:
			t.saw.Class = rdma.ClassNAK
		}
	}
}
