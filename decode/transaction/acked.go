package transaction

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// ackWait is how long a reply waits for its acknowledgement, in nanoseconds of
// capture time, before its transaction ends without.
const ackWait = 2e9

// SendAgain implements rdma.Handler.
func (t *Tracker) SendAgain(c *rdma.Connection, from rdma.Side, tag rdma.Tag, ref rdma.Ref, complete bool) {
	if kindOf(tag) != sendTag {
		return
	}
	tx := t.pool.entries.tagged(tag)
	if tx == nil {
		return
	}
	reply := tx.isReply(tag)
	t.storage.again(tx, from, ref)
	if t.tracer != nil {
		role := CallPart
		if reply {
			role = ReplyPart
		}
		t.tracer.add(tx, Packet{Ref: ref, Header: c.Header, Role: role, From: from, Again: true})
	}
	if !complete {
		return
	}
	// The copy that is acknowledged is the one that counts.
	switch {
	case reply && !tx.acked:
		tx.Reply.repeated(ref, c.Stamp)
		tx.waitingUntil = ref.Time + ackWait
	case !reply && !tx.replied && len(tx.Operations) == 0 && !tx.callAcked:
		tx.Call.repeated(ref, c.Stamp)
	}
}

// differs is rdma.Hooks.Differs.
func (t *Tracker) differs(c *rdma.Connection, from rdma.Side, tag rdma.Tag, at, length int, data []byte) bool {
	if kindOf(tag) != sendTag {
		return false
	}
	tx := t.pool.entries.tagged(tag)
	if tx == nil {
		return at == 0 && length > 0 && t.reader.differsFromEnded(c, from, tag, length, data)
	}
	m := &tx.Call
	if tx.isReply(tag) {
		m = &tx.Reply
	}
	if m.shared || at < 0 || at >= len(m.raw) {
		return false
	}
	n := min(len(m.raw)-at, len(data))
	return string(m.raw[at:at+n]) != string(data[:n])
}

// repeated notes a complete repetition.
func (m *Message) repeated(ref rdma.Ref, stamp rdma.Stamp) {
	m.Last = ref
	if !m.againStamp.Present {
		m.againStamp = stamp
	}
}

// SendAcked implements rdma.Handler.
func (t *Tracker) SendAcked(c *rdma.Connection, from rdma.Side, tag rdma.Tag, ref rdma.Ref) {
	if kindOf(tag) != sendTag {
		return
	}
	if k, ok := c.Upper.(*conn); ok {
		k.acknowledged(from, ref)
	}
	tx := t.pool.entries.tagged(tag)
	if tx == nil {
		return
	}
	reply := tx.isReply(tag)
	if !reply {
		if !tx.callAcked {
			tx.callAcked = true
			if !tx.ackMissed {
				tx.Times.CallAck = ref
			}
			tx.Call.answered(c.Stamp)
		}
		return
	}
	tx.Reply.answered(c.Stamp)
	tx.acked = true
	tx.Times.Ack = ref
	if len(tx.served) == 0 && tx.Call.Seen() {
		t.finish(tx)
	}
}

// answered decides between the copies of a message by the acknowledgment. The
// original had arrived if the acknowledgment reports data that came twice
// (RFC 2883), if it echoes a timestamp older than that of the first repetition
// (RFC 7323, section 4.3), or if both copies have the same timestamp: then the
// network has doubled the segment, its sender has not.
func (m *Message) answered(ack rdma.Stamp) {
	if m.Last == m.original || !m.stamp.Present || !m.againStamp.Present {
		return
	}
	if ack.Twice || m.stamp.Value == m.againStamp.Value ||
		ack.Present && int32(ack.Echo-m.stamp.Value) >= 0 && int32(ack.Echo-m.againStamp.Value) < 0 {
		m.Last = m.original
	}
}
