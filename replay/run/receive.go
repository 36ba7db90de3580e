package run

import (
	"errors"
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// receive handles one call that the transport has returned.
func (e *engine) receive(c *call) {
	e.count.flying--
	var refused *guard.Refused
	switch {
	case errors.Is(c.Err, transport.ErrLayout) && c.Layout != nil:
		e.layOutAgain(c)
	case errors.Is(c.Err, transport.ErrTooLong) && c.Times.Sent.IsZero():
		e.count.sent--
		e.slots.give(c)
		e.dropped(c, verdict.NotSent, verdict.Reason{Code: verdict.NoValue, Detail: c.Err.Error()})
	case errors.As(c.Err, &refused):
		e.count.sent--
		e.slots.give(c)
		e.dropped(c, verdict.NotSent, verdict.Reason{Code: verdict.Refused, Detail: refused.Error()})
	case c.Err != nil:
		e.lost(c)
	default:
		e.count.failures = 0
		e.step(c.entry, schedule.Reply)
		e.reply(c)
	}
}

// layOutAgain issues a call that was not sent, since it cannot be laid out as
// captured.
func (e *engine) layOutAgain(c *call) {
	e.count.sent--
	c.tries--
	c.relaid, c.form.Note = true, verdict.LayoutTooSmall
	if errors.Is(c.Err, transport.ErrReplyRoom) {
		c.form.Note = verdict.ReplyRoom
	}
	c.release()
	e.slots.give(c)
	e.step(c.entry, schedule.Unsendable)
	e.issue(c)
}

// lost handles a call without a reply.
func (e *engine) lost(c *call) {
	e.count.failures++
	e.slots.abandon(c)
	e.step(c.entry, schedule.NoReply)
	if c.own {
		e.endOwn(c, nil, c.Err)
		return
	}
	e.judge.Lost(c.clone.Number, c.form.Op)
	j := verdict.Of(verdict.Lost, verdict.Reason{Code: verdict.NoReply, Detail: c.Err.Error()})
	if x := c.form.Op.Expect; x == nil || x.RPC != "" && errors.Is(c.Err, transport.ErrDisconnected) {
		j = verdict.Of(verdict.Equivalent, verdict.Reason{Code: verdict.NoReplyEither})
	} else if x.RPC != "" {
		j = verdict.Judgement{Verdict: verdict.Same}
		e.count.failures = 0
	}
	e.settle(c, j, 0)
	e.end(c)
}

// reply handles a reply.
func (e *engine) reply(c *call) {
	rpc, res, err := e.codec.decode(c)
	if err != nil {
		// What arrived is not a reply to this call: the server lies.
		e.slots.abandon(c)
		if c.own {
			e.endOwn(c, nil, err)
			return
		}
		e.judge.Lost(c.clone.Number, c.form.Op)
		e.step(c.entry, schedule.Judge)
		e.settle(c, verdict.Of(verdict.Different, verdict.Reason{Code: verdict.BadReply, Detail: err.Error()}), 0)
		e.end(c)
		return
	}
	if r, ok := res.(*nfs4.CompoundRes); ok && c.session() != nil && c.form.Slot >= 0 && c.lives.session == c.session().Lives {
		c.session().Sequence(c.form.Slot, r)
	}
	e.reconnected(c, res)
	if code, _ := judge.StatusOf(res); code != uint32(nfs4.NFS4ERR_GRACE) {
		e.later.graceOver(c)
	}
	again := res != nil && (e.renewed(c, rpc, res) || e.postpone(c, rpc, res) || e.adapt(c, rpc, res))
	e.slots.give(c)
	if again {
		return
	}
	if judge.NoProgram(rpc) {
		c.clone.Unserved(c.form.Op)
	}
	if res != nil {
		e.learn(c, res)
		e.locks.done(c, res)
	}
	if c.own {
		e.endOwn(c, res, nil)
		return
	}
	var inside inline
	if res != nil {
		res.Walk(&inside)
	}
	j := e.judge.Judge(e.judged(c, rpc, res))
	e.step(c.entry, schedule.Judge)
	e.settle(c, j, uint64(inside))
	var more *plan.Op
	if res != nil {
		if more = e.corrections.after(c, res); more == nil {
			more = e.locks.surplus(c, res)
		}
	}
	switch {
	case more != nil:
		e.sendOwn(more, c.clone, c.line, c) // it ends with that call
	case e.probe.wanted(c, res):
		e.awaitProbe(c)
	default:
		e.end(c)
	}
}

// judged returns a reply in the form that the judge takes. It sets the call's status.
func (e *engine) judged(c *call, rpc string, res xdr.Message) *judge.Reply {
	if c.status = rpc; rpc == "" {
		c.status = "SUCCESS"
		if st, ok := res.(xdr.Status); ok {
			c.status = xdr.EnumString(st.StatusCode())
		}
	}
	unended := workload.Has(c.form.Op, nfs4.OP_DESTROY_CLIENTID) && c.clone.Unended(c.lives.client)
	c.verdict = judge.Reply{Op: c.form.Op, Clone: c.clone.Number, RPC: rpc, Args: e.codec.sentArgs(c), Result: res, Data: c,
		Issued: c.Times.Queued, Replied: c.Times.Replied, Sent: c.form.Note, Again: c.tries > 1, Newest: c.form.Newest,
		Unended: unended, Completed: e.completed[[2]int{c.clone.Number, c.lives.client}], RootReplaced: c.form.RootReplaced, Closes: c.form.Closes, Less: c.form.Less, Bytes: c.Reply.Size(), Left: c.left(res), Chunks: c.itemLengths, LaidOut: c.Layout != nil}
	return &c.verdict
}

// postpone keeps a call that the server asks to have later, or with a newer state id, unless the
// captured server asked for the same. It reports whether it did.
func (e *engine) postpone(c *call, rpc string, res xdr.Message) bool {
	o := c.form.Op
	if rpc != "" || c.own || e.stopping != "" || c.tries > e.opt.Retries {
		return false
	}
	code, symbol := judge.StatusOf(res)
	old := o.Compound != nil && code == uint32(nfs4.NFS4ERR_OLD_STATEID)
	// An open that serves for a delegation may have been closed meanwhile: another one does, or the anonymous state id.
	closed := o.Compound != nil && code == uint32(nfs4.NFS4ERR_BAD_STATEID) && c.form.Substituted && c.tries <= maxSubstitutes
	// A session keeps replies that are asked for (sa_cachethis). Who sends another call again on its slot is told that the call has been
	// executed, and sends it as a new one, as Linux does (RFC 8881, section 2.10.6.1.3).
	unkept := o.Compound != nil && code == uint32(nfs4.NFS4ERR_RETRY_UNCACHED_REP)
	if !later(o, code) && !old && !closed && !unkept || o.Expect != nil && (later(o, o.Expect.Status) || o.Expect.Status == code) {
		return false
	}
	if later(o, code) && !e.patient(c, judge.StatusName(code, symbol)) {
		return false
	}
	if r, ok := res.(*nfs4.CompoundRes); ok && o.Compound != nil {
		c.clone.LearnStates(o, r) // what came before the failure counts
	}
	e.count.retried++
	c.release()
	wait := c.again(old, closed, unkept)
	if o.Compound != nil && nfs4.Nfsstat4(code) == nfs4.NFS4ERR_GRACE {
		if c.tries >= completeAfter {
			e.complete(c)
		}
		wait = e.later.inGrace(c, wait)
	}
	e.step(c.entry, schedule.Postpone)
	e.later.add(time.Now().Add(wait), c)
	return true
}

// again changes the form in which a call is sent again, and returns when to send it.
func (c *call) again(old, closed, unkept bool) time.Duration {
	wait := min(10*time.Millisecond<<min(c.tries, 8), time.Second)
	switch {
	case unkept:
		c.form.Note = verdict.Unkept
		return 0
	case closed:
		c.form.Note, c.form.Substituted = verdict.None, false // it is encoded anew
		return wait / 10
	case old:
		// A concurrent OPEN was executed first here and advanced the state id. Clients take the
		// new one and try again.
		c.form.Note, c.form.Newest = verdict.StateMovedOn, true
		return wait / 10
	}
	c.form.Note = verdict.Patience
	return wait
}

// patient reports whether a call that the server put off with the status why is sent again. Once several calls have exceeded the patience, the
// run ends, since the others would wait as long.
func (e *engine) patient(c *call, why string) bool {
	e.count.putOffWhy = why
	if c.putOff.IsZero() {
		c.putOff = time.Now()
	}
	if time.Since(c.putOff) <= e.opt.Patience {
		return true
	}
	c.form.Note = verdict.None
	if e.count.givenUp++; e.count.givenUp == maxPutOff {
		e.stop(fmt.Sprintf("the server has put off %d calls for longer than %s, the latest with %s", maxPutOff, e.opt.Patience, e.count.putOffWhy))
	}
	return false
}

// maxPutOff is the number of calls put off for too long that ends the run.
const maxPutOff = 3

// adapt sends a call again, in another form, that asked for what the server does not support, unless the captured server refused it, too.
func (e *engine) adapt(c *call, rpc string, res xdr.Message) bool {
	o := c.form.Op
	code, _ := judge.StatusOf(res)
	if rpc != "" || code == 0 || c.own || e.stopping != "" || o.Expect != nil && o.Expect.Status == code || !c.clone.Adapt(&c.form, res) {
		return false
	}
	if r, ok := res.(*nfs4.CompoundRes); ok && o.Compound != nil {
		c.clone.LearnStates(o, r) // what came before the failure counts
	}
	c.release()
	e.step(c.entry, schedule.Postpone)
	e.later.add(time.Now(), c)
	return true
}

// maxSubstitutes is how often a call gets another state id in the place of one that this server has not given.
const maxSubstitutes = 3

// later are the statuses with which a server asks the client to try again later.
func later(o *plan.Op, code uint32) bool {
	if isLock(o) {
		return laterLock(o, code)
	}
	if o.Compound == nil {
		return code == uint32(nfs3.NFS3ERR_JUKEBOX)
	}
	return code == uint32(nfs4.NFS4ERR_DELAY) || code == uint32(nfs4.NFS4ERR_GRACE)
}
