package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// Trouble is something on the wire that may have delayed a transaction.
type Trouble struct {
	Kind  rdma.Event
	From  rdma.Side // that sent the packet
	Value uint32    // as in rdma.Handler.Event
	Ref   rdma.Ref
	// Own says that the packet belongs to the transaction. Otherwise it is an
	// event of the connection while the transaction was under way.
	Own bool
}

const (
	// maxTroubles bounds the troubles listed of one transaction, maxOwn those
	// that are packets of its own: there is room for what caused them.
	maxTroubles = 256
	maxOwn      = 224
	// maxEvents bounds the events of all connections that are remembered for
	// the transactions under way.
	maxEvents = 512
)

// event is a trouble of a connection.
type event struct {
	c *rdma.Connection
	Trouble
}

// events are the latest ones of all connections.
type events struct {
	ring   []event
	at     int
	newest uint64 // packet number
}

// Event implements rdma.Handler.
func (t *Tracker) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	if e == rdma.EventGap {
		if h := halfOf(c, from.Other()); h != nil {
			h.hole()
		}
	}
	x := event{c, Trouble{Kind: e, From: from, Value: value, Ref: ref}}
	if t.tracer != nil {
		t.tracer.refused(c, from, e, value, ref)
	}
	if k, ok := c.Upper.(*conn); ok {
		k.refuses(from, e, ref)
	}
	t.events.add(x)
}

// add takes the latest one.
func (r *events) add(x event) {
	r.newest = max(r.newest, x.Ref.Number)
	if len(r.ring) < maxEvents {
		r.ring = append(r.ring, x)
		return
	}
	r.ring[r.at] = x
	r.at = (r.at + 1) % maxEvents
}

// attribute adds to tx what happened to its connection while it was under way.
func (r *events) attribute(tx *Transaction, st *storage, packets *tracer) {
	first := tx.First().Number
	if r.newest < first {
		return
	}
	last := tx.Reply.Last.Number
	if last == 0 {
		last = r.newest
	}
	c := tx.Connection.Resolve()
	for i := range r.ring {
		x := &r.ring[(r.at+i)%len(r.ring)]
		if x.Ref.Number < first || x.Ref.Number > last || x.c.Resolve() != c || tx.noteEvent(&x.Trouble) {
			continue
		}
		st.addTrouble(tx, x.Trouble)
		if packets != nil {
			packets.event(tx, &x.Trouble)
		}
	}
}

// noteEvent notes an event that is no trouble of a packet. It returns false if it is one.
func (tx *Transaction) noteEvent(x *Trouble) bool {
	switch x.Kind {
	case rdma.EventResync:
		tx.note(SequenceRestart)
	case rdma.EventDoubted:
		tx.note(SegmentsDoubted)
	case rdma.EventDiffers:
		tx.note(BytesDiffer)
	case rdma.EventUDPLength:
		tx.Note(Note{Kind: UDPLength, N: uint64(x.Value)})
	case rdma.EventMPARejected:
		tx.note(MPARejected)
	case rdma.EventMPARevision:
		tx.Note(Note{Kind: MPARevision, N: uint64(x.Value)})
	case rdma.EventMPAMarkers:
		if x.Value == 1 {
			tx.note(MarkersMissing)
		} else {
			tx.note(MarkersUnasked)
		}
	case rdma.EventUnrequested:
		tx.unplaced = tx.unplaced || x.From == tx.From
	default:
		return false
	}
	return true
}
