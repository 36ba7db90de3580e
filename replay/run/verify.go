package run

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
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
	chains map[chain]map[string]int
}

// chain is a directory that one world lists.
type chain struct {
	world, object int
}

func newVerifier(w *Workload, level Verify, ignore []string) *verifier {
	v := &verifier{load: w, level: level, want: map[*xdr.Procedure]xdr.Message{}, have: map[*xdr.Procedure]xdr.Message{}, chains: map[chain]map[string]int{}}
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
func (v *verifier) judge(f *flight, rpc string, res xdr.Message) (j judgement) {
	x := f.op.Expect
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
		if x.RPC == "" {
			j.worsen(Worse, fmt.Sprintf("%s, was done", rpc))
		} else {
			j.worsen(Different, fmt.Sprintf("%s, was %s", rpc, x.RPC))
		}
		return j
	case rpc != "":
		return j
	}
	if !v.status(&j, f.op, res) || v.level == VerifyStatus {
		return j
	}
	v.results(&j, f, res)
	v.data(&j, f, res)
	v.layout(&j, f)
	return j
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
		if c, ok := res.(*nfs4.CompoundRes); ok && len(x.Ops) > 0 && len(c.Ops) != len(x.Ops) {
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
	case x.Status == 0:
		j.worsen(Worse, fmt.Sprintf("%s%s, was OK", at, now))
	default:
		j.worsen(Different, fmt.Sprintf("%s%s, was %s", at, now, was))
	}
	return false
}

// results compares the fields.
func (v *verifier) results(j *judgement, f *flight, res xdr.Message) {
	x := f.op.Expect
	p := procedure(f.op)
	if p == nil || x.Results == nil {
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
		if !x.Partial {
			j.worsen(Equivalent, "the captured results cannot be read: only their status was compared")
		}
		return
	}
	c := &v.cmp
	c.reset()
	c.want.fill(want)
	c.have.fill(res)
	c.run()
	v.entries(j, f, want, res)
	for _, reason := range slices.Sorted(maps.Keys(c.equivalent)) {
		j.worsen(Equivalent, reason)
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
	key := chain{f.world.number, handleRef(f.op, 0)}
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

func some(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:4], ", ") + " …"
	}
	return strings.Join(names, ", ")
}

// handleRef is the object that operation at of an op works on.
func handleRef(o *plan.Op, at int) int {
	fields := o.Args
	if o.Compound != nil {
		if at == 0 {
			at = len(o.Compound.Ops)
		}
		fields = nil
		for i := min(at, len(o.Compound.Ops)-1); i >= 0; i-- {
			if o.Compound.Ops[i].Op == uint32(nfs4.OP_PUTFH) {
				fields = o.Compound.Ops[i].Args
				break
			}
		}
	}
	for i := range fields {
		if fields[i].Kind == plan.FieldHandle {
			return fields[i].Ref
		}
	}
	return 0
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
			} else if plan.HashData(b) != w.Hash {
				j.worsen(Different, fmt.Sprintf("the data differ: %d bytes at %d", w.Length, w.Offset))
			}
		default:
			if at := v.madeUp(b, handleRef(f.op, w.At), w.Offset); at >= 0 {
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
