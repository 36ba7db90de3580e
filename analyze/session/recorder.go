package session

import (
	"cmp"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Limits of what is remembered. Whatever exceeds them is counted.
const (
	maxSessions    = 1024
	maxOwners      = 1024
	maxClients     = 1024
	maxConnections = 64   // of one session or client
	maxSlots       = 4096 // of one session
	maxOpen        = 1 << 16
	maxText        = 128 // bytes of an owner or scope
)

// Recorder collects what the Report says, and fills in Transaction.Slots. A Decoder has its Observer, Ended is for
// decode.Options.Transactions.Ended, and Transaction is passed each transaction, on another goroutine if decode.Options.Concurrent is set.
type Recorder struct {
	mu       sync.Mutex
	sessions map[sessionKey]*session
	order    []*session
	owners   map[ownerKey]owner
	greeted  map[greeting]bool // addresses that EXCHANGE_ID succeeded at
	greets   []greeting        // in order
	clients  map[clientKey]*client
	byOrder  []*client
	latest   *client // the one found last
	open     transaction.Table[openCall]
	view     rpc.View // of calls that are open

	live   bool
	slots  bool // only Transaction.Slots is wanted
	number int  // of sessions and clients

	limit int // of held, in bytes
	held  int // sessions, clients, open calls, owners and layouts

	pnfs   pnfs
	lost   Lost
	hidden uint64 // COMPOUNDs that could not be decoded
}

// Lost counts what exceeded the limits.
type Lost struct {
	Sessions    uint64 `json:"sessions"`    // calls of sessions that are not listed
	Clients     uint64 `json:"clients"`     // calls of clients that are not listed
	Connections uint64 `json:"connections"` // calls on connections that are not listed
	Slots       uint64 `json:"slots"`
	Calls       uint64 `json:"calls"` // open at once
	Layouts     uint64 `json:"layouts"`
}

// New makes a Recorder. peek opens what RPCSEC_GSS has wrapped in calls; it may be nil.
func New(peek rpc.Unwrapper) *Recorder {
	r := &Recorder{
		sessions: make(map[sessionKey]*session), owners: make(map[ownerKey]owner), greeted: make(map[greeting]bool), clients: make(map[clientKey]*client),
		limit: DefaultMemory,
	}
	r.view.Unwrap = peek
	r.pnfs.init()
	return r
}

// owner is what EXCHANGE_ID said about a client.
type owner struct {
	client, server, scope string
	minor                 uint64
}

// openCall is a call without its reply.
type openCall struct {
	s     *session
	c     *conn
	g     *client // of a version without sessions
	slot  uint32
	xid   uint32
	first uint64 // packet number
	back  bool
	guard guard
}

// conn is a connection as a session, or a client, uses it.
type conn struct {
	c          *rdma.Connection
	client     rdma.Side
	bound      Bound
	back       bool // bound to the backchannel
	calls      uint64
	callbacks  uint64
	read, sent uint64 // bytes of files
	time       int64  // nanoseconds, of the calls that were answered
	answered   uint64
	open, most int
	last       int64 // when the newest call began
}

// Bound is how a connection came to belong to a session.
type Bound uint8

// Ways of that.
const (
	BoundByUse    Bound = iota // it carries calls of the session
	BoundByCreate              // CREATE_SESSION came on it
	BoundByBind                // BIND_CONN_TO_SESSION
)

var boundNames = [...]string{"use", "CREATE_SESSION", "BIND_CONN_TO_SESSION"}

func (b Bound) String() string { return boundNames[b] }

type conns struct {
	held int  // bytes of the session or client, the connections included
	gone bool // the Recorder has dropped it

	list []*conn
	byID map[int]*conn

	last   *conn // the one found last
	lastID int
}

// of is the entry of a connection in the session or client; nil beyond the limit.
func (l *conns) of(r *Recorder, k *rdma.Connection, client rdma.Side) *conn {
	k = k.Resolve()
	if l.last != nil && l.lastID == k.ID {
		return l.last
	}
	if c := l.byID[k.ID]; c != nil {
		l.last, l.lastID = c, k.ID
		return c
	}
	if len(l.list) >= maxConnections && (!r.live || !l.drop(r)) || !r.take(&l.held, connSize) {
		return nil
	}
	if l.byID == nil {
		l.byID = make(map[int]*conn)
	}
	c := &conn{c: k, client: client}
	l.byID[k.ID] = c
	l.list = append(l.list, c)
	return c
}

// carried returns the entry of the connection of a call that has ended.
func (l *conns) carried(r *Recorder, tx *transaction.Transaction, client rdma.Side) *conn {
	c := l.of(r, tx.Connection, client)
	if c == nil {
		r.lost.Connections++
	}
	return c
}

// drop forgets the connection without open calls that was idle longest.
func (l *conns) drop(r *Recorder) bool {
	at := -1
	for i, c := range l.list {
		if c.open == 0 && (at < 0 || c.last < l.list[at].last) {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	c := l.list[at]
	r.lost.Connections += c.calls
	l.last = nil
	maps.DeleteFunc(l.byID, func(_ int, x *conn) bool { return x == c })
	l.list = slices.Delete(l.list, at, at+1)
	l.held -= connSize
	r.held -= connSize
	return true
}

func (c *conn) opened(at int64) {
	if c != nil {
		c.last = max(c.last, at)
		c.open++
		c.most = max(c.most, c.open)
	}
}

func (c *conn) closed() {
	if c != nil && c.open > 0 {
		c.open--
	}
}

// clientKey is the two ends of a client without sessions: version 2, 3, or 4.0.
type clientKey struct {
	client, server netip.Addr
	tenant         uint64 // equal addresses in two overlays are two clients
	version        uint32
}

type client struct {
	clientKey
	conns conns
	calls table // without slots
	meter meter
}

// ended takes a call that is open no more; at is 0 if it got no reply.
func (r *Recorder) ended(o *openCall, at int64) {
	o.c.closed()
	if o.g != nil {
		o.g.calls.leave(at)
	}
}

// compoundProcedure is the number of COMPOUND.
const compoundProcedure = 1

// Observer returns what tells the Recorder of messages.
func (r *Recorder) Observer() decode.Observer { return decode.Observer{Message: r.Message} }

// Message is decode.Observer.Message.
func (r *Recorder) Message(tx *transaction.Transaction, reply bool, s *rdma.Send) {
	if !r.follows(tx) {
		return
	}
	r.mu.Lock()
	if reply {
		r.replied(tx, s.Last.Time)
	} else {
		r.call(tx, s)
	}
	r.mu.Unlock()
}

// follows reports whether calls of its kind are followed.
func (r *Recorder) follows(tx *transaction.Transaction) bool {
	if !tx.Named || tx.Program != nfs3.NFS_PROGRAM {
		return tx.Named && callback(tx)
	}
	return !r.slots || tx.Version >= 4 // versions without sessions have no slots
}

// callback reports whether a transaction is one of a program for callbacks.
func callback(tx *transaction.Transaction) bool {
	return tx.Program >= 0x40000000 && tx.Program < 0x60000000
}

// call takes a call.
func (r *Recorder) call(tx *transaction.Transaction, s *rdma.Send) {
	callback := callback(tx)
	if o, ok := r.open.Get(tx); ok {
		if o.first == s.First.Number || o.xid == tx.XID {
			return // sent again
		}
		r.ended(&o, 0) // without a reply
		r.close(tx)
	}
	if !callback && tx.Version < 4 {
		r.began(tx, s.First.Time)
		return
	}
	if tx.Procedure != compoundProcedure {
		return // NULL
	}
	q, minor, g, ok := peekCall(tx.Call.Payload, callback)
	if g == private && r.view.Unwrap != nil {
		q, minor, ok = r.opened(tx)
	}
	switch {
	case ok:
		x := r.session(tx.Connection, q.session, s.First)
		if x == nil {
			return
		}
		var c *conn
		if !callback {
			c = x.conns.of(r, tx.Connection, tx.From)
			c.opened(s.First.Time)
			x.meter.last = max(x.meter.last, s.First.Time)
		}
		t := x.table(callback)
		tx.Slots, tx.SlotLimit = t.begin(r, &x.conns.held, q.slot, s.First.Time), t.limit
		if !r.keep(tx, openCall{s: x, c: c, slot: q.slot, back: callback, guard: g}) {
			c.closed()
			x.table(callback).end(r, q.slot, 0)
		}
	case g != private && minor == 0 && !callback:
		r.began(tx, s.First.Time)
	case g != private:
		r.keep(tx, openCall{guard: g}) // it may create a session
	}
}

// began takes a call of a version without sessions.
func (r *Recorder) began(tx *transaction.Transaction, at int64) {
	if r.slots {
		return // it has none
	}
	if g := r.client(tx); g != nil {
		c := g.conns.of(r, tx.Connection, tx.From)
		c.opened(at)
		g.calls.enter(at)
		g.meter.last = max(g.meter.last, at)
		if o := (openCall{c: c, g: g}); !r.keep(tx, o) {
			r.ended(&o, 0)
		}
	}
}

// opened decodes a call whose body is encrypted.
func (r *Recorder) opened(tx *transaction.Transaction) (q sequence, minor uint32, ok bool) {
	r.view.Set(tx)
	minor, _ = r.view.MinorVersion()
	ops := r.view.Operations()
	if len(ops) == 0 {
		return q, minor, false
	}
	switch a := ops[0].Args.(type) {
	case *nfs4.SEQUENCE4args:
		return sequence{session: a.SaSessionid, slot: a.SaSlotid, highest: a.SaHighestSlotid}, minor, true
	case *nfs4.CB_SEQUENCE4args:
		return sequence{session: a.CsaSessionid, slot: a.CsaSlotid, highest: a.CsaHighestSlotid}, minor, true
	}
	return q, minor, false
}

// keep notes that a call is open; false if there is no room.
func (r *Recorder) keep(tx *transaction.Transaction, o openCall) bool {
	if r.open.Len() >= maxOpen || !r.room(openSize) {
		r.lost.Calls++
		return false
	}
	r.held += openSize
	o.xid, o.first = tx.XID, tx.Call.First.Number
	r.open.Put(tx, o)
	return true
}

// close takes a call off the list of open ones.
func (r *Recorder) close(tx *transaction.Transaction) (o openCall, ok bool) {
	if o, ok = r.open.Take(tx); ok {
		r.held -= openSize
	}
	return o, ok
}

// replied handles the reply to an open call.
func (r *Recorder) replied(tx *transaction.Transaction, at int64) {
	if o, ok := r.close(tx); ok {
		r.ended(&o, at)
		r.answered(&o, tx, at)
	}
}

// answered looks at the reply to a call that is open no more.
func (r *Recorder) answered(o *openCall, tx *transaction.Transaction, at int64) {
	switch {
	case o.s != nil && o.back:
		o.s.back.end(r, o.slot, at)
	case o.s != nil:
		o.s.replied(r, o.slot, tx, at, o.guard)
	case o.c == nil && o.g == nil:
		if id, slots, back, ok := peekCreated(tx.Reply.Payload, o.guard); ok {
			if x := r.session(tx.Connection, id, tx.Call.First); x != nil {
				x.fore.limit, x.grant, x.back.limit = slots, slots, back
			}
		}
	}
}

// client is the sender of a call of a version without sessions.
func (r *Recorder) client(tx *transaction.Transaction) *client {
	key := clientKey{tx.Client().Addr, tx.Server().Addr, tx.Connection.Tenant, tx.Version}
	g := r.latest
	if g != nil && g.version == key.version && g.client == key.client && g.server == key.server && g.tenant == key.tenant {
		return g
	}
	g = r.clients[key]
	if g == nil {
		if len(r.clients) >= maxClients || !r.room(clientSize) {
			if !r.live {
				return nil
			}
			r.idlest()
			if !r.room(clientSize) {
				return nil
			}
		}
		r.number++
		g = &client{clientKey: key, meter: meter{number: r.number}}
		r.take(&g.conns.held, clientSize)
		r.clients[key] = g
		r.byOrder = append(r.byOrder, g)
	}
	r.latest = g
	return g
}

// idlest drops the sessions and clients that were idle longest, with their open calls. Their calls count as beyond the limits.
func (r *Recorder) idlest() {
	r.latest = nil
	if len(r.byOrder) > 0 && (len(r.sessions) < maxSessions || len(r.clients) >= maxClients) {
		r.byOrder = newer(r.byOrder, func(g *client) *meter { return &g.meter }, func(g *client) {
			delete(r.clients, g.clientKey)
			r.lost.Clients += g.meter.calls
			r.drop(&g.conns)
		})
	}
	if len(r.order) > 0 && (len(r.clients) < maxClients || len(r.sessions) >= maxSessions) {
		r.order = newer(r.order, func(x *session) *meter { return &x.meter }, func(x *session) {
			delete(r.sessions, x.sessionKey)
			r.lost.Sessions += x.meter.calls
			r.drop(&x.conns)
		})
	}
	r.open.DeleteFunc(func(o openCall) bool {
		if o.s != nil && o.s.conns.gone || o.g != nil && o.g.conns.gone {
			r.held -= openSize
			return true
		}
		return false
	})
}

// newer drops the quarter of a list that was idle longest: one at a time would cost a look at all for each.
func newer[T any](list []T, of func(T) *meter, drop func(T)) []T {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(of(a).last, of(b).last) })
	n := (len(list) + 3) / 4
	for _, x := range list[:n] {
		drop(x)
	}
	list = slices.Delete(list, 0, n)
	slices.SortFunc(list, func(a, b T) int { return of(a).number - of(b).number })
	return list
}

// session returns the session with an ID in the network of a connection, and makes it if it is new. It is nil if there are too many.
func (r *Recorder) session(k *rdma.Connection, id [16]byte, at rdma.Ref) *session {
	key := sessionKey{k.Tenant, id}
	x := r.sessions[key]
	if x == nil {
		if len(r.sessions) >= maxSessions || !r.room(sessionSize) {
			if !r.live {
				return nil
			}
			r.idlest()
			if !r.room(sessionSize) {
				return nil
			}
		}
		r.number++
		x = &session{sessionKey: key, first: at, meter: meter{number: r.number, last: at.Time}}
		r.take(&x.conns.held, sessionSize)
		r.sessions[key] = x
		r.order = append(r.order, x)
	}
	return x
}

// called returns the session of a call that has ended.
func (r *Recorder) called(v *rpc.View, id [16]byte) *session {
	x := r.session(v.Tx.Connection, id, v.Tx.Call.First)
	if x == nil {
		r.lost.Sessions++
	}
	return x
}

// Ended takes a transaction at its end, on the goroutine that Message is called on. Without a reply the slot stays in use: the
// client has to send the call again (RFC 8881, section 2.10.6.2).
func (r *Recorder) Ended(tx *transaction.Transaction) {
	if !r.follows(tx) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.open.Len() == 0:
	case tx.Reply.Seen():
		r.replied(tx, tx.Reply.Last.Time) // if Message was not told of it
	default:
		if o, ok := r.close(tx); ok {
			r.ended(&o, 0)
		}
	}
}

// Transaction takes a transaction at its end.
func (r *Recorder) Transaction(v *rpc.View) {
	tx := v.Tx
	if !tx.Named {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case tx.Program != nfs3.NFS_PROGRAM:
		if _, ok := v.Args().(*nfs4.CbCompoundArgs); ok {
			r.callback(v)
		}
	case tx.Version < 4:
		if v.Clean() || v.Args() != nil {
			r.plain(v)
		}
	case tx.Procedure == compoundProcedure:
		r.compound(v)
	}
	r.pnfs.io(r, v)
}

// plain handles a call of a version without sessions.
func (r *Recorder) plain(v *rpc.View) {
	g := r.client(v.Tx)
	if g == nil {
		r.lost.Clients++
		return
	}
	g.meter.count(g.conns.carried(r, v.Tx, v.Tx.From).count(v))
}

// count adds a call to what a connection carried.
func (c *conn) count(v *rpc.View) (bytes uint64) {
	read, written := moved(v)
	if c == nil {
		return read + written
	}
	c.calls++
	tx := v.Tx
	if d, ok := tx.Took(); ok {
		c.answered++
		c.time += int64(d)
	}
	c.read += read
	c.sent += written
	return read + written
}

// Procedures of NFSv3 (RFC 1813, sections 3.3.6 and 3.3.7).
const (
	readProcedure  = 6
	writeProcedure = 7
)

// unmoved reports whether a call is one of NFSv3 that moves no bytes of a file.
func unmoved(tx *transaction.Transaction) bool {
	return tx.Program == nfs3.NFS_PROGRAM && tx.Version == 3 && tx.Procedure != readProcedure && tx.Procedure != writeProcedure
}

// moved is how many bytes of a file a call read and wrote, as the reply says, but no more than the call asks for: one false count would make all sums
// false (RFC 8881, sections 18.22.3 and 18.32.3).
func moved(v *rpc.View) (read, written uint64) {
	if unmoved(v.Tx) {
		return 0, 0 // no need to ask for its name
	}
	group := v.OperationGroup()
	switch group {
	case "READ", "READ_PLUS", "WRITE":
	default:
		return 0, 0
	}
	f := v.File()
	switch {
	case f == nil || !f.HasMoved:
		return 0, 0
	}
	n := f.Moved
	if f.HasRange {
		n = min(n, f.Count)
	}
	if group == "WRITE" {
		return 0, n
	}
	return n, 0
}

// compound handles a COMPOUND.
func (r *Recorder) compound(v *rpc.View) {
	if !v.Clean() {
		a, ok := v.Args().(*nfs4.CompoundArgs)
		if !ok || a.NoMinorversion || a.Minorversion > 0 && a.Incomplete && len(a.Ops) == 0 {
			r.hidden++
		}
		if !ok {
			return
		}
	}
	if minor, ok := v.MinorVersion(); ok && minor == 0 {
		r.plain(v)
	} else {
		r.operations(v)
	}
}

// operations handles the operations of a COMPOUND with sessions.
func (r *Recorder) operations(v *rpc.View) {
	ops := v.Operations()
	for i := range ops {
		o := &ops[i]
		switch a := o.Args.(type) {
		case *nfs4.SEQUENCE4args:
			r.sequence(v, o, a)
		case *nfs4.EXCHANGE_ID4args:
			r.exchanged(v, o, a)
		case *nfs4.CREATE_SESSION4args:
			r.created(v, o, a)
		case *nfs4.BIND_CONN_TO_SESSION4args:
			if res, ok := o.Result.(*nfs4.BIND_CONN_TO_SESSION4res); ok && o.Code == 0 && o.Status != "" {
				if x := r.called(v, res.BctsrResok4.BctsrSessid); x != nil {
					if c := x.conns.carried(r, v.Tx, v.Tx.From); c != nil {
						c.bound = BoundByBind
						c.back = c.back || res.BctsrResok4.BctsrDir != nfs4.CDFS4_FORE
					}
				}
			}
		case *nfs4.DESTROY_SESSION4args:
			if x := r.sessions[sessionKey{v.Tx.Connection.Tenant, a.DsaSessionid}]; x != nil && o.Code == 0 && o.Status != "" {
				x.destroyed = v.Tx.Reply.Last
			}
		case *nfs4.LAYOUTGET4args:
			r.pnfs.granted(r, v, o, a)
		case *nfs4.LAYOUTRETURN4args:
			r.pnfs.returned(v, o)
		case *nfs4.GETDEVICEINFO4args:
			r.pnfs.device(r, v, o, a)
		}
	}
}

func (r *Recorder) exchanged(v *rpc.View, o *rpc.Operation, a *nfs4.EXCHANGE_ID4args) {
	res, ok := o.Result.(*nfs4.EXCHANGE_ID4res)
	if !ok || o.Code != 0 || o.Status == "" {
		return
	}
	k := &res.EirResok4
	key := ownerKey{v.Tx.Connection.Tenant, k.EirClientid}
	if _, known := r.owners[key]; !known {
		if len(r.owners) >= maxOwners || !r.room(ownerSize) {
			return
		}
		r.held += ownerSize
	}
	r.owners[key] = owner{
		client: readable(a.EiaClientowner.CoOwnerid), server: readable(k.EirServerOwner.SoMajorId), minor: k.EirServerOwner.SoMinorId,
		scope: readable(k.EirServerScope),
	}
	g := greeting{
		tenant: v.Tx.Connection.Tenant, address: v.Tx.Server().Addr, owner: r.owners[key],
		clientProgram: implementation(a.EiaClientImplId), serverProgram: implementation(k.EirServerImplId),
	}
	if r.greeted[g] {
		return
	}
	if len(r.greets) >= maxOwners || !r.room(greetingSize) {
		return
	}
	r.held += greetingSize
	r.greeted[g] = true
	r.greets = append(r.greets, g)
}

// greeting is a successful EXCHANGE_ID at an address of a server.
type greeting struct {
	tenant  uint64
	address netip.Addr
	owner
	clientProgram, serverProgram string // as they name themselves; empty if they do not
}

// implementation is a name from an implementation id (RFC 8881, section 3.3.21).
func implementation(list []nfs4.NfsImplId4) string {
	if len(list) == 0 {
		return ""
	}
	name, domain := readable(list[0].NiiName), readable(list[0].NiiDomain)
	if domain == "" {
		return name
	}
	return name + " (" + domain + ")"
}

// readable is text unchanged, other bytes as hexadecimal digits.
func readable(b []byte) string {
	cut := b[:min(len(b), maxText)]
	for _, c := range cut {
		if c < ' ' || c > '~' {
			return hex.EncodeToString(cut)
		}
	}
	return string(cut)
}

// address is an end without its port.
func address(e rdma.End) string { return link.AddrString(e.Addr) }
