package run

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// judgement is what became of one reply.
type judgement struct {
	Verdict Verdict
	Reasons []string
}

func (j *judgement) worsen(v Verdict, reason string) {
	j.Verdict = max(j.Verdict, v)
	if reason != "" && len(j.Reasons) < maxDifferences && !slices.Contains(j.Reasons, reason) {
		j.Reasons = append(j.Reasons, reason)
	}
}

// verifier compares replies with captured ones. It belongs to one goroutine.
type verifier struct {
	load   *Workload
	level  Verify
	cmp    comparison
	want   map[*xdr.Procedure]xdr.Message // captured results, decoded here
	have   map[*xdr.Procedure]xdr.Message
	reader xdr.Reader
	sizes  []xdr.Reduced
	buf    []byte
	// chains are directory listings under way: names that one side gave and
	// the other one did not, yet.
	chains  map[chain]map[string]int
	moments *moments
}

// chain is a directory that one world lists.
type chain struct {
	world, object int
}

func newVerifier(w *Workload, level Verify, ignore []string, relaxed bool) *verifier {
	v := &verifier{load: w, level: level, want: map[*xdr.Procedure]xdr.Message{}, have: map[*xdr.Procedure]xdr.Message{},
		chains: map[chain]map[string]int{}, moments: newMoments(w, relaxed)}
	v.cmp.ignore = map[string]bool{}
	for _, f := range ignore {
		v.cmp.ignore[f] = true
	}
	return v
}

// procedure finds the codec of an op; nil if it is not known.
func procedure(o *plan.Op) *xdr.Procedure {
	p := nfs.Lookup(o.Program, o.Version)
	if p == nil {
		return nil
	}
	return p.Procedure(o.Procedure)
}

// message is a result of a procedure, used again and again.
func message(m map[*xdr.Procedure]xdr.Message, p *xdr.Procedure) xdr.Message {
	r := m[p]
	if r == nil {
		r = p.NewResult()
		m[p] = r
	}
	return r
}

// judge compares a reply. rpc is the outcome of the RPC layer, empty if the
// call was executed; res its result.
func (v *verifier) judge(f *flight, rpc string, res xdr.Message) judgement {
	j := v.compare(f, rpc, res)
	if (j.Verdict == Worse || j.Verdict == Different) && v.load.cutBefore(f.op) {
		j.Verdict = Explained
		j.Reasons = append([]string{reasonCut}, j.Reasons...)
	}
	return j
}

// compare is judge for a capture that lacks nothing.
func (v *verifier) compare(f *flight, rpc string, res xdr.Message) (j judgement) {
	x := f.op.Expect
	v.cmp.reset()
	if f.note != "" {
		j.worsen(Equivalent, f.note)
	}
	switch {
	case v.level == VerifyNone:
		return j
	case x == nil:
		j.worsen(Equivalent, "the capture has no reply to compare with")
		return j
	case x.RPC != "" && rpc == "":
		j.worsen(Better, fmt.Sprintf("done, was %s", x.RPC))
		return j
	case x.RPC != rpc:
		if x.RPC == "" && f.op.Program == nfsacl.NFS_ACL_PROGRAM && noProgram(rpc) {
			j.worsen(Explained, fmt.Sprintf("%s: %s", reasonNoACL, rpc))
		} else if x.RPC == "" {
			j.worsen(Worse, fmt.Sprintf("%s, was done", rpc))
		} else {
			j.worsen(Different, fmt.Sprintf("%s, was %s", rpc, x.RPC))
		}
		return j
	case rpc != "":
		return j
	}
	if !v.status(&j, f.op, res) || v.level == VerifyStatus {
		if code, _ := statusOf(res); code != 0 && x.Status == 0 {
			f.world.spoil(f.op)
		}
		return j
	}
	v.results(&j, f, res)
	v.data(&j, f, res)
	v.layout(&j, f)
	if j.Verdict == Different && v.load.touchesAbove(f.op) {
		j = judgement{Equivalent, []string{reasonAbove}}
	}
	if j.Verdict == Different {
		if o := v.spoilt(f); o != nil {
			j.Verdict = Explained
			j.Reasons = append([]string{fmt.Sprintf("what op %d (XID %08x, %s) changed in the capture has not happened here", o.ID, o.XID, o.What)}, j.Reasons...)
			return j
		}
	}
	if j.Verdict == Different && v.load.others(f.op) {
		j.Verdict = Explained
		j.Reasons = append([]string{reasonOthers}, j.Reasons...)
		return j
	}
	if j.Verdict == Different && len(f.op.Reasons) > 0 && f.op.Class != plan.Exact {
		j.Verdict = Explained
		j.Reasons = append([]string{f.op.Reasons[0]}, j.Reasons...)
	}
	return j
}

// cutBefore reports whether the capture lacks a part of a call that came before
// an op, so that what the op needs may have been made by that one.
func (w *Workload) cutBefore(o *plan.Op) bool {
	for _, s := range w.Skips {
		if s.Cut() {
			return s.Time <= o.Time
		}
	}
	return false
}

// spoil notes that an op has not changed here what it changed in the capture.
func (w *world) spoil(o *plan.Op) {
	if !o.Modifies {
		return
	}
	if o.Compound == nil {
		w.spoilt[objectAt(o, 0)] = o
		return
	}
	for i := range o.Compound.Ops {
		// An OPEN has opened nothing then, and the calls on that file tell.
		op := o.Compound.Ops[i].Op
		if e := ops.Operation(op); e != nil && e.Class == ops.Changes && nfs4.NfsOpnum4(op) != nfs4.OP_OPEN {
			w.spoilt[objectAt(o, i)] = o
		}
	}
}

// spoilt is the op without which an object that another one is about is not what
// it was in the capture; nil if there is none.
func (v *verifier) spoilt(f *flight) *plan.Op {
	if len(f.world.spoilt) == 0 {
		return nil
	}
	for _, id := range v.moments.objects(f.op) {
		if o := f.world.spoilt[id]; o != nil && o != f.op {
			return o
		}
	}
	// In a listing of a directory it is a name.
	var found *plan.Op
	for _, d := range v.cmp.different {
		i := strings.Index(d, `."`)
		quoted, err := strconv.QuotedPrefix(d[i+1:])
		if i < 0 || err != nil {
			return nil
		}
		name, _ := strconv.Unquote(quoted)
		if found = f.world.spoiltNamed(v.load, name); found == nil {
			return nil
		}
	}
	return found
}

// spoiltNamed is the first such op for an object of that name.
func (w *world) spoiltNamed(load *Workload, name string) (first *plan.Op) {
	for id, o := range w.spoilt {
		if id > 0 && nameOf(load.Tables.Objects[id-1].Name, load.Tables.Objects[id-1].NameBytes) == name && (first == nil || o.ID < first.ID) {
			first = o
		}
	}
	return first
}

// touchesAbove reports whether an op is about a directory above the base.
func (w *Workload) touchesAbove(o *plan.Op) bool {
	if o.Role == plan.Mounting {
		return true
	}
	if o.Compound == nil {
		return false
	}
	for i := range o.Compound.Ops {
		if id := objectAt(o, i); nfs4.NfsOpnum4(o.Compound.Ops[i].Op) == nfs4.OP_PUTROOTFH || id > 0 && w.Tables.Objects[id-1].Origin == plan.Above {
			return true
		}
	}
	return false
}

// others reports whether an op is about an object of which the plan says that
// somebody who is not in the capture has changed it.
func (w *Workload) others(o *plan.Op) bool {
	noted := func(id int) bool {
		return id > 0 && slices.ContainsFunc(w.Tables.Objects[id-1].Notes, plan.Note.Foreign)
	}
	if o.Compound == nil {
		for i := range o.Args {
			if a := &o.Args[i]; (a.Kind == plan.FieldHandle || a.Kind == plan.FieldName) && noted(a.Ref) {
				return true
			}
		}
		return false
	}
	for i := range o.Compound.Ops {
		if noted(objectAt(o, i)) {
			return true
		}
	}
	return false
}

// statusOf is the status of a result; 0 if it has none.
func statusOf(m xdr.Message) (uint32, string) {
	if s, ok := m.(xdr.Status); ok {
		return s.StatusCode()
	}
	return 0, ""
}

func statusName(code uint32, symbol string) string {
	if symbol == "" {
		return fmt.Sprintf("status %d", code)
	}
	return symbol
}

// status compares outcomes, and reports whether there is more to compare.
func (v *verifier) status(j *judgement, o *plan.Op, res xdr.Message) bool {
	x := o.Expect
	code, symbol := statusOf(res)
	if code == x.Status {
		if c, ok := res.(*nfs4.CompoundRes); ok && len(x.Ops) > 0 && len(c.Ops) != len(x.Ops) && !(x.Partial && len(c.Ops) > len(x.Ops)) {
			j.worsen(Different, fmt.Sprintf("%d operations were done, %d before", len(c.Ops), len(x.Ops)))
			return false
		}
		return true
	}
	was := statusName(x.Status, x.StatusName)
	now := statusName(code, symbol)
	at := ""
	if c, ok := res.(*nfs4.CompoundRes); ok && len(c.Ops) > 0 {
		last := len(c.Ops) - 1
		if x.Status != 0 && len(x.Ops) > 0 {
			last = min(last, len(x.Ops)-1)
		}
		at = nfs4.OpName(c.Ops[last].Number) + ": "
	}
	switch {
	case code == 0:
		j.worsen(Better, fmt.Sprintf("%sOK, was %s", at, was))
	case x.Status == 0 && unsupported(o, code):
		j.worsen(Explained, fmt.Sprintf("%s%s: the server does not support it", at, now))
	case x.Status == 0:
		j.worsen(Worse, fmt.Sprintf("%s%s, was OK", at, now))
	default:
		j.worsen(Different, fmt.Sprintf("%s%s, was %s", at, now, was))
	}
	return false
}

// unsupported are the statuses of what a server does not have.
func unsupported(o *plan.Op, code uint32) bool {
	if o.Compound == nil {
		return code == uint32(nfs3.NFS3ERR_NOTSUPP)
	}
	switch nfs4.Nfsstat4(code) {
	case nfs4.NFS4ERR_NOTSUPP, nfs4.NFS4ERR_ATTRNOTSUPP, nfs4.NFS4ERR_UNION_NOTSUPP:
		return true
	}
	return false
}

// results compares the fields.
func (v *verifier) results(j *judgement, f *flight, res xdr.Message) {
	x := f.op.Expect
	p := procedure(f.op)
	if p == nil || x.Results == nil {
		if x.Partial {
			j.worsen(Equivalent, reasonPartial)
		}
		return
	}
	want := message(v.want, p)
	v.sizes = v.sizes[:0]
	for i := range x.Data {
		v.sizes = append(v.sizes, xdr.Reduced{Length: x.Data[i].Length})
	}
	r := &v.reader
	r.Reset(x.Results, len(x.Results))
	r.ReduceReply(v.sizes)
	want.Decode(r)
	if r.Err() != nil {
		why := "the captured results cannot be read: only their status was compared"
		if x.Partial {
			why = reasonPartial
		}
		j.worsen(Equivalent, why)
		return
	}
	c := &v.cmp
	c.directory = func(i int) bool {
		id := objectAt(f.op, i)
		return id > 0 && v.load.Tables.Objects[id-1].Type == "dir"
	}
	c.exclusive = func(i int) bool { return exclusive(f.op, i) }
	c.moment = func() string { return v.moments.reason(f.op, f.newest) }
	c.reading = f.op.Compound == nil && f.op.Program == nfs3.NFS_PROGRAM && f.op.Procedure == nfs3.NFSPROC3_READ
	c.reset()
	c.want.fill(want)
	if f.rewrote {
		for i := int32(0); i < int32(len(c.want.nodes)); i = c.want.nodes[i].end {
			if n := &c.want.nodes[i]; n.name == "PUTROOTFH" {
				n.name = "PUTFH"
			}
		}
	}
	if normalACL(want, res) {
		c.equivalent[reasonACLOrder] = true
		c.want.fill(want)
	}
	c.have.fill(res)
	c.run()
	v.entries(j, f, want, res)
	for _, reason := range slices.Sorted(maps.Keys(c.equivalent)) {
		j.worsen(Equivalent, reason)
	}
	for _, why := range c.explained {
		j.worsen(Explained, why)
	}
	for _, d := range c.different {
		j.worsen(Different, d)
	}
}

// listed tells of the end of a directory listing in a result.
func listed(m xdr.Message) (eof, ok bool) {
	switch m := m.(type) {
	case *nfs3.READDIR3res:
		return m.Resok.Reply.Eof, true
	case *nfs3.READDIRPLUS3res:
		return m.Resok.Reply.Eof, true
	case *nfs4.CompoundRes:
		for i := range m.Ops {
			if r, ok := m.Ops[i].Body.(*nfs4.READDIR4res); ok {
				return r.Resok4.Reply.Eof, true
			}
		}
	}
	return false, false
}

// entries judges names that only one side gave. A server splits and orders a
// directory as it likes, so that names that are missing in one reply may stand
// in another one: at the end of both listings nothing must be left.
func (v *verifier) entries(j *judgement, f *flight, want, have xdr.Message) {
	c := &v.cmp
	wantEnd, isList := listed(want)
	if !isList {
		for _, n := range c.missing {
			c.differs([]string{n}, "present", "absent")
		}
		for _, n := range c.extra {
			c.differs([]string{n}, "absent", "present")
		}
		return
	}
	haveEnd, _ := listed(have)
	// The end of the list is judged here, not field by field.
	c.different = slices.DeleteFunc(c.different, func(s string) bool { return strings.Contains(s, "eof: ") })
	key := chain{f.world.number, objectAt(f.op, listAt(f.op))}
	open := v.chains[key]
	if len(c.missing) == 0 && len(c.extra) == 0 && len(open) == 0 {
		if wantEnd != haveEnd {
			j.worsen(Equivalent, reasonEntries)
		}
		return
	}
	if open == nil {
		open = map[string]int{}
		v.chains[key] = open
	}
	count := func(names []string, by int) {
		for _, n := range names {
			if open[n] += by; open[n] == 0 {
				delete(open, n)
			}
		}
	}
	count(c.missing, 1)
	count(c.extra, -1)
	if !wantEnd {
		j.worsen(Equivalent, reasonEntries)
		return
	}
	delete(v.chains, key)
	missing, extra := []string{}, []string{}
	for n, by := range open {
		if by > 0 {
			missing = append(missing, n)
		} else {
			extra = append(extra, n)
		}
	}
	slices.Sort(missing)
	slices.Sort(extra)
	switch {
	case len(missing) > 0 && !haveEnd:
		j.worsen(Equivalent, reasonEntries+": the captured listing ended before this one")
	case len(missing) > 0:
		j.worsen(Different, fmt.Sprintf("%d names are missing: %s", len(missing), some(missing)))
	case len(extra) > 0:
		j.worsen(Different, fmt.Sprintf("%d names were not there: %s", len(extra), some(extra)))
	default:
		j.worsen(Equivalent, reasonEntries)
	}
}

// listAt is the READDIR of a COMPOUND.
func listAt(o *plan.Op) int {
	if o.Compound == nil {
		return -1
	}
	return slices.IndexFunc(o.Compound.Ops, func(c plan.CompoundOp) bool { return c.Op == uint32(nfs4.OP_READDIR) })
}

func some(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:4], ", ") + " …"
	}
	return strings.Join(names, ", ")
}

// objectAt is the object that operation at of an op works on, or has made: 0 if
// it is not known. at is -1 for what is no COMPOUND.
func objectAt(o *plan.Op, at int) int {
	if o.Compound == nil {
		for i := range o.Args {
			if o.Args[i].Kind == plan.FieldHandle {
				return o.Args[i].Ref
			}
		}
		return 0
	}
	current, saved := 0, 0
	for i := 0; i <= at && i < len(o.Compound.Ops); i++ {
		c := &o.Compound.Ops[i]
		switch nfs4.NfsOpnum4(c.Op) {
		case nfs4.OP_PUTFH:
			current = 0
			for k := range c.Args {
				if c.Args[k].Kind == plan.FieldHandle {
					current = c.Args[k].Ref
				}
			}
		case nfs4.OP_PUTROOTFH, nfs4.OP_PUTPUBFH, nfs4.OP_LOOKUPP:
			current = boundAfter(o, i)
		case nfs4.OP_LOOKUP, nfs4.OP_CREATE:
			current = namedBy(o, c, i)
		case nfs4.OP_OPEN:
			if id := namedBy(o, c, i); id != 0 {
				current = id
			} else if hasName(c) {
				current = 0
			}
		case nfs4.OP_SAVEFH:
			saved = current
		case nfs4.OP_RESTOREFH:
			current = saved
		}
	}
	return current
}

func hasName(c *plan.CompoundOp) bool {
	return slices.ContainsFunc(c.Args, func(f plan.Field) bool { return f.Kind == plan.FieldName })
}

// namedBy is the object that an operation moves on to.
func namedBy(o *plan.Op, c *plan.CompoundOp, at int) int {
	for k := range c.Args {
		if c.Args[k].Kind == plan.FieldName && c.Args[k].Ref != 0 {
			return c.Args[k].Ref
		}
	}
	if !hasName(c) {
		return 0
	}
	return boundAfter(o, at)
}

// boundAfter is the object whose handle the next GETFH gives.
func boundAfter(o *plan.Op, at int) int {
	for i := at + 1; i < len(o.Compound.Ops); i++ {
		switch nfs4.NfsOpnum4(o.Compound.Ops[i].Op) {
		case nfs4.OP_GETFH:
			for k := range o.Binds {
				if o.Binds[k].At == i && o.Binds[k].Kind == plan.FieldHandle {
					return o.Binds[k].Ref
				}
			}
			return 0
		case nfs4.OP_GETATTR, nfs4.OP_ACCESS:
		default:
			return 0
		}
	}
	return 0
}

// exclusive reports whether an op makes a file exclusively: its attributes are
// then not defined before a SETATTR (RFC 1813, section 3.3.8; RFC 8881, section
// 18.16.3).
func exclusive(o *plan.Op, at int) bool {
	if o.Compound == nil {
		if o.Program == 100003 && o.Version == 3 && o.Procedure == 8 {
			for i := range o.Args {
				if a := &o.Args[i]; strings.HasSuffix(a.N, "mode") && a.Kind == plan.FieldU32 {
					return a.Value == uint64(nfs3.EXCLUSIVE)
				}
			}
		}
		return false
	}
	for i := 0; i <= at && i < len(o.Compound.Ops); i++ {
		if c := &o.Compound.Ops[i]; nfs4.NfsOpnum4(c.Op) == nfs4.OP_OPEN {
			opentype, mode := openHow(c)
			return opentype == nfs4.OPEN4_CREATE && (mode == nfs4.EXCLUSIVE4 || mode == nfs4.EXCLUSIVE4_1)
		}
	}
	return false
}

// openHow reads the openflag4 of an OPEN.
func openHow(c *plan.CompoundOp) (nfs4.Opentype4, nfs4.Createmode4) {
	for i := range c.Args {
		a := &c.Args[i]
		switch {
		case a.N == "openhow" && a.Kind == plan.FieldRaw && len(a.Bytes) >= 8:
			return nfs4.Opentype4(binary.BigEndian.Uint32(a.Bytes)), nfs4.Createmode4(binary.BigEndian.Uint32(a.Bytes[4:]))
		case a.N == "openhow" && a.Kind == plan.FieldRaw && len(a.Bytes) >= 4:
			return nfs4.Opentype4(binary.BigEndian.Uint32(a.Bytes)), 0
		case a.N == "opentype" || a.N == "openhow":
			return nfs4.Opentype4(a.Value), 0
		}
	}
	// An OPEN whose form is not known may make a file.
	return nfs4.OPEN4_CREATE, 0
}

// dataOf calls f for the eligible data of a result, in order.
func dataOf(m xdr.Message, f func(xdr.Data)) {
	switch m := m.(type) {
	case *nfs3.READ3res:
		f(m.Resok.Data)
	case *nfs3.READLINK3res:
		f(m.Resok.Data)
	case *nfs4.CompoundRes:
		for i := range m.Ops {
			switch r := m.Ops[i].Body.(type) {
			case *nfs4.READ4res:
				if r.Status == nfs4.NFS4_OK {
					f(r.Resok4.Data)
				}
			case *nfs4.READLINK4res:
				if r.Status == nfs4.NFS4_OK {
					f(r.Resok4.Link)
				}
			case *nfs4.READ_PLUS4res:
				for k := range r.RpResok4.RprContents {
					if c := &r.RpResok4.RprContents[k]; c.RpcContent == nfs4.NFS4_CONTENT_DATA {
						f(c.RpcData.DData)
					}
				}
			}
		}
	}
}

// data compares what was read.
func (v *verifier) data(j *judgement, f *flight, res xdr.Message) {
	x := f.op.Expect
	if len(x.Data) == 0 {
		return
	}
	i := 0
	dataOf(res, func(d xdr.Data) {
		if i >= len(x.Data) {
			return
		}
		w := &x.Data[i]
		i++
		b := f.bytes(d)
		if uint32(len(b)) != d.Length {
			j.worsen(Different, fmt.Sprintf("%d of %d bytes of data came", len(b), d.Length))
			return
		}
		switch {
		case d.Length != w.Length: // a field has said so
		case w.Text != nil:
			if !bytes.Equal(b, w.Text) {
				j.worsen(Different, fmt.Sprintf("text %q, was %q", clip(b), clip(w.Text)))
			}
		case w.Length == 0:
		case v.load.Tables.Header.Payload == plan.Captured:
			if w.Hash == "" {
				j.worsen(Equivalent, "the capture lacks a part of the data: their length was compared")
			} else if f.hash(d, b) != w.Hash {
				j.worsen(Different, fmt.Sprintf("the data differ: %d bytes at %d", w.Length, w.Offset))
			}
		default:
			if at := v.madeUp(b, objectAt(f.op, w.At), w.Offset); at >= 0 {
				j.worsen(Different, fmt.Sprintf("the data differ from those made up, at %d", w.Offset+uint64(at)))
			}
		}
	})
}

// madeUp returns where data differ from the pattern and from zeros (what was
// not written is a hole); -1 if nowhere.
func (v *verifier) madeUp(b []byte, object int, offset uint64) int {
	if v.load.Tables.Header.Payload == plan.Pattern {
		v.buf = slices.Grow(v.buf[:0], len(b))[:len(b)]
		plan.FillPattern(v.buf, object, offset)
		if bytes.Equal(v.buf, b) {
			return -1
		}
		for i := range b {
			if b[i] != v.buf[i] && b[i] != 0 {
				return i
			}
		}
		return -1
	}
	for i := 0; i < len(b); i++ {
		if i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:]) == 0 {
			i += 7
		} else if b[i] != 0 {
			return i
		}
	}
	return -1
}

// layout compares how the reply's data travelled, if the call was laid out as
// captured.
func (v *verifier) layout(j *judgement, f *flight) {
	l := f.op.Layout
	if f.Layout == nil || l == nil || l.UsedWrites == nil {
		return
	}
	for i, used := range l.UsedWrites {
		var now uint32
		if i < len(f.itemLengths) {
			now = f.itemLengths[i]
		}
		if now != used {
			j.worsen(Different, fmt.Sprintf("Write chunk %d: %d bytes used, was %d", i, now, used))
		}
	}
}

func clip(b []byte) []byte { return b[:min(len(b), 64)] }
