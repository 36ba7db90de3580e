package transaction

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// FirstSent is when the call was sent first, on whatever connection, in nanoseconds since 1970: after a reconnect clients send again what was
// not answered. It is 0 without a call.
func (t *Transaction) FirstSent() int64 {
	if t.sentFirst != 0 {
		return t.sentFirst
	}
	return t.Call.First.Time
}

// FirstOn is the connection on which the call was sent first: that of the transaction, or one before a reconnect.
func (t *Transaction) FirstOn() int { return t.from() }

// DataDone is the packet with which the requester had all of the result: the last Read Response of a reply that offers memory
// (read-read model), otherwise the last packet of the reply.
func (t *Transaction) DataDone() rdma.Ref {
	if f := t.Times.LastFetch; f.Seen() && f.Time > t.Reply.Last.Time {
		return f
	}
	return t.Reply.Last
}

// AppLatency is the time from FirstSent to DataDone: what the client's application waited, as far as the capture point sees it. ok is false where
// Phases has no latency.
func (t *Transaction) AppLatency() (d time.Duration, ok bool) {
	if _, ok = t.Took(); !ok {
		return 0, false
	}
	return max(rdma.Between(t.FirstSent(), t.DataDone().Time), 0), true
}

// Ways are the times that a packet and its acknowledgement took from the capture point to either end of the connection and back; -1 if the
// capture does not tell.
type Ways struct{ Server, Client time.Duration }

// Ways finds them by the acknowledgements of the call and of the reply. An acknowledgement that travels with the reply says nothing.
func (t *Transaction) Ways() (w Ways) {
	w.Server, w.Client = -1, -1
	if a := t.Times.CallAck; a.Seen() && t.Call.Seen() && (!t.Reply.Seen() || a.Number < t.Reply.First.Number) {
		w.Server = max(rdma.Between(t.Call.Last.Time, a.Time), 0)
	}
	if a := t.Times.Ack; a.Seen() && t.Reply.Seen() {
		w.Client = max(rdma.Between(t.Reply.Last.Time, a.Time), 0)
	}
	return w
}

// Path is the part of the latency that packets were on their way between the two adapters, and neither the server nor the client worked: a round trip for the
// call and its reply as far as that lies behind the capture point, and one more for the RDMA Reads of its chunks. ok is false if the acknowledgement of the call
// was not seen, or the phases are not known.
func (t *Transaction) Path() (d time.Duration, ok bool) {
	var p Phases
	if !t.SetPhases(&p) {
		return 0, false
	}
	return t.PathOf(&p)
}

// PathOf is Path for those who have the phases.
func (t *Transaction) PathOf(p *Phases) (d time.Duration, ok bool) {
	in, ok := t.PathIn(p)
	return in.Pull + in.Server + in.Push, ok
}

// PathIn returns Path divided by the phases that it is part of.
func (t *Transaction) PathIn(p *Phases) (in PathTimes, ok bool) {
	w := t.Ways()
	if w.Server < 0 || !p.Divided() {
		return PathTimes{}, false
	}
	in.Server = min(w.Server, p.Server)
	in.Push = min(w.Server-in.Server, p.ResultPush)
	if t.Times.FirstRead.Seen() {
		in.Pull = min(w.Server, p.PullWait)
		if w.Client >= 0 {
			in.Pull += min(w.Client, p.ArgumentPull-p.PullWait)
		}
	}
	return in, true
}

// SurePath is PathIn for acknowledgements that are known to come at once: not over TCP, which may delay them, and not if packets were
// sent again.
func (t *Transaction) SurePath(p *Phases) (in PathTimes, ok bool) {
	if t.Connection.Fabric >= rdma.IWARP || t.Retransmits > 0 {
		return PathTimes{}, false
	}
	return t.PathIn(p)
}

// PathTimes has the time in transit within each phase.
type PathTimes struct{ Pull, Server, Push time.Duration }
