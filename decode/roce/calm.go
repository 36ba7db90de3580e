package roce

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Calm is what somebody who judges packets expects of the requests of one side of a connection, while nothing comes but Sends of one
// packet and their acknowledgements, each the one that has to be next. Such packets change only what is in here. While they
// are plain, too, the Tracker has them change it, and nobody need be shown them: see Tracker.Expect.
type Calm struct {
	On       bool     // something is expected
	Asked    bool     // the newest Send asks for an acknowledgement
	Limited  bool     // the responder grants credits
	Traffic  uint8    // type of service of the Sends
	Syndrome Syndrome // of the newest acknowledgement; Unacknowledged if it is not known
	Tap      int32
	Most     uint32 // bytes of payload
	Next     uint32 // PSN of the next Send
	Shift    uint32 // MSN minus PSN, of messages and of acknowledgements
	Acked    uint32 // PSN
	Room     uint32 // if it is limited, there are credits for so many messages behind that of Acked
	Timeout  int64  // how long an acknowledgement may take, in nanoseconds; 0 if that is not known
	Sends    uint64 // number of the newest PSNs that Sends of one packet have used
	Last     rdma.Ref
	Seen     *Seen

	Credited uint64 // Sends for which there had to be a credit
	Acks     uint64
	Prompt   uint64 // acknowledgements of a Send that had asked for one, and was the newest
}

// Unacknowledged is no Syndrome of an acknowledgement.
const Unacknowledged Syndrome = 0xff

// Seen is what the Calms of all connections have in common.
type Seen struct {
	Latest rdma.Ref // the packet that was noted or shown last
	Each   bool     // each packet is to be shown
}

// CalmKnown is how many of the newest Sends a Calm knows apart: what acknowledges an older one is not expected.
const CalmKnown = 64

// Send judges the Send of one packet while it is on. If it returns false, it is not the one that had to be next, and nothing has changed.
func (q *Calm) Send(p *capture.Packet, l *Lean) bool {
	if l.PSN != q.Next || l.Traffic != q.Traffic || l.Tag != 0 || int32(p.Tap) != q.Tap || uint32(l.PayloadLen) > q.Most {
		return false
	}
	if q.Limited {
		// One request beyond the limit is allowed, to ask for new credits.
		if psnDiff(q.Acked+q.Room+1, l.PSN) < 0 {
			return false
		}
		q.Credited++
	}
	q.Next, q.Asked = (l.PSN+1)&psnMask, l.AckReq
	q.Sends++
	q.Last.Time, q.Last.Number = p.Time, p.Number
	q.Seen.Latest.Time, q.Seen.Latest.Number = p.Time, p.Number
	return true
}

// Ack judges an acknowledgement that is no NAK while it is on. If it returns false, it is not one that could be next, and nothing has
// changed.
func (q *Calm) Ack(p *capture.Packet, l *Lean) bool {
	behind := (q.Next - 1 - l.PSN) & psnMask // 0: it acknowledges all
	if behind >= CalmKnown || uint64(behind) >= q.Sends || l.MSN != (l.PSN+q.Shift)&psnMask || psnDiff(l.PSN, q.Acked) < 0 || int32(p.Tap) != q.Tap {
		return false
	}
	if q.Asked && behind == 0 {
		if q.Timeout != 0 && p.Time-q.Last.Time > q.Timeout {
			return false
		}
		q.Prompt++
		q.Asked = false
	}
	if l.Syndrome != q.Syndrome {
		q.grant(l.Syndrome)
	}
	q.Acked = l.PSN
	q.Acks++
	q.Seen.Latest.Time, q.Seen.Latest.Number = p.Time, p.Number
	return true
}

// grant takes the credits of an acknowledgement.
func (q *Calm) grant(s Syndrome) {
	q.Syndrome = s
	q.Room, q.Limited = s.Credits()
}

// Expect has the Tracker change q for the packets to come that are expected of a side, as long as all packets are plain. The packet at
// hand, the one that Lean took last, belongs to the requests of that side.
func (t *Tracker) Expect(l *Lean, q *Calm) {
	if t.plainBy < 0 {
		return
	}
	fl := t.cache[flowSlot(l.Route.hash, l.DestQP)]
	if fl != nil && l.Opcode == RCAcknowledge {
		fl = fl.plain.peer
	}
	if fl != nil && fl.plain.epoch == t.epoch {
		fl.plain.calm, t.aside = q, true
	}
}

// Noted reports whether the packet that Lean took last was expected, and is noted in a Calm.
func (t *Tracker) Noted() bool { return t.plainBy >= notedBy }

// notedBy is added to Tracker.plainBy if a packet is noted.
const notedBy = 2

// expects reports whether the next packet of the requests of fl is expected, and need not be shown if it is that one.
func (t *Tracker) expects(fl *flow) bool {
	q := fl.plain.calm
	return q != nil && q.On && !q.Seen.Each && fl.plain.epoch == t.epoch
}
