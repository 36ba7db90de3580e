package judge

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verdict"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// effect is what one operation does to the bytes of a file, if it succeeds.
type effect struct {
	at       int // operation of the COMPOUND; -1 outside
	object   int
	from, to uint64
	fill
	// source is the file that bytes are copied from, 0 if none; they come from from-back.
	source int
	back   uint64 // from minus the offset in the source
}

// effects calls f for what an op does to the bytes of files.
func (j *Judge) effects(o *plan.Op, f func(effect)) {
	if !o.Modifies {
		return
	}
	args := j.args.Of(o)
	if args == nil {
		j.unreadable(o, f)
		return
	}
	c, ok := args.(*nfs4.CompoundArgs)
	if !ok {
		effect3(o, args, f)
		return
	}
	if len(c.Ops) != len(o.Compound.Ops) {
		return
	}
	saved := 0
	for i := range c.Ops {
		object := workload.ObjectAt(o, i)
		if e := ops.Operation(o.Compound.Ops[i].Op); e != nil && e.Effect == ops.Saves {
			saved = object
		}
		e := effect{at: i, object: object}
		if object > 0 && effect4(o, c.Ops[i].Body, saved, &e) {
			f(e)
		}
	}
}

// unreadable is the effect of an op whose arguments this version cannot read: all of
// what it names may have changed.
func (j *Judge) unreadable(o *plan.Op, f func(effect)) {
	for _, id := range j.load.Objects(o) {
		f(effect{at: -1, object: id, to: forever, fill: fill{kind: anything}})
	}
}

// effect3 is the effect of a procedure of NFSv3.
func effect3(o *plan.Op, args xdr.Message, f func(effect)) {
	e := effect{at: -1, object: workload.ObjectAt(o, -1), to: forever, fill: fill{kind: empty}}
	switch a := args.(type) {
	case *nfs3.WRITE3args:
		e.from, e.to, e.fill = a.Offset, rangeEnd(a.Offset, uint64(a.Count)), wrote(o.Args)
	case *nfs3.SETATTR3args:
		if !a.NewAttributes.Size.SetIt {
			return
		}
		e.from = a.NewAttributes.Size.Size
	case *nfs3.CREATE3args:
		e.object = 0
		for i := range o.Binds {
			if b := &o.Binds[i]; b.Kind == plan.FieldHandle && b.Name == "" && b.NameBytes == nil {
				e.object = b.Ref
			}
		}
		if s := &a.How.ObjAttributes.Size; a.How.Mode == nfs3.UNCHECKED {
			if !s.SetIt {
				return
			}
			e.from = s.Size
		}
	default:
		return
	}
	if e.object > 0 {
		f(e)
	}
}

// effect4 is the effect of an operation of NFSv4 on a file; false if it has none.
func effect4(o *plan.Op, args xdr.Message, saved int, e *effect) bool {
	e.to, e.fill = forever, fill{kind: empty}
	switch a := args.(type) {
	case *nfs4.WRITE4args:
		e.from, e.to, e.fill = a.Offset, rangeEnd(a.Offset, uint64(a.Data.Length)), wrote(o.Compound.Ops[e.at].Args)
	case *nfs4.SETATTR4args:
		return sets(&a.ObjAttributes, e)
	case *nfs4.OPEN4args:
		if a.Openhow.Opentype != nfs4.OPEN4_CREATE {
			return false
		}
		// What was made with GUARDED4 or exclusively was not there before.
		if a.Openhow.How.Mode == nfs4.UNCHECKED4 {
			return sets(&a.Openhow.How.Createattrs, e)
		}
	case *nfs4.DEALLOCATE4args:
		e.from, e.to = a.DaOffset, rangeEnd(a.DaOffset, a.DaLength)
	case *nfs4.COPY4args:
		e.copies(saved, a.CaSrcOffset, a.CaDstOffset, a.CaCount)
		if len(a.CaSourceServer) > 0 || !a.CaSynchronous {
			e.source = 0
		}
	case *nfs4.CLONE4args:
		e.copies(saved, a.ClSrcOffset, a.ClDstOffset, a.ClCount)
	case *nfs4.ALLOCATE4args:
		return false // it reserves space and leaves the bytes as they are
	default:
		return overwrites(o.Compound.Ops[e.at].Op, args, e)
	}
	return true
}

// overwrites is the effect of an operation that changes a range in a way that is not
// known here.
func overwrites(number uint32, args xdr.Message, e *effect) bool {
	known := ops.Operation(number)
	if known == nil {
		return false
	}
	var a ops.Act
	if known.Act(args, &a); a.Class != ops.Changes || !a.Ranged {
		return false
	}
	e.from, e.to, e.kind = a.Offset, rangeEnd(a.Offset, a.Count), anything
	return true
}

// sets is the effect of attributes that are set.
func sets(f *nfs4.Fattr4, e *effect) bool {
	a, err := f.Attrs()
	if err != nil || !a.Has(nfs4.FATTR4_SIZE) {
		return false
	}
	e.from = a.Size
	return true
}

// copies is the effect of COPY and CLONE. How far one without a count goes depends on
// the size of the source.
func (e *effect) copies(source int, from, to, count uint64) {
	e.fill, e.source, e.back = fill{kind: anything}, source, to-from
	e.from, e.to = to, rangeEnd(to, count)
	if count == 0 {
		e.to, e.source = forever, 0
	}
}

// wrote is what a WRITE with these arguments leaves.
func wrote(args []plan.Field) fill {
	for i := range args {
		if p := args[i].Data; args[i].Kind == plan.FieldData && p != nil {
			return fill{kind: written, object: p.Object}
		}
	}
	return fill{kind: anything}
}

func rangeEnd(offset, count uint64) uint64 {
	if offset+count < offset {
		return forever
	}
	return offset + count
}

// changed takes in what an op has done to the bytes of files on this server. A nil
// result stands for a reply that did not come: it may have done it or not.
func (j *Judge) changed(world int, o *plan.Op, res xdr.Message) {
	if j.level != All || j.load.Tables.Header.Payload == plan.Sparse {
		return
	}
	j.effects(o, func(e effect) {
		h := j.history(world)
		done, count := executed(res, e.at)
		switch {
		case done == skipped:
			return
		case done == failed:
			// An error may come after a part was done.
			e.kind, e.source = anything, 0
		case count >= 0 && e.to != forever:
			e.to = min(e.to, e.from+uint64(count))
		}
		if e.source > 0 {
			h.copied(&e)
			return
		}
		h.fill(e.object, e.from, e.to, e.fill)
	})
}

// Lost takes in that the reply to a call did not come, or could not be read.
// The server may have been restarted.
func (j *Judge) Lost(world int, o *plan.Op) {
	j.changed(world, o, nil)
	clear(j.history(world).verifiers)
}

// Prepared takes in that a file was filled with size bytes before the replay. made says
// that it is new, so that nothing stands behind them.
func (j *Judge) Prepared(world, object int, size uint64, made bool) {
	h := j.history(world)
	h.fill(object, 0, size, fill{kind: written, object: object})
	if made {
		h.fill(object, size, forever, fill{kind: empty})
	}
}

// done says what became of an operation.
type done uint8

const (
	skipped done = iota // not executed
	failed              // it failed, or may have
	succeeded
)

// executed tells what became of operation at of a call, and how many bytes it says that
// it has written; -1 if it says nothing.
func executed(res xdr.Message, at int) (done, int64) {
	m := res
	if c, ok := res.(*nfs4.CompoundRes); ok && at >= 0 {
		if at >= len(c.Ops) {
			return skipped, -1
		}
		if code, _, _ := c.Ops[at].Status(); code != 0 {
			return failed, -1
		}
		m = c.Ops[at].Body
	} else if code, _ := StatusOf(res); res == nil || code != 0 {
		return failed, -1
	}
	switch m := m.(type) {
	case *nfs3.WRITE3res:
		return succeeded, int64(m.Resok.Count)
	case *nfs4.WRITE4res:
		return succeeded, int64(m.Resok4.Count)
	case *nfs4.COPY4res:
		return succeeded, int64(min(m.CrResok4.CrResponse.WrCount, 1<<62))
	}
	return succeeded, -1
}

// fill notes what a range of a file holds.
func (h *history) fill(object int, from, to uint64, with fill) {
	f := h.files[object]
	f.set(from, to, with)
	h.files[object] = f
}

// copied notes what a range holds that was copied.
func (h *history) copied(e *effect) {
	var from fills
	h.files[e.source].each(e.from-e.back, e.to-e.back, func(x filled) { from = append(from, x) })
	for _, x := range from {
		switch x.kind {
		case written:
			x.shift -= e.back
		case unknown:
			x.kind = anything
		}
		h.fill(e.object, x.from+e.back, x.to+e.back, x.fill)
	}
}

// madeUp compares data with what this run has put at that place of a file: the pattern
// where a WRITE or the preparation was, zeros where a hole was made. Where neither is
// known, either is right.
func (j *Judge) madeUp(r *Reply, b []byte, object int, offset uint64) verdict.Reason {
	var why verdict.Reason
	j.history(r.World).files[object].each(offset, offset+uint64(len(b)), func(x filled) {
		if why.Code != verdict.None {
			return
		}
		at, code := j.mismatch(b[x.from-offset:x.to-offset], object, &x)
		if code == verdict.PatternDiffers || code != verdict.None && !j.meanwhile(r.Op, object, x.from, x.to) {
			why = verdict.Reason{Code: code, N: x.from + uint64(at)}
		}
	})
	return why
}

// mismatch compares one part; the code is None if it is right.
func (j *Judge) mismatch(b []byte, object int, x *filled) (int, verdict.Code) {
	if j.load.Tables.Header.Payload != plan.Pattern {
		return nonZero(b), codeIf(nonZero(b) >= 0, verdict.PatternDiffers)
	}
	switch x.kind {
	case anything:
		return 0, verdict.None
	case unknown, empty:
		x.object = object
	}
	if cap(j.pattern) < len(b) {
		j.pattern = make([]byte, len(b))
	}
	j.pattern = j.pattern[:len(b)]
	plan.FillPattern(j.pattern, x.object, x.from+x.shift)
	if x.kind != empty && bytes.Equal(b, j.pattern) || x.kind != written && nonZero(b) < 0 {
		return 0, verdict.None
	}
	for i := range b {
		switch is := b[i] == j.pattern[i]; {
		case b[i] == 0 && x.kind == written && !is:
			return i, verdict.WrittenLost
		case b[i] == 0 || is && x.kind != empty:
		case is:
			return i, verdict.HoleFilled
		default:
			return i, verdict.PatternDiffers
		}
	}
	return 0, verdict.None
}

func codeIf(yes bool, c verdict.Code) verdict.Code {
	if yes {
		return c
	}
	return verdict.None
}

// meanwhile reports whether a call that was under way together with an op changes a
// part of a range, so that either of two contents is right.
func (j *Judge) meanwhile(o *plan.Op, object int, from, to uint64) bool {
	found := false
	// A COMPOUND may read what it has changed itself.
	j.effects(o, func(e effect) { found = found || e.object == object && e.from < to && from < e.to })
	j.moments.together(o, object, func(c *plan.Op) bool {
		j.effects(c, func(e effect) { found = found || e.object == object && e.from < to && from < e.to })
		return !found
	})
	return found
}

// objectOf is workload.ObjectAt for the operation that a piece of data came from.
func objectOf(o *plan.Op, at int) int {
	if o.Compound == nil {
		at = -1
	}
	return workload.ObjectAt(o, at)
}
