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
	if t.tracing {
		t.refused(c, from, e, value, ref)
	}
	if k, ok := c.Upper.(*conn); ok {
		k.refuses(from, e, ref)
	}
	r := &t.events
	r.newest = max(r.newest, ref.Number)
	if len(r.ring) < maxEvents {
		r.ring = append(r.ring, x)
		return
	}
	r.ring[r.at] = x
	r.at = (r.at + 1) % maxEvents
}

// again notes a packet of a transaction that was seen again.
func (t *Tracker) again(tx *Transaction, from rdma.Side, ref rdma.Ref) {
	tx.Retransmits++
	t.trouble(tx, Trouble{Kind: rdma.EventRetransmit, From: from, Ref: ref, Own: true})
}

func (t *Tracker) trouble(tx *Transaction, x Trouble) {
	if n := len(tx.Troubles); n >= maxTroubles || x.Own && n >= maxOwn {
		tx.TroublesLost++
		return
	}
	before := cap(tx.Troubles)
	tx.Troubles = append(tx.Troubles, x)
	t.grew(tx, (cap(tx.Troubles)-before)*troubleSize)
}

// troubles adds what happened to the connection while tx was under way.
func (t *Tracker) troubles(tx *Transaction) {
	first := tx.First().Number
	if t.events.newest < first {
		return
	}
	last := tx.Reply.Last.Number
	if last == 0 {
		last = t.events.newest
	}
	r, c := &t.events, tx.Connection.Resolve()
	for i := range r.ring {
		x := &r.ring[(r.at+i)%len(r.ring)]
		if x.Ref.Number < first || x.Ref.Number > last || x.c.Resolve() != c {
			continue
		}
		switch x.Kind {
		case rdma.EventResync:
			tx.note(SequenceRestart)
			continue
		case rdma.EventDoubted:
			tx.note(SegmentsDoubted)
			continue
		case rdma.EventDiffers:
			tx.note(BytesDiffer)
			continue
		case rdma.EventUDPLength:
			tx.Note(Note{Kind: UDPLength, N: uint64(x.Value)})
			continue
		case rdma.EventMPARejected:
			tx.note(MPARejected)
			continue
		case rdma.EventMPARevision:
			tx.Note(Note{Kind: MPARevision, N: uint64(x.Value)})
			continue
		case rdma.EventMPAMarkers:
			if x.Value == 1 {
				tx.note(MarkersMissing)
			} else {
				tx.note(MarkersUnasked)
			}
			continue
		case rdma.EventUnrequested:
			tx.unplaced = tx.unplaced || x.From == tx.From
			continue
		}
		t.trouble(tx, x.Trouble)
		if t.tracing {
			t.traceEvent(tx, &x.Trouble)
		}
	}
}
