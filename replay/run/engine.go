package run

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// engine is one run. All but land and recall are for its own goroutine.
type engine struct {
	opt      Options
	load     *Workload
	creds    []oncrpc.Auth
	worlds   []*world
	conns    []map[int]*conn // by world, by captured connection
	round    [][]*conn       // by world: connections that calls go round on
	all      []*conn
	nodes    [][]node
	children [][]int32 // by op ID: indices of the ops that wait for it
	agenda   agenda
	listings map[int]bool // READDIRs that others continue
	confirms map[int]bool // states that the plan confirms
	parents  map[int]int  // directories above the base, as LOOKUPs went
	guards   bool         // some op needs a time of last change

	ctx      context.Context
	start    time.Time
	alarm    *alarm
	wake     chan struct{}
	verifier *verifier
	guard    *guard.Guard // of all connections
	free     []*flight
	record   *recorder

	left     int // ops that are not over
	flying   int
	sent     int
	bytes    uint64
	stopping string // why nothing more is sent
	lastSend time.Time
	failures int // calls without a reply, one after the other
	turn     int
	freed    []*session
	again    []again
	retried  int
	extra    int // calls that the plan does not have
	ours     []ownSession

	back      *tcprpc.Server // where callbacks of NFSv4.0 come in, if anywhere
	backAt    netip.AddrPort
	probing   []*flight // SETCLIENTID_CONFIRMs that wait for a CB_NULL
	confirmed int       // how many there were
	unprobed  bool      // the server does not try

	mu       sync.Mutex
	landed   []*flight
	recalled []recall
	probes   int  // CB_NULLs, and those that have not come in time
	late     bool // one has not
}

// recall is a delegation that the server wants back.
type recall struct {
	stateid nfs4.Stateid4
	handle  []byte
}

// grace is how long calls under way are waited for when a run is stopped.
const grace = 5 * time.Second

// maxFailures is how many calls may fail one after the other, for want of a
// reply, before a run gives up.
const maxFailures = 32

// land takes a call that is over, from a goroutine of its transport.
func (e *engine) land(f *flight) {
	e.mu.Lock()
	e.landed = append(e.landed, f)
	e.mu.Unlock()
	e.poke()
}

func (e *engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// loop runs until all ops are over, or nothing is to be sent any more and what
// was under way has come back.
func (e *engine) loop() error {
	alarm, err := newAlarm()
	if err != nil {
		return err
	}
	defer alarm.stop()
	e.alarm = alarm
	e.start = time.Now()
	var deadline <-chan time.Time
	var progress <-chan time.Time
	if e.opt.Progress != nil {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		progress = t.C
	}
	done := e.ctx.Done()
	stop := func(why string) {
		if e.stopping == "" {
			e.stopping = why
			t := time.NewTimer(grace)
			deadline = t.C
		}
	}
	var limit <-chan time.Time
	if e.opt.MaxDuration > 0 {
		t := time.NewTimer(e.opt.MaxDuration)
		defer t.Stop()
		limit = t.C
	}
	for {
		e.arrivals()
		e.probed()
		if e.stopping == "" {
			e.departures()
		}
		if e.failures >= maxFailures {
			stop(fmt.Sprintf("%d calls in a row had no reply", e.failures))
		}
		if e.left == 0 || e.stopping != "" && e.flying == 0 {
			return nil
		}
		if e.stopping != "" && deadline == nil {
			t := time.NewTimer(grace)
			deadline = t.C
		}
		if e.flying == 0 && e.stopping == "" && len(e.agenda) == 0 && len(e.again) == 0 && !e.pending() {
			// Cannot be: what is left waits for something that is over.
			return errors.New("the rest of the plan waits for itself")
		}
		select {
		case <-e.wake:
		case <-alarm.c:
		case <-progress:
			e.progress()
		case <-done:
			stop("interrupted")
			done = nil
		case <-limit:
			stop("the time is up")
		case <-deadline:
			return nil
		}
	}
}

// arrivals takes in all that has come back.
func (e *engine) arrivals() {
	for {
		e.mu.Lock()
		list, recalled := e.landed, e.recalled
		e.landed, e.recalled = nil, nil
		e.mu.Unlock()
		if len(list) == 0 && len(recalled) == 0 {
			return
		}
		for _, f := range list {
			e.arrive(f)
		}
		for i := range recalled {
			e.giveBack(&recalled[i])
		}
	}
}

// departures sends what is due, and sets the alarm for the next.
func (e *engine) departures() {
	wait := e.retries()
	// What is sent, or turns out not to be sent, can make room for calls that
	// are parked, and what ends those makes others due.
	for e.unpark(); e.due(); e.unpark() {
	}
	if e.stopping != "" {
		return
	}
	if len(e.agenda) > 0 {
		if until := e.until(e.agenda[0]); wait == 0 || until < wait {
			wait = max(until, time.Nanosecond)
		}
	}
	if wait > 0 {
		e.alarm.set(wait)
	}
}

// due sends what is due, and reports whether there was anything.
func (e *engine) due() (any bool) {
	for len(e.agenda) > 0 && e.stopping == "" && e.until(e.agenda[0]) <= 0 {
		e.depart(heap.Pop(&e.agenda).(*node))
		any = true
	}
	return any
}

// until is the time until a node may be sent.
func (e *engine) until(n *node) time.Duration {
	until := time.Until(e.start.Add(n.due))
	if e.opt.MaxRate > 0 && !e.lastSend.IsZero() {
		until = max(until, time.Until(e.lastSend.Add(time.Duration(float64(time.Second)/e.opt.MaxRate))))
	}
	return until
}

// pending reports whether something has come back, or can go, that the loop has
// not seen yet.
func (e *engine) pending() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.landed) > 0 || len(e.recalled) > 0 || len(e.probing) > 0 || e.left == 0
}

// connFor is the connection that an op goes out on.
func (e *engine) connFor(n *node) *conn {
	if r := e.round[n.world.number]; r != nil {
		e.turn++
		return r[e.turn%len(r)]
	}
	return e.conns[n.world.number][n.op.Connection]
}

// depart sends an op, or finds that it cannot be sent, or parks it until it can.
func (e *engine) depart(n *node) {
	if e.capped() {
		heap.Push(&e.agenda, n)
		return
	}
	c := e.connFor(n)
	if c.limit > 0 && c.flying >= c.limit {
		c.wait = append(c.wait, n)
		return
	}
	if n.op.Modifies && !e.opt.Write {
		// The guard would not let it pass, if the plan is right.
		e.unsent(n, NotSent, (&guard.Refused{Reason: guard.ReadOnly}).Error())
		return
	}
	if reason := e.omitted(n); reason != "" {
		e.unsent(n, Omitted, reason)
		return
	}
	if e.leftovers(n, c) {
		return
	}
	f := e.get()
	f.node, f.op, f.world, f.conn = n, n.op, n.world, c
	f.due = e.start.Add(max(n.due, n.ready))
	c.flying++
	e.board(f)
}

// capped ends the run when a limit is reached.
func (e *engine) capped() bool {
	switch {
	case e.opt.MaxOps > 0 && e.sent >= e.opt.MaxOps:
		e.stopping = fmt.Sprintf("%d calls were sent, and no more were allowed", e.sent)
	case e.opt.MaxBytes > 0 && e.bytes >= e.opt.MaxBytes:
		e.stopping = fmt.Sprintf("%d bytes were moved, and no more were allowed", e.bytes)
	}
	return e.stopping != ""
}

// board finds a slot for a call, or parks it, and sends it.
func (e *engine) board(f *flight) {
	if f.session, f.slot = e.sessionOf(f), -1; f.session != 0 {
		s := &f.world.sessions[f.session]
		if s.bound {
			f.slot = s.take(wantedSlot(f.op))
			if f.slot < 0 {
				if s.lost {
					e.dropped(f, NotSent, "no slot of the session is left whose state is known")
					return
				}
				s.wait = append(s.wait, f)
				return
			}
		}
	}
	if err := e.build(f); err != nil {
		e.leave(f)
		v := NotSent
		var u *errUnbound
		if errors.As(err, &u) && (e.load.above(u) && !f.op.Modifies || u.kind == plan.FieldHandle && e.load.Tables.Objects[u.ref-1].Origin == plan.Stale) {
			v = Omitted
		} else if errors.As(err, &u) && e.load.cutBefore(f.op) {
			e.dropped(f, Explained, reasonCut+": "+err.Error())
			return
		}
		e.dropped(f, v, err.Error())
		return
	}
	f.tries++
	e.flying++
	e.sent++
	e.lastSend = time.Now()
	f.conn.req.Start(&f.Call.Call)
}

// sessionOf is the session whose slot a call needs, 0 if none.
func (e *engine) sessionOf(f *flight) int {
	if f.op.Compound == nil || len(f.op.Compound.Ops) == 0 {
		return 0
	}
	for i := range f.op.Compound.Ops[0].Args {
		if a := &f.op.Compound.Ops[0].Args[i]; a.Kind == plan.FieldSlot {
			return a.Ref
		}
	}
	return 0
}

func wantedSlot(o *plan.Op) uint64 {
	for i := range o.Compound.Ops[0].Args {
		if a := &o.Compound.Ops[0].Args[i]; a.Kind == plan.FieldSlot {
			return a.Value
		}
	}
	return 0
}

// leave gives a slot back.
func (e *engine) leave(f *flight) {
	if f.session == 0 || f.slot < 0 {
		return
	}
	s := &f.world.sessions[f.session]
	if f.slot < len(s.slots) {
		s.slots[f.slot].busy = false
	}
	f.slot = -1
	if len(s.wait) > 0 {
		e.freed = append(e.freed, s)
	}
}

// encode makes the bytes of a call.
func (e *engine) encode(f *flight, r plan.Resolver) error {
	o := f.op
	h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: o.Program, Version: o.Version, Procedure: o.Procedure}
	if o.Credential > 0 && o.Credential < len(e.creds) {
		h.Cred = e.creds[o.Credential]
	}
	stream, items, err := e.rewritten(f).AppendArgs(h.Append(f.stream[:0]), f.Items[:0], r)
	f.stream, f.Items = stream, items
	if err != nil {
		return err
	}
	f.Message = transport.Message{Stream: stream, Items: items}
	return nil
}

// build encodes a call and readies it for its reply.
func (e *engine) build(f *flight) error {
	o := f.op
	if err := e.encode(f, &resolver{e, f.world, f}); err != nil {
		return err
	}
	f.XID, f.Err, f.Layout = 0, nil, nil
	f.Timeout, f.Done, f.User = e.opt.Timeout, landed, f
	if err := e.results(f); err != nil {
		return err
	}
	if e.opt.Layout && o.Layout != nil && !f.relaid && !f.conn.plain {
		f.Layout = o.Layout.Transport()
	}
	return nil
}

// arrive takes in one call that is over.
func (e *engine) arrive(f *flight) {
	e.flying--
	if errors.Is(f.Err, transport.ErrLayout) && f.Layout != nil {
		// It was not sent.
		e.sent--
		f.tries--
		f.relaid, f.note = true, noteRelaid
		if errors.Is(f.Err, transport.ErrReplyRoom) {
			f.note = noteReplyRoom
		}
		f.release()
		e.leave(f)
		e.board(f)
		return
	}
	if refused := guarded(f.Err); refused != nil {
		e.sent--
		e.leave(f)
		e.kept(f, refused)
		return
	}
	if f.Err != nil {
		e.lost(f)
		return
	}
	e.failures = 0
	rpc, res, err := e.decode(f)
	if err != nil {
		// What came is no reply to this call: a server that lies.
		e.leaveUnknown(f)
		e.finish(f, judgement{Different, []string{err.Error()}})
		return
	}
	retry := false
	if res != nil {
		e.sequence(f, res)
		retry = e.retry(f, rpc, res)
	}
	e.leave(f)
	if retry {
		return
	}
	if res != nil {
		e.learn(f, res)
	}
	if f.node == nil {
		e.synthetic(f, res)
		return
	}
	if f.status = rpc; rpc == "" {
		f.status = "SUCCESS"
		if st, ok := res.(xdr.Status); ok {
			f.status = xdr.EnumString(st.StatusCode())
		}
	}
	j := e.verifier.judge(f, rpc, res)
	if res != nil && (e.confirm(f, res) || e.tidy(f, res)) {
		e.settle(f, j)
		return // its node is over when the confirmation is
	}
	if e.awaitsProbe(f, res) {
		e.settle(f, j)
		e.awaitProbe(f)
		return
	}
	e.finish(f, j)
}

// kept ends a call that the guard did not let pass.
func (e *engine) kept(f *flight, why *guard.Refused) {
	if f.node == nil {
		e.synthetic(f, nil)
		return
	}
	e.dropped(f, NotSent, why.Error())
}

// decode takes a reply apart. rpc is an outcome of the RPC layer.
func (e *engine) decode(f *flight) (rpc string, res xdr.Message, err error) {
	p := procedure(f.op)
	if p == nil {
		res = xdr.Void{}
	} else {
		res = message(e.verifier.have, p)
	}
	err = f.Decode(res)
	var denied *client.DeniedError
	if errors.As(err, &denied) {
		return denied.Status, nil, nil
	}
	return "", res, err
}

// sequence counts a slot's number on if the server has executed SEQUENCE.
func (e *engine) sequence(f *flight, res xdr.Message) {
	c, ok := res.(*nfs4.CompoundRes)
	if !ok || f.session == 0 || f.slot < 0 || len(c.Ops) == 0 {
		return
	}
	s := &f.world.sessions[f.session]
	if r, ok := c.Ops[0].Body.(*nfs4.SEQUENCE4res); ok && r.SrStatus == nfs4.NFS4_OK && f.slot < len(s.slots) {
		s.slots[f.slot].seq++
	}
}

// leaveUnknown gives up a slot whose state is not known any more: it stays busy.
func (e *engine) leaveUnknown(f *flight) {
	if f.session == 0 || f.slot < 0 {
		return
	}
	s := &f.world.sessions[f.session]
	if f.slot < len(s.slots) {
		s.slots[f.slot].dead = true
	}
	f.slot = -1
	for i := range s.slots {
		if !s.slots[i].dead {
			return
		}
	}
	s.lost = true
	e.freed = append(e.freed, s)
}

// lost deals with a call that had no reply.
func (e *engine) lost(f *flight) {
	e.failures++
	e.leaveUnknown(f)
	if f.node == nil {
		e.synthetic(f, nil)
		return
	}
	j := judgement{Lost, []string{f.Err.Error()}}
	if x := f.op.Expect; x == nil || x.RPC != "" && errors.Is(f.Err, transport.ErrDisconnected) {
		j = judgement{Equivalent, []string{"no reply, as captured"}}
	} else if x.RPC != "" {
		j = judgement{Same, nil}
		e.failures = 0
	}
	e.finish(f, j)
}

// settle records the outcome of a call without ending its node.
func (e *engine) settle(f *flight, j judgement) {
	e.record.outcome(f, j)
	e.bytes += moved(f)
}

// finish ends a call and its node.
func (e *engine) finish(f *flight, j judgement) {
	e.settle(f, j)
	e.end(f)
}

// end gives a flight back and tells who waited for it.
func (e *engine) end(f *flight) {
	n := f.node
	f.conn.flying--
	e.put(f)
	if n != nil {
		e.left--
		e.over(n, time.Since(e.start))
	}
}

// unpark sends what has waited for a slot of a session, or for room on a
// connection.
func (e *engine) unpark() {
	for len(e.freed) > 0 {
		s := e.freed[0]
		e.freed = e.freed[1:]
		for len(s.wait) > 0 && (s.lost || s.vacant()) {
			f := s.wait[0]
			s.wait = s.wait[1:]
			e.board(f)
		}
	}
	for _, c := range e.all {
		for len(c.wait) > 0 && (c.limit == 0 || c.flying < c.limit) && e.stopping == "" {
			n := c.wait[0]
			c.wait = c.wait[1:]
			e.depart(n)
		}
	}
}

// unsent ends an op that was not sent.
func (e *engine) unsent(n *node, v Verdict, reason string) {
	e.record.skipped(n, v, reason)
	e.left--
	e.over(n, time.Since(e.start))
}

// dropped ends a flight that was not sent.
func (e *engine) dropped(f *flight, v Verdict, reason string) {
	n := f.node
	f.conn.flying--
	e.put(f)
	if n != nil {
		e.unsent(n, v, reason)
	}
}

// moved counts the data of a call.
func moved(f *flight) (n uint64) {
	for i := range f.Items {
		n += uint64(len(f.Items[i].Data))
	}
	for _, l := range f.itemLengths {
		n += uint64(l)
	}
	return n
}

func (e *engine) get() *flight {
	if n := len(e.free); n > 0 {
		f := e.free[n-1]
		e.free = e.free[:n-1]
		return f
	}
	return &flight{e: e}
}

func (e *engine) put(f *flight) {
	f.release()
	f.rewrote, f.newest, f.resume, f.relaid, f.status = false, false, false, false, ""
	f.node, f.op, f.world, f.behind, f.note, f.tries, f.session, f.slot = nil, nil, nil, nil, "", 0, 0, -1
	f.itemLengths = f.itemLengths[:0]
	e.free = append(e.free, f)
}
