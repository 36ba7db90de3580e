package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// Delivery says whether a message reached the adapter of its receiver, or its kernel over TCP, as far as the capture tells.
// Nobody says that the receiver's program has consumed it.
type Delivery uint8

// Verdicts.
const (
	// DeliveryUnknown: the message or the packets of its receiver were not captured, the capture or the memory ended
	// before the connection did, there are no acknowledgements (UDP, UC), or nothing shows that the capture has the one that is missing.
	DeliveryUnknown Delivery = iota
	// Acknowledged by a packet of the receiver, or by what it did then.
	Acknowledged
	// Refused: the receiver ended the connection with a NAK or a Terminate, and had not acknowledged the message.
	Refused
	// NotAcknowledged before the connection ended: its sender sent it again, or the receiver acknowledged less after it.
	NotAcknowledged
)

var deliveryNames = [...]string{"unknown", "acknowledged", "refused", "not_acknowledged"}

// String is the name in machine output.
func (d Delivery) String() string { return deliveryNames[d] }

// Deliveries are the names of all verdicts.
func Deliveries() []string { return deliveryNames[:] }

// CallDelivery is the verdict on the call.
func (t *Transaction) CallDelivery() Delivery {
	if t.Call.Seen() && (t.Reply.Seen() || t.callAcked || t.Reads+t.Writes > 0) {
		return Acknowledged
	}
	return t.callLost
}

// ReplyDelivery is the verdict on the reply. It is the verdict on the RDMA Writes of the responder, too: a receiver takes
// what is sent on a connection in order.
func (t *Transaction) ReplyDelivery() Delivery {
	if t.acked {
		return Acknowledged
	}
	return t.replyLost
}

// ReplyLost reports whether the reply was captured, but did not reach the requester.
func (t *Transaction) ReplyLost() bool { return t.replyLost != DeliveryUnknown }

// delivery is what a connection knows of one direction of messages.
type delivery struct {
	acks    bool   // acknowledgements of the receiver are in the capture
	refused uint64 // packet that ended the connection; 0: none
	latest  uint64 // packet by which the receiver last acknowledged a message, or asked for one
}

// acknowledged notes that a Send of a side was acknowledged: nothing before it was refused.
func (k *conn) acknowledged(from rdma.Side, ref rdma.Ref) {
	d := &k.delivered[from&1]
	if !d.acks || d.refused != 0 {
		*d = delivery{acks: true}
	}
	d.latest = ref.Number
}

// refuses notes what ends a connection: its sender takes nothing more.
func (k *conn) refuses(from rdma.Side, e rdma.Event, ref rdma.Ref) {
	switch e {
	case rdma.EventNAKInvalid, rdma.EventNAKAccess, rdma.EventNAKOperation, rdma.EventNAKOther, rdma.EventTerminate:
		k.delivered[from.Other()&1].refused = ref.Number
	case rdma.EventNAKSequence, rdma.EventRNR:
		k.delivered[from.Other()&1].latest = ref.Number
	}
}

// merge adds what is known of another connection that is part of this one.
func (d *delivery) merge(o delivery) {
	d.acks = d.acks || o.acks
	d.refused = max(d.refused, o.refused)
	d.latest = max(d.latest, o.latest)
}

// slowWait is how long a reply waits for its acknowledgement, in nanoseconds of capture time, if others of its side were
// acknowledged: an adapter that gets none sends up to eight times, some seconds apart.
const slowWait = 60e9

// missed reports whether the acknowledgement of a reply should have been captured.
func (tx *Transaction) missed() bool {
	k, ok := tx.Connection.Upper.(*conn)
	return ok && !tx.acked && tx.Call.Seen() && k.delivered[tx.From.Other()&1].acks
}

// judge gives the verdict on the last message of a transaction, if that was not acknowledged until the transaction ended.
func (tx *Transaction) judge() {
	if tx.acked || tx.unproven {
		return
	}
	c := tx.Connection
	k, ok := c.Upper.(*conn)
	if !ok || c.MergedInto != nil {
		return
	}
	from, sent := tx.From.Other(), &tx.Reply
	if !tx.replied {
		from, sent = tx.From, &tx.Call
		if h := k.halves[from&1]; h != nil && c.Ended && h.newest == tx.gen {
			tx.note(LastCall)
		}
		if tx.CallDelivery() == Acknowledged {
			if c.Ended && tx.Reads == 0 && len(tx.Call.Header.Reads) > 0 && len(tx.segments) > 0 {
				tx.note(NotPulled)
			}
			return
		}
	}
	switch d := &k.delivered[from&1]; {
	case d.refused != 0 && c.Terminated != "":
		tx.lose(Refused, Note{Why: c.Terminated, N: d.refused})
	case c.Sent[0].Gaps|c.Sent[1].Gaps != 0 && tx.Retransmits == 0: // the capture may lack the acknowledgement
	case tx.Retransmits == 0 && d.latest <= sent.Last.Number: // that alone may be missing: its sender did not miss it
	case d.acks && c.Ended:
		tx.lose(NotAcknowledged, Note{Why: c.Terminated})
	}
}

// lose notes that the last message of a transaction did not arrive.
func (tx *Transaction) lose(d Delivery, n Note) {
	if !tx.replied {
		tx.callLost = d
		if n.Kind = CallNotAcknowledged; d == Refused {
			n.Kind = CallRefused
		}
		tx.Note(n)
		return
	}
	tx.replyLost, tx.fast = d, false
	if n.Kind = ReplyNotAcknowledged; d == Refused {
		n.Kind = ReplyRefused
	}
	tx.incomplete(n)
}
