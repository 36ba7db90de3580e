package run_test

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// wireKind is a way to be wrong that is outside the store: replies are changed on their way.
type wireKind struct {
	name, what string
	// change changes the results of a call, and reports whether it has.
	change func(p *proxy, args, res xdr.Message) bool
	// call changes the arguments on their way to the server instead, and reports whether it has.
	call func(args xdr.Message) bool
	// refuse gives the results of a call instead of the server; nil leaves it to that.
	refuse func(args xdr.Message) xdr.Message
	// reason must be among those found.
	reason verdict.Code
	// raw changes the encoded reply instead, behind its XID.
	raw func(p *proxy, proc string, b []byte) []byte
}

// proxy stands between a server and its clients.
type proxy struct {
	to      transport.Handler
	kind    *wireKind
	armed   atomic.Bool
	strikes atomic.Int64

	mu    sync.Mutex
	calls int
	kept  map[string][]byte
	info  nfs4.ChangeInfo4 // the latest
}

// nth reports true once in n calls.
func (p *proxy) nth(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	return p.calls%n == 0
}

// ServeRPC implements transport.Handler.
func (p *proxy) ServeRPC(x transport.Exchange) {
	if !p.armed.Load() {
		p.to.ServeRPC(x)
		return
	}
	m := x.Call()
	var h oncrpc.Call
	if h.Decode(m.Stream, len(m.Stream)) != nil {
		p.to.ServeRPC(x)
		return
	}
	proc := nfs.Lookup(h.Program, h.Version).Procedure(h.Procedure)
	if proc == nil || h.Procedure == 0 {
		p.to.ServeRPC(x)
		return
	}
	args := proc.NewArgs()
	var sizes []xdr.Reduced
	for i := range m.Items {
		sizes = append(sizes, xdr.Reduced{Position: m.Items[i].Position, Length: uint32(len(m.Items[i].Data))})
	}
	body := bytes.Clone(m.Stream[h.Body().Offset:])
	var r xdr.Reader
	r.Reset(body, len(body))
	r.StartAt(uint32(h.Body().Offset))
	r.ReduceCall(sizes)
	if args.Decode(&r); r.Failed() {
		p.to.ServeRPC(x)
		return
	}
	if p.kind.refuse != nil {
		if res := p.kind.refuse(args); res != nil {
			p.strikes.Add(1)
			r := oncrpc.Reply{XID: h.XID}
			x.Reply(&transport.Message{Stream: res.Append(r.Append(nil))})
			return
		}
		p.to.ServeRPC(x)
		return
	}
	if p.kind.call != nil {
		if !p.kind.call(args) {
			if p.kind.change != nil {
				x = &exchange{Exchange: x, p: p, proc: proc, args: args}
			}
			p.to.ServeRPC(x)
			return
		}
		p.strikes.Add(1)
		changed := *m
		changed.Stream = args.Append(bytes.Clone(m.Stream[:h.Body().Offset]))
		p.to.ServeRPC(&altered{x, &changed})
		return
	}
	p.to.ServeRPC(&exchange{Exchange: x, p: p, proc: proc, args: args})
}

// altered is an exchange whose call is another one.
type altered struct {
	transport.Exchange
	call *transport.Message
}

func (x *altered) Call() *transport.Message { return x.call }

// locks makes a change of calls about locks, of both versions.
func locks(lock4 func(a *nfs4.LOCK4args), unlock4 func(a *nfs4.LOCKU4args), lock3 func(a *nlm.Nlm4Lockargs), unlock3 func(a *nlm.Nlm4Unlockargs)) func(xdr.Message) bool {
	return func(args xdr.Message) (done bool) {
		switch a := args.(type) {
		case *nlm.Nlm4Lockargs:
			if done = lock3 != nil; done {
				lock3(a)
			}
		case *nlm.Nlm4Unlockargs:
			if done = unlock3 != nil; done {
				unlock3(a)
			}
		case *nfs4.CompoundArgs:
			for i := range a.Ops {
				switch o := a.Ops[i].Body.(type) {
				case *nfs4.LOCK4args:
					if lock4 != nil {
						lock4(o)
						done = true
					}
				case *nfs4.LOCKU4args:
					if unlock4 != nil {
						unlock4(o)
						done = true
					}
				}
			}
		}
		return done
	}
}

// afar is where no lock of a plan is.
const afar = 1 << 50

type exchange struct {
	transport.Exchange
	p    *proxy
	proc *xdr.Procedure
	args xdr.Message
}

// Reply sends a changed reply.
func (x *exchange) Reply(m *transport.Message) {
	var c client.Call
	c.Reply = *m
	res := x.proc.NewResult()
	if err := c.Decode(res); err != nil {
		x.Exchange.Reply(m)
		return
	}
	out := *m
	head := m.Stream[:c.Header.Size()]
	switch k := x.p.kind; {
	case k.raw != nil:
		b := k.raw(x.p, x.proc.Name, bytes.Clone(m.Stream[4:]))
		if bytes.Equal(b, m.Stream[4:]) {
			x.Exchange.Reply(m)
			return
		}
		out.Stream = append(bytes.Clone(m.Stream[:4]), b...)
	case k.change(x.p, x.args, res):
		out.Stream = res.Append(bytes.Clone(head))
	default:
		x.Exchange.Reply(m)
		return
	}
	x.p.strikes.Add(1)
	if len(out.Stream) != len(m.Stream) {
		// Separate items have moved now; none of the kinds changes such replies.
		out.Items = slices.Clone(m.Items)
	}
	x.Exchange.Reply(&out)
}

// each3 makes a change of the results of NFSv3, and of the operations of NFSv4, of two types.
func each[R3, R4 any](f3 func(p *proxy, r *R3) bool, f4 func(p *proxy, r *R4) bool) func(*proxy, xdr.Message, xdr.Message) bool {
	return func(p *proxy, _, res xdr.Message) (done bool) {
		if r, ok := any(res).(*R3); ok && f3 != nil {
			return f3(p, r)
		}
		if c, ok := res.(*nfs4.CompoundRes); ok && f4 != nil {
			for i := range c.Ops {
				if code, _, _ := c.Ops[i].Status(); code != 0 {
					break
				}
				if r, ok := any(c.Ops[i].Body).(*R4); ok && f4(p, r) {
					done = true
				}
			}
		}
		return done
	}
}

// status makes a kind that answers every n-th call of some procedures with a status.
func status(n int, from3 nfs3.Nfsstat3, to3 nfs3.Nfsstat3, names ...string) func(*proxy, xdr.Message, xdr.Message) bool {
	return func(p *proxy, _, res xdr.Message) bool {
		if c, ok := res.(*nfs4.CompoundRes); ok {
			for i := range c.Ops {
				code, _, _ := c.Ops[i].Status()
				if !slices.Contains(names, nfs4.OpName(c.Ops[i].Number)) || code != uint32(from3) || !p.nth(n) {
					continue
				}
				return fail4(c, i, uint32(to3))
			}
			return false
		}
		s, ok := res.(xdr.Status)
		if !ok {
			return false
		}
		code, _ := s.StatusCode()
		if code != uint32(from3) || to3 == 0 || !matches3(res, names) || !p.nth(n) {
			return false
		}
		return fail3(res, to3)
	}
}

// fail4 makes operation i of a COMPOUND fail.
func fail4(c *nfs4.CompoundRes, i int, code uint32) bool {
	c.Ops = c.Ops[:i+1]
	if !setStatus(c.Ops[i].Body, code) {
		return false
	}
	c.Status = nfs4.Nfsstat4(code)
	return true
}

func matches3(res xdr.Message, names []string) bool {
	for name, m := range map[string]bool{
		"GETATTR": is[nfs3.GETATTR3res](res), "LOOKUP": is[nfs3.LOOKUP3res](res), "READ": is[nfs3.READ3res](res), "WRITE": is[nfs3.WRITE3res](res),
		"REMOVE": is[nfs3.REMOVE3res](res), "ACCESS": is[nfs3.ACCESS3res](res), "CREATE": is[nfs3.CREATE3res](res), "SETATTR": is[nfs3.SETATTR3res](res),
		"RENAME": is[nfs3.RENAME3res](res), "COMMIT": is[nfs3.COMMIT3res](res),
	} {
		if m && slices.Contains(names, name) {
			return true
		}
	}
	return false
}

func is[T any](m xdr.Message) bool { _, ok := any(m).(*T); return ok }

func fail3(res xdr.Message, s nfs3.Nfsstat3) bool {
	switch r := res.(type) {
	case *nfs3.GETATTR3res:
		r.Status = s
	case *nfs3.LOOKUP3res:
		r.Status = s
	case *nfs3.ACCESS3res:
		r.Status = s
	case *nfs3.REMOVE3res:
		r.Status = s
	case *nfs3.CREATE3res:
		r.Status = s
	case *nfs3.SETATTR3res:
		r.Status = s
	case *nfs3.RENAME3res:
		r.Status = s
	case *nfs3.COMMIT3res:
		r.Status = s
	case *nfs3.WRITE3res:
		r.Status = s
	default:
		return false
	}
	return true
}

func setStatus(m xdr.Message, code uint32) bool {
	s := nfs4.Nfsstat4(code)
	switch r := m.(type) {
	case *nfs4.GETATTR4res:
		r.Status = s
	case *nfs4.Status4res:
		r.Status = s
	case *nfs4.ACCESS4res:
		r.Status = s
	case *nfs4.REMOVE4res:
		r.Status = s
	case *nfs4.RENAME4res:
		r.Status = s
	case *nfs4.COMMIT4res:
		r.Status = s
	case *nfs4.WRITE4res:
		r.Status = s
	case *nfs4.LOCK4res:
		r.Status = s
	default:
		return false
	}
	return true
}

// attrs4 makes a change of the attributes that GETATTR returns.
func attrs4(f func(p *proxy, a *nfs4.Attrs) bool) func(p *proxy, r *nfs4.GETATTR4res) bool {
	return func(p *proxy, r *nfs4.GETATTR4res) bool {
		a, err := r.Resok4.ObjAttributes.Attrs()
		if err != nil || !f(p, a) {
			return false
		}
		r.Resok4.ObjAttributes = a.Fattr4()
		return true
	}
}

// pages makes a change of the pages of directories, by the cookies of their entries.
func pages(f func(cookies []*uint64) bool) func(*proxy, xdr.Message, xdr.Message) bool {
	return func(_ *proxy, _, res xdr.Message) bool {
		var list []*uint64
		switch r := res.(type) {
		case *nfs3.READDIR3res:
			for i := range r.Resok.Reply.Entries {
				list = append(list, &r.Resok.Reply.Entries[i].Cookie)
			}
		case *nfs3.READDIRPLUS3res:
			for i := range r.Resok.Reply.Entries {
				list = append(list, &r.Resok.Reply.Entries[i].Cookie)
			}
		case *nfs4.CompoundRes:
			for i := range r.Ops {
				if l, ok := r.Ops[i].Body.(*nfs4.READDIR4res); ok && l.Status == 0 {
					for k := range l.Resok4.Reply.Entries {
						list = append(list, &l.Resok4.Reply.Entries[k].Cookie)
					}
				}
			}
		}
		return len(list) > 0 && f(list)
	}
}

var wireKinds = []wireKind{
	{name: "unstable-write", what: "WRITE is less stable than requested", change: func(_ *proxy, args, res xdr.Message) (done bool) {
		switch r := res.(type) {
		case *nfs3.WRITE3res:
			done = r.Status == 0 && r.Resok.Committed != nfs3.UNSTABLE
			r.Resok.Committed = nfs3.UNSTABLE
		case *nfs4.CompoundRes:
			for i := range r.Ops {
				if w, ok := r.Ops[i].Body.(*nfs4.WRITE4res); ok && w.Status == 0 && w.Resok4.Committed != nfs4.UNSTABLE4 {
					w.Resok4.Committed, done = nfs4.UNSTABLE4, true
				}
			}
		}
		return done
	}},
	{name: "short-count", what: "WRITE reports one byte less than it wrote", change: each(func(_ *proxy, r *nfs3.WRITE3res) bool {
		if r.Status != 0 || r.Resok.Count == 0 {
			return false
		}
		r.Resok.Count--
		return true
	}, func(_ *proxy, r *nfs4.WRITE4res) bool {
		if r.Resok4.Count == 0 {
			return false
		}
		r.Resok4.Count--
		return true
	})},
	{name: "old-verifier", what: "COMMIT has another verifier than WRITE", change: each(func(_ *proxy, r *nfs3.COMMIT3res) bool {
		r.Resok.Verf[0] ^= 1
		return r.Status == 0
	}, func(_ *proxy, r *nfs4.COMMIT4res) bool { r.Resok4.Writeverf[0] ^= 1; return true })},
	{name: "turning-verifier", what: "every other unstable WRITE has another verifier", change: each(func(p *proxy, r *nfs3.WRITE3res) bool {
		if r.Status != 0 || r.Resok.Committed != nfs3.UNSTABLE || !p.nth(2) {
			return false
		}
		r.Resok.Verf[0] ^= 1
		return true
	}, func(p *proxy, r *nfs4.WRITE4res) bool {
		if r.Resok4.Committed != nfs4.UNSTABLE4 || !p.nth(2) {
			return false
		}
		r.Resok4.Writeverf[0] ^= 1
		return true
	})},
	{name: "kept-lock", what: "an unlock does nothing", call: locks(
		nil, func(a *nfs4.LOCKU4args) { a.Offset, a.Length = afar, 1 },
		nil, func(a *nlm.Nlm4Unlockargs) { a.Alock.LOffset, a.Alock.LLen = afar, 1 })},
	{name: "shared-lock", what: "all locks are shared ones", call: locks(
		func(a *nfs4.LOCK4args) { a.Locktype = nfs4.READ_LT }, nil,
		func(a *nlm.Nlm4Lockargs) { a.Exclusive = false }, nil)},
	{name: "wide-lock", what: "a lock is one of the whole file", call: locks(
		func(a *nfs4.LOCK4args) { a.Offset, a.Length = 0, 1<<64-1 }, nil,
		func(a *nlm.Nlm4Lockargs) { a.Alock.LOffset, a.Alock.LLen = 0, 0 }, nil)},
	{name: "granted-lock", what: "a lock that was denied is granted", change: func(_ *proxy, _, res xdr.Message) bool {
		if r, ok := res.(*nlm.Nlm4Res); ok && r.Stat.Stat == nlm.NLM4_DENIED {
			r.Stat.Stat = nlm.NLM4_GRANTED
			return true
		}
		c, ok := res.(*nfs4.CompoundRes)
		if !ok {
			return false
		}
		for i := range c.Ops {
			switch r := c.Ops[i].Body.(type) {
			case *nfs4.LOCK4res:
				if r.Status == nfs4.NFS4ERR_DENIED {
					r.Status, c.Status = 0, 0
					return true
				}
			case *nfs4.LOCKT4res:
				if r.Status == nfs4.NFS4ERR_DENIED {
					r.Status, c.Status = 0, 0
					return true
				}
			}
		}
		return false
	}},
	{name: "denied-lock", what: "a lock that is free is denied", change: func(_ *proxy, _, res xdr.Message) bool {
		c, ok := res.(*nfs4.CompoundRes)
		if !ok {
			return false
		}
		for i := range c.Ops {
			if r, ok := c.Ops[i].Body.(*nfs4.LOCK4res); ok && r.Status == 0 {
				return fail4(c, i, uint32(nfs4.NFS4ERR_DENIED))
			}
		}
		return false
	}},
	{name: "failing-getattr", what: "every fifth GETATTR fails with IO", change: status(5, 0, nfs3.NFS3ERR_IO, "GETATTR")},
	{name: "failing-write", what: "every fifth WRITE is executed and fails with IO", change: status(5, 0, nfs3.NFS3ERR_IO, "WRITE")},
	{name: "failing-remove", what: "every third REMOVE is executed and fails with IO", change: status(3, 0, nfs3.NFS3ERR_IO, "REMOVE")},
	{name: "failing-rename", what: "RENAME is executed and fails with ACCESS", change: status(1, 0, nfs3.NFS3ERR_ACCES, "RENAME")},
	{name: "stale-handle", what: "every seventh ACCESS fails with STALE", change: status(7, 0, nfs3.NFS3ERR_STALE, "ACCESS")},
	{name: "wrong-refusal", what: "a name that is not there is refused with ACCESS", change: status(1, nfs3.NFS3ERR_NOENT, nfs3.NFS3ERR_ACCES, "LOOKUP")},
	{name: "failing-commit", what: "COMMIT fails with IO", change: status(1, 0, nfs3.NFS3ERR_IO, "COMMIT")},
	{name: "rotated-handles", what: "READDIRPLUS gives each name the handle of the next one", change: each(func(_ *proxy, r *nfs3.READDIRPLUS3res) bool {
		l := r.Resok.Reply.Entries
		if r.Status != 0 || len(l) < 2 {
			return false
		}
		first := l[0].NameHandle
		for i := range l {
			if i+1 < len(l) {
				l[i].NameHandle = l[i+1].NameHandle
			} else {
				l[i].NameHandle = first
			}
		}
		return true
	}, (func(*proxy, *nfs4.READDIR4res) bool)(nil))},
	{name: "broken-handles", what: "one bit of each handle of READDIRPLUS is wrong", change: each(func(_ *proxy, r *nfs3.READDIRPLUS3res) bool {
		done := false
		for i := range r.Resok.Reply.Entries {
			if h := &r.Resok.Reply.Entries[i].NameHandle; h.HandleFollows && len(h.Handle.Data) > 0 {
				h.Handle.Data = bytes.Clone(h.Handle.Data)
				h.Handle.Data[len(h.Handle.Data)-1] ^= 1
				done = true
			}
		}
		return done && r.Status == 0
	}, (func(*proxy, *nfs4.READDIR4res) bool)(nil))},
	{name: "wrong-lookup-handle", what: "one bit of the handle that LOOKUP returns is wrong", change: each(func(p *proxy, r *nfs3.LOOKUP3res) bool {
		h := &r.Resok.Object
		if r.Status != 0 || len(h.Data) == 0 {
			return false
		}
		h.Data = bytes.Clone(h.Data)
		h.Data[len(h.Data)-1] ^= 1
		return true
	}, func(p *proxy, r *nfs4.GETFH4res) bool {
		if len(r.Resok4.Object) == 0 {
			return false
		}
		r.Resok4.Object = bytes.Clone(r.Resok4.Object)
		r.Resok4.Object[len(r.Resok4.Object)-1] ^= 1
		return true
	})},
	{name: "old-attributes", what: "WRITE returns the attributes before it", change: each(func(_ *proxy, r *nfs3.WRITE3res) bool {
		b, a := &r.Resok.FileWcc.Before, &r.Resok.FileWcc.After
		if r.Status != 0 || !b.AttributesFollow || !a.AttributesFollow {
			return false
		}
		a.Attributes.Size, a.Attributes.Mtime, a.Attributes.Ctime = b.Attributes.Size, b.Attributes.Mtime, b.Attributes.Ctime
		return true
	}, (func(*proxy, *nfs4.WRITE4res) bool)(nil))},
	{name: "still-change-info", what: "the change_info of directories stands still", change: func(_ *proxy, _, res xdr.Message) (done bool) {
		c, ok := res.(*nfs4.CompoundRes)
		if !ok {
			return false
		}
		freeze := func(i *nfs4.ChangeInfo4) { i.Before, i.After, done = 77, 77, true }
		for i := range c.Ops {
			switch r := c.Ops[i].Body.(type) {
			case *nfs4.REMOVE4res:
				freeze(&r.Resok4.Cinfo)
			case *nfs4.CREATE4res:
				freeze(&r.Resok4.Cinfo)
			case *nfs4.LINK4res:
				freeze(&r.Resok4.Cinfo)
			}
		}
		return done
	}},
	{name: "lost-attributes", what: "attributes that NFSv3 leaves optional are left out", change: each(func(_ *proxy, r *nfs3.WRITE3res) bool {
		was := r.Resok.FileWcc.After.AttributesFollow
		r.Resok.FileWcc.After.AttributesFollow = false
		return was && r.Status == 0
	}, (func(*proxy, *nfs4.WRITE4res) bool)(nil))},
	{name: "smaller-limits", what: "FSINFO has smaller limits", change: each(func(_ *proxy, r *nfs3.FSINFO3res) bool {
		r.Resok.Rtpref /= 2
		return r.Status == 0
	}, attrs4(func(_ *proxy, a *nfs4.Attrs) bool {
		if !a.Has(nfs4.FATTR4_MAXREAD) {
			return false
		}
		a.Maxread /= 2
		return true
	}))},
	{name: "one-reply", what: "every tenth reply is the previous one of the same procedure", raw: func(p *proxy, proc string, b []byte) []byte {
		p.mu.Lock()
		defer p.mu.Unlock()
		was := p.kept[proc]
		p.kept[proc] = bytes.Clone(b)
		if p.calls++; p.calls%10 == 0 && was != nil {
			return was
		}
		return b
	}},
	{name: "other-slot", what: "every fifth SEQUENCE is answered with another slot", reason: verdict.Invariant, change: each((func(*proxy, *nfs3.WRITE3res) bool)(nil), func(p *proxy, r *nfs4.SEQUENCE4res) bool {
		done := p.nth(5)
		if done {
			r.SrResok4.SrSlotid++
		}
		return done
	})},
	{name: "other-session", what: "every fifth SEQUENCE is answered with another session", reason: verdict.Invariant, change: each((func(*proxy, *nfs3.WRITE3res) bool)(nil), func(p *proxy, r *nfs4.SEQUENCE4res) bool {
		done := p.nth(5)
		if done {
			r.SrResok4.SrSessionid[0] ^= 1
		}
		return done
	})},
	{name: "other-sequence", what: "every fifth SEQUENCE is answered with another sequence number", reason: verdict.Invariant, change: each((func(*proxy, *nfs3.WRITE3res) bool)(nil), func(p *proxy, r *nfs4.SEQUENCE4res) bool {
		done := p.nth(5)
		if done {
			r.SrResok4.SrSequenceid++
		}
		return done
	})},
	{name: "zero-cookie", what: "the first entry of a page has cookie 0", reason: verdict.Invariant, change: pages(func(cookie []*uint64) bool {
		*cookie[0] = 0
		return true
	})},
	{name: "repeated-cookie", what: "the last entry of a page has the cookie of the first", reason: verdict.Invariant, change: pages(func(cookie []*uint64) bool {
		*cookie[len(cookie)-1] = *cookie[0]
		return len(cookie) > 1
	})},
	{name: "earlier-ctime", what: "the ctime in every third reply to a WRITE is an hour early", reason: verdict.Invariant, change: each(func(p *proxy, r *nfs3.WRITE3res) bool {
		a := &r.Resok.FileWcc.After
		if r.Status != 0 || !a.AttributesFollow || !p.nth(3) {
			return false
		}
		a.Attributes.Ctime.Seconds -= 3600
		return true
	}, (func(*proxy, *nfs4.WRITE4res) bool)(nil))},
	{name: "earlier-wcc", what: "every third WRITE reports that the file had a ctime an hour early before it", reason: verdict.Invariant, change: each(func(p *proxy, r *nfs3.WRITE3res) bool {
		a := &r.Resok.FileWcc.Before
		if r.Status != 0 || !a.AttributesFollow || !p.nth(3) {
			return false
		}
		a.Attributes.Ctime.Seconds -= 3600
		return true
	}, (func(*proxy, *nfs4.WRITE4res) bool)(nil))},
	{name: "old-change-info", what: "every other change_info is the one before", reason: verdict.Invariant, change: func(p *proxy, _, res xdr.Message) (done bool) {
		c, ok := res.(*nfs4.CompoundRes)
		if !ok {
			return false
		}
		for i := range c.Ops {
			var info *nfs4.ChangeInfo4
			switch r := c.Ops[i].Body.(type) {
			case *nfs4.REMOVE4res:
				info = &r.Resok4.Cinfo
			case *nfs4.CREATE4res:
				info = &r.Resok4.Cinfo
			}
			if status, _, _ := c.Ops[i].Status(); info == nil || status != 0 {
				continue
			}
			p.mu.Lock()
			if p.calls%2 == 1 {
				*info, done = p.info, true
			}
			p.info = *info
			p.calls++
			p.mu.Unlock()
		}
		return done
	}},
	{name: "moving-mode", what: "every seventh GETATTR of a file has another mode, but not another change attribute or ctime", reason: verdict.Invariant, change: each(func(p *proxy, r *nfs3.GETATTR3res) bool {
		if r.Status != 0 || r.Resok.ObjAttributes.Type != nfs3.NF3REG || !p.nth(7) {
			return false
		}
		r.Resok.ObjAttributes.Mode ^= 0o002
		return true
	}, attrs4(func(p *proxy, a *nfs4.Attrs) bool {
		if !a.Has(nfs4.FATTR4_MODE) || !a.Has(nfs4.FATTR4_CHANGE) || a.Type != nfs4.NF4REG || !p.nth(7) {
			return false
		}
		a.Mode ^= 0o002
		return true
	}))},
	{name: "short-attrsset", what: "SETATTR reports that it has set nothing", reason: verdict.Invariant, change: each((func(*proxy, *nfs3.WRITE3res) bool)(nil), func(_ *proxy, r *nfs4.SETATTR4res) bool {
		done := len(r.Attrsset.Bitmap4) > 0
		r.Attrsset.Bitmap4 = nil
		return done
	})},
	{name: "extra-attribute", what: "GETATTR returns an attribute more than requested", reason: verdict.Invariant, change: each((func(*proxy, *nfs3.WRITE3res) bool)(nil), attrs4(func(_ *proxy, a *nfs4.Attrs) bool {
		if a.Has(nfs4.FATTR4_HOMOGENEOUS) {
			return false
		}
		a.Mask, a.Homogeneous = a.Mask.With(nfs4.FATTR4_HOMOGENEOUS), true
		return true
	}))},
	{name: "wrong-count", what: "READ reports a byte more than it returns", reason: verdict.Invariant, change: each(func(_ *proxy, r *nfs3.READ3res) bool {
		r.Resok.Count++
		return r.Status == 0
	}, (func(*proxy, *nfs4.WRITE4res) bool)(nil))},
	{name: "cut-reply", what: "every tenth reply lacks its last four bytes", raw: func(p *proxy, _ string, b []byte) []byte {
		if p.nth(10) && len(b) > 40 {
			return b[:len(b)-4]
		}
		return b
	}},
	{name: "long-reply", what: "every tenth reply has four bytes more", raw: func(p *proxy, _ string, b []byte) []byte {
		if p.nth(10) {
			return append(b, 0, 0, 0, 0)
		}
		return b
	}},
	{name: "system-error", what: "every tenth call is answered with SYSTEM_ERR", raw: func(p *proxy, _ string, b []byte) []byte {
		if p.nth(10) {
			// Reply, accepted, no verifier, SYSTEM_ERR (RFC 5531, section 9).
			return []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}
		}
		return b
	}},
	{name: "lost-eof", what: "the last reply of a listing does not report its end", change: func(_ *proxy, _, res xdr.Message) (done bool) {
		end := func(eof *bool) { done = done || *eof; *eof = false }
		switch r := res.(type) {
		case *nfs3.READDIR3res:
			end(&r.Resok.Reply.Eof)
		case *nfs3.READDIRPLUS3res:
			end(&r.Resok.Reply.Eof)
		case *nfs4.CompoundRes:
			for i := range r.Ops {
				if l, ok := r.Ops[i].Body.(*nfs4.READDIR4res); ok && l.Status == 0 {
					end(&l.Resok4.Reply.Eof)
				}
			}
		}
		return done
	}},
}
