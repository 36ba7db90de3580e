package check

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/tcp"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// conn is what a Checker remembers of a connection.
type conn struct {
	// Fields that most messages and transactions use lie together, for the cache.
	c       *rdma.Connection
	number  uint64 // of the connections that were remembered
	rpc     bool   // it carries RPC-over-RDMA
	ended   bool
	many    bool      // several capture points
	version uint32    // of forward calls, plus 1
	cut     [2]uint64 // signs of missing packets that are no gaps
	settled [2]uint64 // packet number of the latest call of a side that was answered and acknowledged
	repeats []repeat
	flow    [2]flow // by requester
	asks    said    // by forward calls
	grants  said

	// first is the number of the first packet of each side that could carry a
	// request.
	first [2]uint64

	// gaps are the last known counters of missing packets; lost is the capture time of the last loss in each
	// direction, or never if there was none.
	gaps [2]uint64
	lost *[2]int64
	// clipped is the time of the last Send of each side whose chunk lists the capture has cut, or never: it offered more than is known.
	clipped [2]int64

	requests [2]requests // by requester, RoCE and InfiniBand
	marks    [2]marking  // by sender
	wire     [2]wire     // by sender
	sent     [2]sent     // by sender, iWARP
	ddp      *ddpStreams // iWARP, once there was a segment
	taps     [2]int32
	routes   [2]*roce.Route // by sender, of the newest packets of which there are the headers
	forms    [2]*forms      // by sender of calls

	crc       [2]rdma.Ref   // first packet with a wrong CRC
	damaged   []uint64      // packets whose contents are not what was sent, the newest 16
	badICRC   [2]*[2]uint32 // PSNs of the first and the last request with a wrong ICRC, by sender
	suspects  []suspect
	unmatched *unmatchedOps
	malformed []malformed
	fatals    []fatal
	services  uint8       // RPCSEC_GSS services that have been reported, one bit each
	finish    [2]rdma.Ref // iWARP: the first FIN or reset of each side, if others followed
	own       *own        // nil unless connections are distinguished
}

// sent is how far the TCP stream of a side has been seen.
type sent struct {
	known bool
	next  uint32
}

// connTable finds what a Checker remembers of a connection.
type connTable struct {
	*verdicts
	last    *conn // the one used last
	all     map[*rdma.Connection]*conn
	recent  [lastUsed]*conn      // by the ID of the connection
	gone    [64]*rdma.Connection // recently closed
	goneAt  int
	numbers uint64 // of all
}

// lastUsed is how many connections at most are found without a search: those used last.
const lastUsed = 64

const never = math.MinInt64

// giveUpTime is how long, in nanoseconds, a call lost from the capture may still be open after the loss: the time
// that clients wait before they give up.
const giveUpTime = 60e9

// of returns the state of a connection, and creates it if needed.
func (c *connTable) of(k *rdma.Connection) *conn {
	k = k.Resolve()
	if s := c.used(k); s != nil {
		c.enter(s)
		return s
	}
	s := c.all[k]
	if s == nil {
		if c.isGone(k) {
			c.leave()
			return c.void(k)
		}
		s = &conn{c: k, number: c.number(), lost: &[2]int64{never, never}, clipped: [2]int64{never, never}, taps: [2]int32{rdma.NoTap, rdma.NoTap}}
		s.gaps = [2]uint64{k.Sent[0].Gaps, k.Sent[1].Gaps}
		s.own = c.apart.own(k)
		c.all[k] = s
	}
	c.last, c.recent[uint(k.ID)%lastUsed] = s, s
	c.enter(s)
	return s
}

// used returns the state of a connection if it is one of the last that were used, and makes it the last. Otherwise it returns nil.
func (c *connTable) used(k *rdma.Connection) *conn {
	s := c.last
	if s == nil || s.c != k {
		if s = c.recent[uint(k.ID)%lastUsed]; s == nil || s.c != k {
			return nil
		}
		c.last = s
	}
	return s
}

// forget drops the state of a connection.
func (c *connTable) forget(k *rdma.Connection) {
	delete(c.all, k)
	if s := c.recent[uint(k.ID)%lastUsed]; s != nil && s.c == k {
		c.recent[uint(k.ID)%lastUsed] = nil
	}
	if s := c.last; s != nil && s.c == k {
		c.last = nil
	}
}

// ended forgets a connection that has ended.
func (c *connTable) ended(s *conn) {
	c.forget(s.c)
	c.gone[c.goneAt] = s.c
	c.goneAt = (c.goneAt + 1) % len(c.gone)
}

// missing is the number of packets from a side that the capture lacks.
func (s *conn) missing(side rdma.Side) uint64 { return s.c.Sent[side].Gaps + s.cut[side] }

func (s *conn) misses() [2]uint64 { return [2]uint64{s.missing(0), s.missing(1)} }

// losses records that packets are missing from the capture. A packet that arrives late does not undo this:
// what belongs to it may already have been given up.
func (s *conn) losses(now int64) {
	if s.misses() == s.gaps {
		return
	}
	for side := range s.gaps {
		n := s.missing(rdma.Side(side))
		if n < s.gaps[side] {
			s.cut[side] += s.gaps[side] - n
			continue
		}
		if n != s.gaps[side] {
			s.gaps[side], s.lost[side] = n, now
		}
	}
}

// began reports whether the capture includes the beginning of the connection.
func (s *conn) began() bool {
	k := s.c.Resolve()
	return k.Setup[0].Seen() && k.Setup[1].Seen()
}

// whole reports whether everything that a side sent has been captured for long enough before a time, so that
// no call missing from the capture can still be open.
func (s *conn) whole(side rdma.Side, at int64) (Reason, bool) {
	switch {
	case s.many:
		return Ambiguous, false
	case !s.began() && at-s.c.Resolve().First.Time <= giveUpTime:
		return MidStream, false
	case s.lost[side] != never && at-s.lost[side] <= giveUpTime:
		return Gaps, false
	}
	return 0, true
}

// offers is whole for the memory that a side offers: the chunk lists of its calls have been captured, too.
func (s *conn) offers(side rdma.Side, at int64) (Reason, bool) {
	if s.clipped[side] != never && at-s.clipped[side] <= giveUpTime {
		return Cut, false
	}
	return s.whole(side, at)
}

// since reports whether everything that a side sent since a packet is known to have been captured. If the
// capture lacks the beginning of a connection, nothing is known about packets before the first one captured.
func (s *conn) since(side rdma.Side, number uint64) bool {
	return s.began() || s.first[side] != 0 && s.first[side] < number
}

// forward is the side that sends forward calls, if that is known.
func (s *conn) forward() (rdma.Side, bool) {
	return transaction.ClientOf(s.c)
}

// finding starts a finding about an action of a side.
func (s *conn) finding(r id, ref rdma.Ref, from rdma.Side, by Party) *Finding {
	return &Finding{
		Rule: &rules[r], Known: s.deviation(r, from, 0), Ref: ref, Connection: s.c.Resolve().ID, Fabric: s.c.Fabric,
		By: by, From: s.c.Ends[from], To: s.c.Ends[from.Other()],
	}
}

// over reports whether the end of the connection was captured, as opposed to the decoder having given it up.
func (s *conn) over() bool {
	why := s.c.Resolve().Terminated
	return why != "" && !strings.HasPrefix(why, "evicted") && !strings.HasPrefix(why, "queue pair taken over")
}

// role is the party that a side is for forward calls.
func (s *conn) role(side rdma.Side) Party {
	f, ok := s.forward()
	switch {
	case !ok:
		return Unknown
	case side == f:
		return Requester
	}
	return Responder
}

// stream records what a TCP segment carries and acknowledges. Data acknowledged before it was seen is missing
// from the capture, or comes late in it.
func (s *conn) stream(side rdma.Side, f *link.Frame, now int64) {
	if s.c.Ends[0].Addr == s.c.Ends[1].Addr {
		return // the two sides cannot be distinguished
	}
	end := f.TCPSeq + uint32(f.PayloadLen)
	if f.TCPFlags&(tcp.SYN|tcp.FIN) != 0 {
		end++
	}
	if w := &s.sent[side]; !w.known || int32(end-w.next) > 0 {
		w.known, w.next = true, end
	}
	const most = 1 << 30 // the largest window (RFC 7323, section 2.3)
	if w := &s.sent[side.Other()]; f.TCPFlags&(tcp.ACK|tcp.RST) == tcp.ACK && w.known && f.TCPAck-w.next-1 < most {
		w.next = f.TCPAck
		s.cut[side.Other()]++
		s.losses(now)
	}
}

// tap records the capture points of a connection: that of a packet from src.
func (s *conn) tap(src netip.Addr, tap uint16) {
	t := int32(tap)
	if s.taps[0] == t && s.taps[1] == t {
		return // as always, with one capture point
	}
	for i := range s.taps {
		if s.c.Ends[i].Addr == src {
			if s.taps[i] == rdma.NoTap {
				s.taps[i] = t
			}
			break
		}
	}
	if s.taps[0] != rdma.NoTap && s.taps[0] != t || s.taps[1] != rdma.NoTap && s.taps[1] != t {
		s.many = true
	}
}

func (s *conn) badCRC(ref rdma.Ref) {
	if s.c.Sent[0].BadCRC|s.c.Sent[1].BadCRC == 0 {
		return
	}
	for side := range s.crc {
		if s.c.Sent[side].BadCRC > 0 && !s.crc[side].Seen() {
			if s.crc[side] = ref; s.c.Fabric != rdma.IWARP {
				s.damaged = append(s.damaged, ref.Number) // if others follow, something on the way changed all
			}
		}
	}
}

// damage notes that a packet, or each of several, is not what was sent: what was sent instead is missing from the capture.
func (s *conn) damage(first, last rdma.Ref) {
	if len(s.damaged) >= 16 {
		s.damaged = slices.Delete(s.damaged, 0, 2)
	}
	s.damaged = append(s.damaged, first.Number, last.Number)
	s.cut[0]++
	s.cut[1]++
	s.losses(last.Time)
}

// isDamaged reports whether one of the packets between two is not what was sent.
func (s *conn) isDamaged(first, last uint64) bool {
	return slices.ContainsFunc(s.damaged, func(n uint64) bool { return first <= n && n <= last })
}

// sawBadICRC notes a request with a wrong ICRC.
func (s *conn) sawBadICRC(src netip.Addr, psn uint32) {
	if s.c.Ends[0].Addr == s.c.Ends[1].Addr {
		return
	}
	for side := range s.badICRC {
		if s.c.Ends[side].Addr != src {
			continue
		}
		if s.badICRC[side] == nil {
			s.badICRC[side] = &[2]uint32{psn, psn}
		}
		s.badICRC[side][1] = psn
	}
}

// reactionToBadICRC says what the receiver did with packets whose ICRC is wrong, as far as its acknowledgements tell.
func (s *conn) reactionToBadICRC(side rdma.Side) string {
	n, w, psn := &s.c.Sent[side], &s.wire[side], s.badICRC[side]
	switch {
	case psn == nil || !w.hasAck || s.many:
	case n.Retransmitted == 0 && reached(w.acked, psn[1]):
		return "acknowledged all the same: they are wrong in the capture only"
	case n.Retransmitted > 0 && !reached(w.acked, psn[0]):
		return "sent again, and none was ever acknowledged: the receiver drops them"
	}
	if 5*n.BadCRC > n.Packets {
		return "their number suggests that the capture itself is the cause"
	}
	return "a receiver drops such packets; they are sent again"
}

// Merged is decode.Observer.Merged. The states of the two connections are not joined: both began
// before the capture, so little of them is judged anyway.
func (c *Checker) Merged(into *rdma.Connection, _ rdma.Side, from *rdma.Connection, _ rdma.Side) {
	old := c.conns.all[from]
	c.conns.forget(from)
	s := c.conns.of(into)
	if old != nil {
		s.rpc = s.rpc || old.rpc
		c.fatals(old)
		c.apart.merged(s.own, old.own)
	}
	*s.lost = [2]int64{c.packet.ref.Time, c.packet.ref.Time}
	s.gaps = s.misses()
	s.flow = [2]flow{}
	s.wire = [2]wire{}
	s.requests, s.marks, s.routes, s.forms = [2]requests{}, [2]marking{}, [2]*roce.Route{}, [2]*forms{}
}

// Closed is decode.Observer.Closed.
func (c *Checker) Closed(k *rdma.Connection) {
	c.unanswered(k)
	s := c.conns.all[k]
	if s == nil {
		return
	}
	s.ended = true
	s.losses(c.packet.ref.Time)
	c.closed(s)
}

// unanswered reports a connection that was asked for in vain.
func (c *Checker) unanswered(k *rdma.Connection) {
	c.unlike(k)
	a := decode.AskedBy(k)
	final := a.Requests > 1 || k.Terminated != "" && k.Fabric == rdma.IWARP // a single request may be answered after the capture
	if a.Connections == 0 || !final || c.opt.Match != nil {
		return
	}
	s := c.conns.of(k)
	if s.many {
		return
	}
	f := s.finding(ruleNoAnswer, k.First, 0, Unknown)
	f.Expected, f.Seen = "an answer", text.Asked(&a, "by RDMA")
	c.report(f)
}

// unlike reports the packets of a side that its peer does not take: it sends the other version of RoCE only, or has another P_Key.
func (c *Checker) unlike(k *rdma.Connection) {
	side := rdma.Side(0)
	if k.Sent[1].Packets > 0 {
		side = 1
	}
	n := &k.Sent[side]
	if !k.OtherVersion && k.PKeys == [2]uint16{} || n.Retransmitted == 0 || c.opt.Match != nil {
		return
	}
	s := c.conns.of(k)
	if s.many {
		return
	}
	sends, expects := "of RoCEv1", "of RoCEv2, as the peer sends"
	switch {
	case !k.OtherVersion:
		sends, expects = fmt.Sprintf("with P_Key 0x%04x", k.PKeys[0]), fmt.Sprintf("with a P_Key that matches 0x%04x, that of the peer", k.PKeys[1])
	case k.Fabric == rdma.RoCEv2:
		sends, expects = "of RoCEv2", "of RoCEv1, as the peer sends"
	}
	f := s.finding(ruleNoAnswer, k.First, side, Unknown)
	f.Expected = "packets " + expects
	f.Seen = fmt.Sprintf("%s %s, %d sent again, and no answer", units.Plural(n.Packets, "packet"), sends, n.Retransmitted)
	c.report(f)
}

// closed checks what had to wait for the end of a connection.
func (c *Checker) closed(s *conn) {
	c.enter(s)
	s.own.closed(s.c)
	s.losses(c.packet.ref.Time)
	c.credits.unconfirmed(s)
	c.memory.suspected(s, true)
	c.unmatched.reportRepeats(s, c.packet.ref.Number, true)
	c.unmatched.unrefused(s)
	c.fatals(s)
	c.callbacks.unbound(s.c)
	c.health(s)
	c.conns.ended(s)
}

// number numbers what is remembered of connections.
func (c *connTable) number() uint64 {
	c.numbers++
	return c.numbers
}

// isGone reports whether a connection was closed recently: stragglers must not bring it back.
func (c *connTable) isGone(k *rdma.Connection) bool { return slices.Contains(c.gone[:], k) }

// void is the state for stragglers, which are not judged.
func (c *connTable) void(k *rdma.Connection) *conn {
	return &conn{c: k, number: c.number(), many: true, lost: new([2]int64), taps: [2]int32{rdma.NoTap, rdma.NoTap}}
}

// endedBy is the address of the peer that ended the connection, in an orderly way or by a reset; empty if
// unknown. It matches the wording of the trackers.
func (s *conn) endedBy() string {
	for _, how := range [...]string{"disconnect request from ", "TCP FIN from ", "TCP reset from "} {
		if from, ok := strings.CutPrefix(s.c.Terminated, how); ok {
			return from
		}
	}
	return ""
}

// resent describes how many packets of a side were retransmitted, and what asked for them.
func (s *conn) resent(side rdma.Side) string {
	n, peer := &s.c.Sent[side], &s.c.Sent[side.Other()]
	if s.c.Fabric == rdma.IWARP {
		return fmt.Sprintf("%d of %s seen again", n.Retransmitted, units.Plural(int(n.Packets), "TCP segment"))
	}
	here, there := link.AddrString(s.c.Ends[side].Addr), link.AddrString(s.c.Ends[side.Other()].Addr)
	if here == there {
		here, there = "this side", "the peer"
	}
	return fmt.Sprintf("%d of %s seen again; %s from %s, %d from %s", n.Retransmitted, units.Plural(int(n.Packets), "packet"),
		units.Plural(int(peer.NAKs), "NAK"), there, n.NAKs, here)
}

// health reports findings about all packets of a connection.
func (c *Checker) health(s *conn) {
	if s.c.Fabric == rdma.TCP || s.c.Fabric == rdma.UDP || c.opt.Match != nil {
		return
	}
	if s.c.State == rdma.Rejected {
		f := s.finding(ruleRejected, s.c.Last, 1, Responder)
		f.Expected, f.Seen = "a connection", s.c.Terminated
		c.report(f)
		return
	}
	if fwd, ok := s.forward(); ok && s.rpc && s.c.Ends[0].Addr != s.c.Ends[1].Addr {
		switch from := s.endedBy(); from {
		case "":
		case link.AddrString(s.c.Ends[fwd.Other()].Addr):
			ref := s.c.Last
			if at := s.finish[fwd.Other()]; at.Seen() {
				ref = at
			}
			f := s.finding(ruleClosed, ref, fwd.Other(), Responder)
			f.Expected, f.Seen = "the requester to end it", s.c.Terminated
			c.report(f)
		default:
			c.ok(ruleClosed)
		}
	}
	c.inline(s)
	c.fabric.fabricHealth(s)
	c.streams.streamHealth(s)
	for side := range rdma.Side(2) {
		n := &s.c.Sent[side]
		if n.Packets == 0 {
			continue
		}
		if n.BadCRC == 0 {
			c.ok(ruleBadCRC)
		} else {
			f := s.finding(ruleBadCRC, s.crc[side], side, Unknown)
			f.Expected = "right checksums"
			f.Seen = fmt.Sprintf("%d of %s with a wrong checksum", n.BadCRC, units.Plural(n.Packets, "packet"))
			if f.Reaction = s.reactionToBadICRC(side); s.c.Fabric == rdma.IWARP {
				s.badCRC32C(f, side)
			}
			c.report(f)
		}
		if n.Retransmitted == 0 {
			c.ok(ruleResent)
		} else {
			f := s.finding(ruleResent, s.c.Last, side, Unknown)
			f.Expected = "each packet once"
			f.Seen = s.resent(side)
			c.report(f)
		}
		if n.Gaps == 0 {
			c.ok(ruleGaps)
		} else {
			unit := "packet"
			if s.c.Fabric == rdma.IWARP {
				unit = "byte"
			}
			f := s.finding(ruleGaps, s.c.Last, side, Unknown)
			f.Expected, f.Seen = "all packets", units.Plural(int(n.Gaps), unit)+" missing"
			c.report(f)
		}
	}
}

// badCRC32C says of FPDUs with a wrong CRC why it is wrong, if that is known, and what comes of them: TCP has delivered them, so that nothing is
// sent again (RFC 5044, section 8).
func (s *conn) badCRC32C(f *Finding, side rdma.Side) {
	n := &s.c.Sent[side]
	f.Seen = fmt.Sprintf("%s with a wrong checksum", units.Plural(int(n.BadCRC), "FPDU"))
	f.Reaction = "a receiver ends the connection: nothing is sent again"
	if why := s.c.Resolve().Terminated; strings.HasPrefix(why, "Terminate: MPA") {
		f.Reaction = "the receiver ended the connection: " + why
	}
	if n.ZeroCRC < n.BadCRC {
		return
	}
	f.By = s.role(side)
	f.Seen += ", which is 0: the sender makes none"
	asked := func(who rdma.Side) bool { return s.c.Setup[who].Seen() && s.c.Setup[who].CRC }
	switch {
	case asked(side.Other()) && s.c.Setup[side].Seen() && !s.c.Setup[side].CRC:
		f.Seen += ", although the peer's MPA frame has the C flag (its own has not): one of the two is enough"
	case asked(side.Other()):
		f.Seen += ", although the peer's MPA frame has the C flag"
	case asked(side):
		f.Seen += ", although its own MPA frame has the C flag"
	}
}

// sorted returns the connections by number.
func (c *connTable) sorted() []*conn {
	out := make([]*conn, 0, len(c.all))
	for _, s := range c.all {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *conn) int { return cmp.Compare(a.c.ID, b.c.ID) })
	return out
}
