package kernel

import (
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// wire is a transaction, with what the join needs of it. Times come from
// the capture.
type wire struct {
	older          int32
	op             uint16
	client         uint16
	overRDMA       bool
	overTCP        bool
	whole          bool // call and reply were captured
	divided        bool // and the parts of the time between them are known
	failed, unread bool
	partial        bool // the capture lacks something of it
	pushed         bool // the response began with an RDMA Write

	first, callLast int64 // of the call
	pulled          int64 // end of call_transfer and argument_pull, if divided
	response        int64 // first packet of the response, likewise
	replyFirst      int64
	last            int64 // of the reply
	serverPhase     int64 // likewise
	total           int64

	callBytes, replyBytes uint64
	again                 int32 // packets seen again

	call int32 // the record that it is; -1 if none
}

// single reports whether call and reply were captured, and no packet of the transaction more than once.
func (w *wire) single() bool { return w.whole && w.again == 0 }

// awaited is the part of the transaction's time that the client's round trip must contain. Over TCP, the round trip begins when the kernel gives
// bytes of the call to the socket for the last time: before the last packet of the call, but perhaps after the first. It ends when the kernel
// has read the XID of the reply (xprt_lookup_rqst), and over TCP the rest of a long reply may still be on its way then.
func (w *wire) awaited() int64 {
	if w.overTCP {
		return w.replyFirst - w.callLast
	}
	return w.total
}

// Add takes a transaction.
func (j *Join) Add(v *rpc.View) {
	tx := v.Tx
	j.counts.Transactions++
	if tx.Backward {
		j.counts.Backward++
		if _, ok := j.reqAt[tx.XID]; ok {
			j.callbacks++
		}
		return
	}
	at, traced := j.callAt[tx.XID]
	if len(j.mounts) > 0 {
		var name uint16
		if traced {
			name = j.calls[at].op
		}
		j.sum(v, name)
	}
	_, served := j.reqAt[tx.XID]
	if !traced && !served {
		return
	}
	if len(j.wires) >= j.limit {
		j.counts.TransactionsBeyond++
		return
	}
	older, ok := j.wireAt[tx.XID]
	if !ok {
		older = -1
	}
	j.wireAt[tx.XID] = int32(len(j.wires))
	w := wire{
		older: older, call: -1,
		op:     j.names.number(operation{v.ProgramName(), tx.Version, text.Operation(v)}),
		client: j.addrs.number(tx.Client().Addr.Unmap()),
		first:  tx.First().Time, callLast: tx.Call.Last.Time, replyFirst: tx.Reply.First.Time, last: tx.Reply.Last.Time,
		callBytes: sentBytes(tx), replyBytes: tx.Reply.Bytes, failed: v.StatusFailed(), unread: v.Unread(), partial: tx.State != transaction.Complete, again: int32(min(tx.Retransmits, 1<<30)),
	}
	w.overRDMA, w.overTCP = isRDMA(tx), tx.Connection.Fabric == rdma.TCP
	if p, ok := tx.Phases(); ok {
		w.whole, w.divided, w.total = true, p.Divided(), int64(p.Total)
		w.pushed = tx.Times.FirstPush.Seen()
		if w.divided {
			w.pulled = w.first + int64(p.CallTransfer+p.ArgumentPull)
			w.response = w.pulled + int64(p.Server)
			w.serverPhase = int64(p.Server)
		}
	}
	j.wires = append(j.wires, w)
}
