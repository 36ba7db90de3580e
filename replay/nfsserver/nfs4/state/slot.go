package state

import (
	"sync"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// slotOverhead is the size of a slot without the reply that it keeps, in bytes.
const slotOverhead = 256

// slot is an entry of a session's reply cache (RFC 8881, section 2.10.6.1).
type slot struct {
	mu     sync.Mutex
	seq    uint32 // of the last COMPOUND; the first one has 1
	busy   bool
	cached bool
	print  Fingerprint
	result nfs4.SEQUENCE4resok
	reply  []byte // if cached
}

// Fingerprint distinguishes a COMPOUND from another one that uses its sequence ID by mistake (RFC
// 8881, section 2.10.6.1.3.1, "false retry").
type Fingerprint struct {
	Principal  Principal
	Operations uint64 // hash of the operations' numbers
	Ops        uint32
}

// Place is a COMPOUND's place in a session, between Sequence and its End.
type Place struct {
	Client  *Client
	session *Session
	slot    *slot
	leases  *leases
	Keep    bool // the client wants the reply to be kept (sa_cachethis)
	Result  nfs4.SEQUENCE4resok
	// Reply and Cached limit the reply in bytes, RPC header included.
	Reply, Cached uint32
}

// Repeat is whether a COMPOUND was sent again.
type Repeat uint8

// What Sequence may find.
const (
	First    Repeat = iota // not seen before: execute it
	Cached                 // the reply was kept
	Uncached               // the reply was not kept
)

// Sequence is SEQUENCE. ops and size count the whole call; size includes
// the RPC header. If it returns First and NFS4_OK, p.End has to be called once.
// If it returns Cached, the old reply is appended to buf. Otherwise p.Result is the result of the
// first SEQUENCE.
func (ss *Sessions) Sequence(a *nfs4.SEQUENCE4args, print Fingerprint, size int, p *Place, buf []byte) ([]byte, Repeat, Status) {
	s := ss.find(a.SaSessionid)
	switch {
	case s == nil:
		return buf, First, nfs4.NFS4ERR_BADSESSION
	case uint64(a.SaSlotid) >= uint64(len(s.slots)):
		return buf, First, nfs4.NFS4ERR_BADSLOT
	case a.SaHighestSlotid < a.SaSlotid:
		return buf, First, nfs4.NFS4ERR_BAD_HIGH_SLOT
	}
	l := &s.slots[a.SaSlotid]
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a.SaSequenceid == l.seq+1 && !l.busy:
	case a.SaSequenceid == l.seq && l.busy:
		return buf, First, nfs4.NFS4ERR_DELAY
	case a.SaSequenceid == l.seq && l.print != (Fingerprint{}):
		if l.print != print {
			return buf, First, nfs4.NFS4ERR_SEQ_FALSE_RETRY
		}
		ss.leases.renew(s.client)
		if !l.cached {
			p.Result = l.result
			return buf, Uncached, nfs4.NFS4_OK
		}
		return append(buf, l.reply...), Cached, nfs4.NFS4_OK
	default:
		return buf, First, nfs4.NFS4ERR_SEQ_MISORDERED
	}
	switch {
	case uint64(size) > uint64(s.request):
		return buf, First, nfs4.NFS4ERR_REQ_TOO_BIG
	case print.Ops > s.ops:
		return buf, First, nfs4.NFS4ERR_TOO_MANY_OPS
	}
	// From here on the lease does not run out; it may have just before.
	s.client.busy.Add(1)
	if s.dead.Load() {
		s.client.busy.Add(-1)
		return buf, First, nfs4.NFS4ERR_BADSESSION
	}
	ss.leases.renew(s.client)
	l.seq, l.busy, l.cached, l.print = a.SaSequenceid, true, false, print
	l.result = nfs4.SEQUENCE4resok{
		SrSessionid: a.SaSessionid, SrSequenceid: a.SaSequenceid, SrSlotid: a.SaSlotid,
		SrHighestSlotid: uint32(len(s.slots) - 1), SrTargetHighestSlotid: uint32(len(s.slots) - 1),
		SrStatusFlags: s.client.flags(),
	}
	*p = Place{Client: s.client, session: s, slot: l, leases: ss.leases, Keep: a.SaCachethis, Result: l.result, Reply: s.reply, Cached: s.cached}
	return buf, First, nfs4.NFS4_OK
}

// End ends a COMPOUND. reply is its whole result, from the status on; nil if it
// is not to be kept. A reply beyond p.Cached is not kept.
func (p *Place) End(reply []byte) {
	l := p.slot
	l.mu.Lock()
	l.busy = false
	if reply != nil && (uint64(len(reply)) <= uint64(p.Cached)) {
		l.cached = true
		l.reply = append(l.reply[:0], reply...)
	}
	l.mu.Unlock()
	p.leases.renew(p.Client)
	p.Client.busy.Add(-1)
}

// Session is the session of a COMPOUND.
func (p *Place) Session() SessionID { return p.session.id }
