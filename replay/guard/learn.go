package guard

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// lesson is what to learn from the reply to a call.
type lesson struct {
	// procedure of NFSv3 whose result holds handles of objects inside; 0 if none.
	procedure uint32
	// files has a bit for each operation of a COMPOUND whose results do. Nothing is learned
	// from operations beyond the 64th.
	files uint64
	// own: an operation gives this run a client, a session or a state id.
	own   bool
	minor uint32
}

func (l *lesson) none() bool { return l.procedure == 0 && l.files == 0 && !l.own }

// ofProcedure adds what a procedure that may be sent will teach.
func (l *lesson) ofProcedure(g *Guard, h *oncrpc.Call, a *ops.Act) {
	if h.Program != nfs3.NFS_PROGRAM || h.Version != nfs3.NFS_V3 {
		return
	}
	e := ops.Procedure(h.Program, h.Version, h.Procedure)
	if e == nil || !e.Gives.Has(ops.Handle|ops.Handles) {
		return
	}
	p := a.Places()
	if len(p) == 1 && g.knows(p[0].Handle) && (!p[0].Named || ops.PlainName(p[0].Name)) {
		l.procedure = h.Procedure
	}
}

// ofOperation does the same for an operation. inside is about the current file handle after
// it.
func (l *lesson) ofOperation(i int, minor uint32, op *nfs4.Op, inside bool) {
	e := ops.Operation(op.Number)
	if e == nil {
		return
	}
	if e.Gives.Has(ops.Handle|ops.Handles) && inside && i < 64 {
		l.files |= 1 << i
	}
	// From 4.1 on a state id goes with the client of the session.
	if e.Gives.Has(ops.Client|ops.Session) || e.Gives.Has(ops.State) && minor == 0 {
		l.own = true
	}
	l.minor = minor
}

// pupil decodes replies. It is reused.
type pupil struct {
	g      *Guard
	lesson lesson
	next   func(*transport.Call) // Done of the caller
	done   func(*transport.Call) // ours

	header   oncrpc.Reply
	reader   xdr.Reader
	sizes    []xdr.Reduced
	compound nfs4.CompoundRes
	attrs    nfs4.Attrs
	outcome  ops.Outcome
	results  map[uint32]xdr.Message // of NFSv3, by procedure
}

func (g *Guard) pupil(l lesson) *pupil {
	p, ok := g.lessons.Get().(*pupil)
	if !ok {
		p = &pupil{g: g, results: map[uint32]xdr.Message{}}
		p.done = p.over
	}
	p.lesson = l
	return p
}

// over is the Done of a call from whose reply something is learned.
func (p *pupil) over(c *transport.Call) {
	next := p.next
	if c.Err == nil {
		p.learn(&c.Reply)
	}
	p.next = nil
	p.g.lessons.Put(p)
	if c.Done = next; next != nil {
		next(c)
	}
}

// learn learns from a reply. One that cannot be decoded is ignored.
func (p *pupil) learn(m *transport.Message) {
	h := &p.header
	if err := h.Decode(m.Stream, len(m.Stream)); err != nil || !h.Succeeded() || h.Size() > len(m.Stream) {
		return
	}
	at := h.Size()
	p.sizes = p.sizes[:0]
	for i := range m.Items {
		p.sizes = append(p.sizes, xdr.Reduced{Length: uint32(len(m.Items[i].Data))})
	}
	r := &p.reader
	r.Reset(m.Stream[at:], len(m.Stream)-at)
	r.StartAt(uint32(at))
	r.ReduceReply(p.sizes)
	if p.lesson.procedure != 0 {
		p.procedure(r)
		return
	}
	p.compound.Decode(r)
	for i := range p.compound.Ops {
		p.operation(i, &p.compound.Ops[i])
	}
}

func (p *pupil) procedure(r *xdr.Reader) {
	n := p.lesson.procedure
	res := p.results[n]
	if res == nil {
		res = nfs3.Programs[0].Procedures[n].NewResult()
		p.results[n] = res
	}
	res.Decode(r)
	if s, ok := res.(xdr.Status); r.Failed() || !ok {
		return
	} else if code, _ := s.StatusCode(); code != 0 {
		return
	}
	if m, ok := res.(*nfs3.READDIRPLUS3res); ok {
		for i := range m.Resok.Reply.Entries {
			if e := &m.Resok.Reply.Entries[i]; e.NameHandle.HandleFollows && ops.PlainName(e.Name) {
				p.file(e.NameHandle.Handle.Data)
			}
		}
		return
	}
	ops.Procedure(nfs3.NFS_PROGRAM, nfs3.NFS_V3, n).Outcome(res, &p.outcome)
	p.file(p.outcome.Handle)
}

func (p *pupil) operation(i int, op *nfs4.Op) {
	e := ops.Operation(op.Number)
	if code, _, _ := op.Status(); e == nil || code != 0 {
		return
	}
	inside := i < 64 && p.lesson.files&(1<<i) != 0
	if m, ok := op.Body.(*nfs4.READDIR4res); ok && inside {
		p.entries(m.Resok4.Reply.Entries)
	}
	e.Outcome(op.Body, &p.outcome)
	if inside && e.Gives.Has(ops.Handle) {
		p.file(p.outcome.Handle)
	}
	if id := p.outcome.Client; id != nil {
		p.g.OwnClient(*id)
	}
	if id := p.outcome.Session; id != nil {
		p.g.OwnSession(*id)
	}
	if e.Gives.Has(ops.State) {
		p.state(p.outcome.State)
		p.state(p.outcome.Delegation)
	}
}

func (p *pupil) entries(list []nfs4.Entry4) {
	for i := range list {
		e := &list[i]
		if !e.Attrs.Attrmask.Has(nfs4.FATTR4_FILEHANDLE) || !ops.PlainName(e.Name) {
			continue
		}
		if p.attrs.Decode(&e.Attrs) == nil && p.attrs.Has(nfs4.FATTR4_FILEHANDLE) {
			p.file(p.attrs.Filehandle)
		}
	}
}

// state takes in a state id of NFSv4.0, which may be nil.
func (p *pupil) state(s *nfs4.Stateid4) {
	if s != nil && p.lesson.minor == 0 {
		p.g.OwnState(s.Other)
	}
}

// file takes in the handle of an object inside. The empty one belongs to no object
// (in NFSv3 the public one, RFC 2054).
func (p *pupil) file(h []byte) {
	if len(h) == 0 || p.g.knows(h) {
		return
	}
	p.g.mu.Lock()
	p.g.inside.add(h)
	p.g.mu.Unlock()
}
