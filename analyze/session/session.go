package session

import (
	"math/bits"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// sessionKey is the number of a session and the network that it is in: servers of two overlays may use equal numbers.
// Addresses do not count, since a session may use several.
type sessionKey struct {
	tenant uint64
	id     [16]byte
}

// ownerKey is a client ID and the network that it is in.
type ownerKey struct{ tenant, clientID uint64 }

// session is an NFSv4.1 session.
type session struct {
	sessionKey
	clientID    uint64
	owner       owner
	created     rdma.Ref
	destroyed   rdma.Ref
	first       rdma.Ref
	flags       uint32
	backRefused bool // the client asked for a backchannel, and the server granted none

	granted, asked Channel
	backGranted    Channel

	conns      conns
	fore, back table
	target     uint32 // the server's newest target, plus 1; 0 if not known
	least      uint32 // the least of them
	grant      uint32 // slots, as CREATE_SESSION said; 0 if not known
	calls      uint64
	failed     map[string]uint64 // SEQUENCE by status
	callbacks  map[string]uint64 // by operation
	replies    uint64            // to SEQUENCE, without an error
	flagged    [32]uint64        // of these with a status flag, by bit
	series     series
	meter      meter
}

// status counts the flags of a reply to SEQUENCE.
func (s *session) status(flags uint32) {
	s.replies++
	for ; flags != 0; flags &= flags - 1 {
		s.flagged[bits.TrailingZeros32(flags)]++
	}
}

// statusFlags are the counts by name.
func (s *session) statusFlags() map[string]uint64 {
	m := map[string]uint64{}
	for i, n := range s.flagged {
		if n > 0 {
			m[nfs4.SequenceStatusName(uint32(1)<<i)] = n
		}
	}
	return m
}

// Channel is what CREATE_SESSION said about a channel.
type Channel struct {
	Slots    uint32 `json:"slots"`
	Request  uint32 `json:"max_request_bytes"`
	Response uint32 `json:"max_response_bytes"`
	Cached   uint32 `json:"max_cached_response_bytes"`
	Ops      uint32 `json:"max_operations"`
}

func channel(a *nfs4.ChannelAttrs4) Channel {
	return Channel{Slots: a.CaMaxrequests, Request: a.CaMaxrequestsize, Response: a.CaMaxresponsesize, Cached: a.CaMaxresponsesizeCached, Ops: a.CaMaxoperations}
}

func (s *session) table(back bool) *table {
	if back {
		return &s.back
	}
	return &s.fore
}

// slots is the number of slots up to the highest.
func slots(highest uint32) uint32 { return highest + min(1, ^highest) }

// targeted notes a target of the server.
func (s *session) targeted(highest uint32) {
	t := slots(highest)
	if t == s.target && t == s.fore.limit { // most: the limit is not above what was granted
		return
	}
	s.target = t
	if s.least == 0 || s.target < s.least {
		s.least = s.target
	}
	s.fore.limit = s.target
	if s.grant != 0 {
		s.fore.limit = min(s.grant, s.target)
	}
}

// replied frees the slot of a call, and notes the target of the server if the reply has one.
func (s *session) replied(r *Recorder, slot uint32, tx *transaction.Transaction, at int64, g guard) {
	s.fore.end(r, slot, at)
	if q, ok := peekReply(tx.Reply.Payload, g); ok {
		s.targeted(q.target)
	}
}

// created handles a CREATE_SESSION.
func (r *Recorder) created(v *rpc.View, o *rpc.Operation, a *nfs4.CREATE_SESSION4args) {
	res, ok := o.Result.(*nfs4.CREATE_SESSION4res)
	if !ok || o.Code != 0 || o.Status == "" {
		return
	}
	k := &res.CsrResok4
	x := r.called(v, k.CsrSessionid)
	if x == nil {
		return
	}
	x.clientID, x.owner = a.CsaClientid, r.owners[ownerKey{v.Tx.Connection.Tenant, a.CsaClientid}]
	x.created, x.first, x.flags = v.Tx.Reply.Last, v.Tx.Call.First, k.CsrFlags
	x.granted, x.asked, x.backGranted = channel(&k.CsrForeChanAttrs), channel(&a.CsaForeChanAttrs), channel(&k.CsrBackChanAttrs)
	x.back.limit = x.backGranted.Slots // as well where the reply could not be read when it came
	const backchannel = nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN
	x.backRefused = a.CsaFlags&backchannel != 0 && k.CsrFlags&backchannel == 0
	if c := x.conns.carried(r, v.Tx, v.Tx.From); c != nil {
		c.bound = BoundByCreate
		c.back = k.CsrFlags&backchannel != 0
	}
}

// maxStatuses bounds the statuses and operations that are distinguished.
const maxStatuses = 64

func (r *Recorder) add(held *int, m *map[string]uint64, key string) {
	_, known := (*m)[key]
	if !known && (len(*m) >= maxStatuses || !r.take(held, statusSize)) {
		return
	}
	if *m == nil {
		*m = make(map[string]uint64)
	}
	(*m)[key]++
}

// took counts a call, with its slot and the highest one in use as the client says.
func (s *session) took(r *Recorder, v *rpc.View, slot, highest uint32) {
	s.calls++
	s.meter.count(s.conns.carried(r, v.Tx, v.Tx.From).count(v))
	s.fore.used = max(s.fore.used, slots(slot))
	s.fore.said = max(s.fore.said, slots(highest))
}

// sequence handles a call of a session.
func (r *Recorder) sequence(v *rpc.View, o *rpc.Operation, a *nfs4.SEQUENCE4args) {
	x := r.called(v, a.SaSessionid)
	if x == nil {
		return
	}
	x.took(r, v, a.SaSlotid, a.SaHighestSlotid)
	target := uint32(0)
	if res, ok := o.Result.(*nfs4.SEQUENCE4res); ok && o.Status != "" {
		if o.Code != 0 {
			r.add(&x.conns.held, &x.failed, o.Status)
		} else {
			target = slots(res.SrResok4.SrTargetHighestSlotid)
			x.status(res.SrResok4.SrStatusFlags)
		}
	}
	if tx := v.Tx; tx.Call.Seen() && tx.Reply.Seen() {
		x.series.add(tx.Call.First.Time, tx.Reply.Last.Time, slots(a.SaHighestSlotid), target)
	}
}

// callback handles a COMPOUND of the backward channel.
func (r *Recorder) callback(v *rpc.View) {
	ops := v.Operations()
	if len(ops) == 0 {
		return
	}
	a, ok := ops[0].Args.(*nfs4.CB_SEQUENCE4args)
	if !ok {
		return
	}
	x := r.called(v, a.CsaSessionid)
	if x == nil {
		return
	}
	x.back.used = max(x.back.used, slots(a.CsaSlotid))
	if c := x.conns.carried(r, v.Tx, v.Tx.From.Other()); c != nil {
		c.callbacks++
	}
	for i := 1; i < len(ops); i++ {
		r.add(&x.conns.held, &x.callbacks, ops[i].Name)
		if _, ok := ops[i].Args.(*nfs4.CB_LAYOUTRECALL4args); ok {
			r.pnfs.recalls++
		}
	}
}
