package expected

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// effect is what one operation does to the bytes of a file, if it succeeds.
type effect struct {
	object   int
	from, to uint64
	fill
	counts bool // it is bytes that this run has written
	// source is the file that bytes are copied from, 0 if none; they come from from-back.
	source int
	back   uint64 // from minus the offset in the source
}

// effectOf is the effect of a step on the bytes of a file; false if it has none.
func effectOf(s *step) (effect, bool) {
	e := effect{object: s.object}
	if s.at < 0 {
		e.object = s.before
		return e, effect3(s, &e)
	}
	return e, e.object > 0 && effect4(s, &e)
}

// Changes reports whether an op changes a part of a range of an object, if it succeeds.
func (l *State) Changes(o *plan.Op, object int, from, to uint64) bool {
	if !o.Modifies {
		return false
	}
	args := l.args.Of(o)
	if args == nil {
		return slices.Contains(l.load.Objects(o), object)
	}
	found := false
	eachStep(o, args, func(s *step) {
		e, ok := effectOf(s)
		found = found || ok && e.object == object && e.from < to && from < e.to
	})
	return found
}

// effect3 is the effect of a procedure of NFSv3.
func effect3(s *step, e *effect) bool {
	e.to, e.fill = forever, fill{kind: empty}
	switch a := s.args.(type) {
	case *nfs3.WRITE3args:
		e.from, e.to, e.fill = a.Offset, rangeEnd(a.Offset, uint64(a.Count)), wrote(s.fields, a.Offset)
	case *nfs3.SETATTR3args:
		if !a.NewAttributes.Size.SetIt {
			return false
		}
		e.from = a.NewAttributes.Size.Size
	case *nfs3.CREATE3args:
		e.object = 0
		if s.object != s.before {
			e.object = s.object
		}
		if z := &a.How.ObjAttributes.Size; a.How.Mode == nfs3.UNCHECKED {
			if !z.SetIt {
				return false
			}
			e.from = z.Size
		}
	default:
		return false
	}
	return e.object > 0
}

// effect4 is the effect of an operation of NFSv4 on a file; false if it has none.
func effect4(s *step, e *effect) bool {
	e.to, e.fill = forever, fill{kind: empty}
	switch a := s.args.(type) {
	case *nfs4.WRITE4args:
		e.from, e.to, e.fill = a.Offset, rangeEnd(a.Offset, uint64(a.Data.Length)), wrote(s.fields, a.Offset)
	case *nfs4.SETATTR4args:
		return sets(&a.ObjAttributes, e)
	case *nfs4.OPEN4args:
		if a.Openhow.Opentype != nfs4.OPEN4_CREATE {
			return false
		}
		// A file created with GUARDED4 or exclusively did not exist before.
		if a.Openhow.How.Mode == nfs4.UNCHECKED4 {
			return sets(&a.Openhow.How.Createattrs, e)
		}
	case *nfs4.DEALLOCATE4args:
		e.from, e.to = a.DaOffset, rangeEnd(a.DaOffset, a.DaLength)
	case *nfs4.COPY4args:
		e.copies(s.saved, a.CaSrcOffset, a.CaDstOffset, a.CaCount)
		if len(a.CaSourceServer) > 0 || !a.CaSynchronous {
			e.source = 0
		}
	case *nfs4.CLONE4args:
		e.copies(s.saved, a.ClSrcOffset, a.ClDstOffset, a.ClCount)
	case *nfs4.ALLOCATE4args:
		return false // it reserves space and leaves the bytes as they are
	default:
		return overwrites(s.op.Compound.Ops[s.at].Op, s.args, e)
	}
	return true
}

// overwrites is the effect of an operation that changes a range in an unknown way.
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

// sets is the effect of setting attributes.
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

// wrote is the effect of a WRITE at an offset.
func wrote(args []plan.Field, offset uint64) fill {
	for i := range args {
		p := args[i].Data
		if args[i].Kind != plan.FieldData || p == nil {
			continue
		}
		switch p.Source {
		case plan.Pattern:
			return fill{kind: written, object: p.Object, shift: p.Offset - offset}
		case plan.Captured:
			return fill{kind: stored, shift: uint64(p.At) - offset}
		}
	}
	return fill{kind: anything} // zeros: whether they were written cannot be seen
}

func rangeEnd(offset, count uint64) uint64 {
	if offset+count < offset {
		return forever
	}
	return offset + count
}

// bytes applies the effect of a step on the bytes of a file.
func (l *State) bytes(c *Call, s *step) {
	e, ok := effectOf(s)
	if s.fresh {
		e, ok = effect{object: s.object, to: forever, fill: fill{kind: empty}}, true
	}
	if !ok {
		return
	}
	_, write3 := s.args.(*nfs3.WRITE3args)
	_, write4 := s.args.(*nfs4.WRITE4args)
	e.counts = write3 || write4 || e.source > 0
	switch {
	case s.done == failed:
		// An error may come after a part was executed.
		e.kind, e.source, e.counts = anything, 0, false
	case s.count >= 0 && e.to != forever:
		e.to = min(e.to, e.from+uint64(s.count))
	}
	if e.source > 0 {
		l.copied(c, &e)
		return
	}
	l.set(c, &e)
}

// set notes the content of a range.
func (l *State) set(c *Call, e *effect) {
	if e.from >= e.to {
		return
	}
	f := l.file(e.object)
	l.replaced(f, e.from, e.to, Overwritten)
	if e.counts {
		l.account.written += e.to - e.from
		if e.kind == anything {
			l.account.never[NoPattern] += e.to - e.from
		}
	}
	f.fills.set(e.from, e.to, e.fill)
	f.recent.add(change{e.from, e.to, e.fill, c.Replied}, c.Sent, func(from, to uint64) {
		l.replaced(f, from, to, AnyOrder)
		f.fills.set(from, to, fill{kind: anything})
	})
}

// copied notes the content of a copied range.
func (l *State) copied(c *Call, e *effect) {
	var from []filled
	l.file(e.source).fills.each(e.from-e.back, e.to-e.back, func(x filled) { from = append(from, x) })
	if l.file(e.source).recent.since(c.Sent) {
		from = []filled{{from: e.from - e.back, to: e.to - e.back}} // it may have changed before or after
	}
	for _, x := range from {
		switch x.read = false; x.kind {
		case written, stored:
			x.shift -= e.back
		case unknown:
			x.kind = anything
		}
		p := effect{object: e.object, from: x.from + e.back, to: x.to + e.back, fill: x.fill, counts: e.counts && x.mine()}
		l.set(c, &p)
	}
}

// since reports whether a file may have been changed since a moment.
func (r *recent) since(t time.Time) bool {
	for i := range r.list {
		if r.list[i].replied.After(t) {
			return true
		}
	}
	return r.old.After(t)
}

// Prepared is what was put into a file before the replay.
type Prepared struct {
	Size uint64 // of the file
	// Filled is how many bytes of it were written, from its start: those of Parts, which come
	// from the side file, and the pattern between them. If it is 0 only Parts were written.
	Filled uint64
	Parts  []plan.Extent
	New    bool // it was made, so that nothing else is in it
}

// Prepared notes what was put into a file before the replay.
func (l *State) Prepared(object int, p Prepared) {
	f := l.file(object)
	if p.New {
		f.fills.set(0, forever, fill{kind: empty})
		f.checked.size, f.checked.sized = p.Size, true
	}
	set := func(from, to uint64, with fill) {
		if from < to {
			l.account.written += to - from
			f.fills.set(from, to, with)
		}
	}
	next := uint64(0)
	for _, x := range p.Parts {
		set(next, min(x.Offset, p.Filled), fill{kind: written, object: object})
		set(x.Offset, rangeEnd(x.Offset, x.Length), fill{kind: stored, shift: uint64(x.At) - x.Offset})
		next = max(next, rangeEnd(x.Offset, x.Length))
	}
	set(next, p.Filled, fill{kind: written, object: object})
}

// done is the outcome of an operation.
type done uint8

const (
	skipped done = iota // not executed
	failed              // it failed, or may have
	succeeded
)

// executed returns the outcome of operation at of a call, and how many bytes it reports as
// written; -1 if it reports none.
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
	} else if code := statusOf(res); res == nil || code != 0 {
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

// Compare compares bytes that a server has returned with the expected content at an offset of an
// object. either reports whether a range may also hold something else, because a call in flight
// changes it. The code is verdict.None if the bytes are right or nothing is known; at is where
// they are wrong.
func (l *State) Compare(object int, offset uint64, b []byte, either func(from, to uint64) bool) (at uint64, code verdict.Code) {
	at, code = l.Check(object, offset, b, either)
	if code == verdict.None {
		l.Seen(object, offset, uint64(len(b)))
	}
	return at, code
}

// Check is Compare without recording anything.
func (l *State) Check(object int, offset uint64, b []byte, either func(from, to uint64) bool) (at uint64, code verdict.Code) {
	f := l.files[object]
	if f == nil {
		f = &file{} // nothing is known
	}
	f.fills.each(offset, offset+uint64(len(b)), func(x filled) {
		if code != verdict.None {
			return
		}
		i, c := l.mismatch(b[x.from-offset:x.to-offset], object, &x)
		switch {
		case c == verdict.PatternDiffers || c != verdict.None && !either(x.from, x.to):
			at, code = x.from+uint64(i), c
		}
	})
	return at, code
}

// Seen notes that a READ has returned n correct bytes at an offset of an object.
func (l *State) Seen(object int, offset, n uint64) {
	f := l.files[object]
	if f == nil {
		return
	}
	var right [8]filled
	k := 0
	f.fills.each(offset, offset+n, func(x filled) {
		if x.mine() && !x.read && k < len(right) {
			right[k] = x
			k++
		}
	})
	for _, x := range right[:k] {
		if len(f.fills) < maxFills-4 { // otherwise something else would be forgotten
			x.read = true
			f.fills.set(x.from, x.to, x.fill)
		}
	}
}

// Holds reports whether this run has written the byte at an offset of an object, so that the file
// must extend beyond it.
func (l *State) Holds(object int, offset uint64) bool {
	is := false
	if f := l.files[object]; f != nil {
		f.fills.each(offset, offset+1, func(x filled) { is = x.mine() })
	}
	return is
}

// MadeUp reports whether a part of a range holds bytes that were made up: the capture lacks those that were written there.
func (l *State) MadeUp(object int, from, to uint64) bool {
	is := false
	if f := l.files[object]; f != nil {
		f.fills.each(from, to, func(x filled) { is = is || x.kind == written })
	}
	return is
}

// mismatch compares one part; the code is None if it is right.
func (l *State) mismatch(b []byte, object int, x *filled) (int, verdict.Code) {
	if l.load.Tables.Header.Payload == plan.Sparse {
		if i := nonZero(b); i >= 0 {
			return i, verdict.PatternDiffers
		}
		return 0, verdict.None
	}
	pattern := l.load.Tables.Header.Payload == plan.Pattern
	switch x.kind {
	case anything:
		return 0, verdict.None
	case unknown:
		if !pattern {
			return 0, verdict.None
		}
		x.object = object
	case empty:
		if x.object = object; nonZero(b) < 0 {
			return 0, verdict.None
		}
	}
	must := l.buffer(0, len(b))
	if x.kind == stored {
		if l.load.Data == nil {
			return 0, verdict.None
		}
		if _, err := l.load.Data.ReadAt(must, int64(x.from+x.shift)); err != nil {
			return 0, verdict.None // the plan is at fault, not the server
		}
	} else {
		plan.FillPattern(must, x.object, x.from+x.shift)
	}
	if x.kind != empty && bytes.Equal(b, must) || x.kind == unknown && nonZero(b) < 0 {
		return 0, verdict.None
	}
	for i := range b {
		switch is := b[i] == must[i]; {
		case b[i] == 0 && x.mine() && !is:
			return i, verdict.WrittenLost
		case b[i] == 0 || is && x.kind != empty:
		case is || !pattern:
			if x.kind == empty {
				return i, verdict.HoleFilled
			}
			return i, verdict.WrittenDiffers
		default:
			return i, verdict.PatternDiffers
		}
	}
	return 0, verdict.None
}

// buffer is memory for n bytes.
func (l *State) buffer(which, n int) []byte {
	if cap(l.buffers[which]) < n {
		l.buffers[which] = make([]byte, n)
	}
	return l.buffers[which][:n]
}

// nonZero is the position of the first non-zero byte; -1 if there is none.
func nonZero(b []byte) int {
	for i := 0; i < len(b); i++ {
		if i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:]) == 0 {
			i += 7
		} else if b[i] != 0 {
			return i
		}
	}
	return -1
}

// statusOf is the status of a result; 0 if it has none.
func statusOf(m xdr.Message) uint32 {
	if s, ok := m.(xdr.Status); ok {
		code, _ := s.StatusCode()
		return code
	}
	return 0
}
