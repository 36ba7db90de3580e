package fabric

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// passed is what a direction knows of operations that have ended before older ones. Responses come in the order of the
// requests, and acknowledgements do not stand for them (IBTA volume 1, section 9.7.5.1.2): what the older ones wait for was
// lost on its way, or is not in the capture.
type passed struct {
	by uint64 // number of the newest operation that has passed a Read or an atomic operation; 0 if none has
	at int64  // since when that is known
}

// unseenAfter is how long a requester that lacks a response may take to ask for it again, if no longer ACK timeout was announced. It
// notices with the next response; what adapters need then is not specified, so that this is chosen, generously.
const unseenAfter = 250 * time.Millisecond

// responded reports whether an operation ends with a response of its own.
func (o *Operation) responded() bool { return o.Kind == rdma.WorkRead || o.Kind == rdma.WorkAtomic }

// pass notes that an operation has ended, although an older one may still be open.
func (d *direction) pass(o *Operation, ref rdma.Ref) {
	g := &d.open
	switch first := g.at(g.first); {
	case o.responded() && o.Seq < d.passed.by:
		d.passed.at = ref.Time // it was asked for again, as the others may be
	case first == nil || !first.responded():
	case d.passed.by <= g.first:
		d.passed = passed{o.Seq, ref.Time}
	}
}

// unseen ends the operations that were passed if their requester goes on without their responses: it must have got them. Either
// it has had enough time to ask again, or it has as many Reads under way as it may.
func (r *Recorder) unseen(k *conn, d *direction, w *rdma.Work, ref rdma.Ref) {
	if d.active {
		return
	}
	depth := 0
	if w.Kind == rdma.WorkRead || w.Kind == rdma.WorkAtomic {
		depth = k.depth(w.From)
	}
	if ref.Time-d.passed.at < max(int64(unseenAfter), int64(k.ackTimeout())) && (depth == 0 || d.reads < depth) {
		return
	}
	g := &d.open
	by := min(d.passed.by, g.next) // the numbers of a merged side continue elsewhere
	d.passed = passed{}
	for seq := g.first; seq < by; seq++ {
		if o := g.at(seq); o != nil && o.responded() {
			r.totals.NotCaptured += k.lacks(o)
			r.end(k, o, Incomplete, rdma.Ref{})
		}
	}
	g.settle()
}

// lacks is how many packets of its responses an operation lacks.
func (k *conn) lacks(o *Operation) uint64 {
	if o.Kind == rdma.WorkAtomic || k.c.MTU == 0 || uint64(o.Length) <= o.Bytes {
		return 1
	}
	mtu := uint64(k.c.MTU)
	return (uint64(o.Length) - o.Bytes + mtu - 1) / mtu
}
