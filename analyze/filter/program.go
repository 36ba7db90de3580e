package filter

import (
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

const (
	arguments = 0
	results   = 1
)

// programField is a path to fields of a program. It stands for all fields whose full path contains its
// components in this order and ends with the last one.
type programField struct {
	program *program
	// comps are the components; each lists all spellings in the table.
	comps [][]string
	dirs  [2]bool
	want  [2]wanted
	// leaves means that there are fields, not only groups.
	leaves bool

	groups []*group // groups that the last component names
}

// wanted describes which messages of one direction can have the field.
type wanted struct {
	procs [maxVersion][maxProcedure / 64]uint64
	ops   [maxOperation / 64]uint64
	top   bool // a member of a COMPOUND that is not in an operation
}

const (
	maxVersion   = 8
	maxProcedure = 64
	maxOperation = 128
)

func (w *wanted) proc(version, number uint32) bool {
	if version >= maxVersion || number >= maxProcedure {
		return true // outside the range of the table: look anyway
	}
	return w.procs[version][number/64]>>(number%64)&1 != 0
}

func (w *wanted) op(number uint32) bool {
	return number >= maxOperation || w.ops[number/64]>>(number%64)&1 != 0
}

// whole is the program itself as a field.
func (p *program) whole() *field {
	emit := func(s *sink, v *rpc.View) {
		if v.Tx.Named && strings.EqualFold(v.ProgramName(), p.name) {
			s.group(p.name)
		}
	}
	switch p.name {
	case "rpc":
		emit = func(s *sink, v *rpc.View) { s.group(p.name) }
	case "rpcrdma":
		emit = func(s *sink, v *rpc.View) {
			if v.Tx.Call.Transport || v.Tx.Reply.Transport {
				s.group(p.name)
			}
		}
	}
	return &field{name: p.name, kinds: kGroup, desc: "transactions of " + p.name, emit: emit}
}

type component struct {
	text string
	pos  int
}

func splitPath(path string, pos int) (all []component) {
	for {
		c, rest, more := strings.Cut(path, ".")
		all = append(all, component{c, pos})
		if !more {
			return all
		}
		pos += len(c) + 1
		path = rest
	}
}

// direction removes "args" or "res" from a path, either at its start or after the name of a procedure or
// operation.
func direction(path []component) (dirs [2]bool, rest []component) {
	for i := 0; i < 2 && i < len(path)-1; i++ {
		switch strings.ToLower(path[i].text) {
		case "args":
			dirs[arguments] = true
		case "res":
			dirs[results] = true
		default:
			continue
		}
		return dirs, append(slices.Clone(path[:i]), path[i+1:]...)
	}
	return [2]bool{true, true}, path
}

// maxPath bounds the components of a path; no message is nested so deeply.
const maxPath = 32

// resolve finds the fields of a path.
func (p *program) resolve(path string, pos int, expr string) (*field, error) {
	all := splitPath(path, pos)
	dirs, comps := direction(all)
	if len(comps) > maxPath {
		return nil, &Error{Expr: expr, Pos: pos, Found: path, Expected: "the path of a field of " + p.name}
	}
	var exact, folded [][]string
	for _, c := range comps {
		names := p.names[strings.ToLower(c.text)]
		if len(names) == 0 {
			e := &Error{Expr: expr, Pos: c.pos, Found: c.text, Expected: "the name of a field of " + p.name}
			if c.text != "" {
				e.Hint = didYouMean(c.text, p.allNames())
				if e.Hint == "" {
					e.Hint = unknownHint(strings.ToLower(c.text))
				}
			}
			return nil, e
		}
		folded = append(folded, names)
		if slices.Contains(names, c.text) {
			names = []string{c.text}
		}
		exact = append(exact, names)
	}
	// The exact spelling if there is such a path, otherwise any case: NFSv4 has both an operation READ and a
	// member read.
	r, kinds := p.search(exact, dirs)
	if kinds == 0 {
		r, kinds = p.search(folded, dirs)
	}
	if kinds == 0 {
		last := comps[len(comps)-1]
		e := &Error{Expr: expr, Pos: pos, Found: path, Expected: "the path of a field of " + p.name}
		for _, l := range p.leaves() {
			if strings.EqualFold(l.name, last.text) {
				e.Hint = l.name + " is in the " + p.describe(&l)
			}
		}
		return nil, e
	}
	pf := r.f
	pf.leaves = kinds&^kGroup != 0
	f := &field{name: p.name + "." + path, kinds: kinds, cost: costProgram, program: pf, emit: pf.emit}
	f.desc = p.describe(&leaf{users: r.users})
	if len(r.sets) > 0 {
		sets := r.sets
		f.symbols = func() (all []string) {
			for n := range sets {
				all = append(all, p.table.sets[n]...)
			}
			slices.Sort(all)
			return slices.Compact(all)
		}
	}
	return f, nil
}

func (p *program) search(comps [][]string, dirs [2]bool) (*resolver, kindSet) {
	r := &resolver{f: &programField{program: p, comps: comps, dirs: dirs}, memo: map[searchKey]found{}, sets: map[int]bool{}}
	return r, r.run()
}

// below suggests members of a field that only groups others.
func (f *field) below() string {
	if f.program == nil {
		return ""
	}
	const most = 6
	var all []string
	for _, g := range f.program.groups {
		for _, k := range g.kids {
			if !slices.Contains(all, k.name) {
				all = append(all, k.name)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	if len(all) > most {
		all = append(all[:most], "…")
	}
	return "it holds " + strings.Join(all, ", ")
}

// resolver finds the meanings of a path.
type resolver struct {
	f     *programField
	memo  map[searchKey]found
	sets  map[int]bool
	users [2][]string
}

type searchKey struct {
	g  *group
	at int
}

type found struct {
	kinds  kindSet
	sets   []int
	groups []*group
}

func (f *found) add(o found) {
	f.kinds |= o.kinds
	f.sets = append(f.sets, o.sets...)
	f.groups = append(f.groups, o.groups...)
	slices.Sort(f.sets)
	f.sets = slices.Compact(f.sets)
}

func (r *resolver) run() (kinds kindSet) {
	p := r.f.program
	for i := range p.procs {
		q := &p.procs[i]
		for d := range q.groups {
			if !r.f.dirs[d] {
				continue
			}
			at := r.f.start(q.name)
			w := &r.f.want[d]
			if p.header() {
				at = 0
			} else if len(r.f.comps) == 1 && slices.Contains(r.f.comps[0], q.name) {
				r.use(q, d, q.name, found{kinds: kGroup, groups: groupList(q.groups[d])}, &kinds)
			}
			switch g := q.groups[d]; {
			case g == nil:
			case !q.compound() || p.header():
				r.use(q, d, q.name, r.search(g, at), &kinds)
			default:
				for _, k := range g.kids {
					hit := r.kid(&k, at)
					if hit.kinds == 0 {
						continue
					}
					if k.kinds != 0 {
						w.top = true
						r.use(q, d, q.name, hit, &kinds)
						continue
					}
					r.use(q, d, k.name, hit, &kinds)
					for op := range uint32(maxOperation) {
						if nfs4.OpName(op) == k.name || nfs4.CbOpName(op) == k.name {
							w.ops[op/64] |= 1 << (op % 64)
						}
					}
				}
			}
		}
	}
	return kinds
}

func groupList(g *group) []*group {
	if g == nil {
		return nil
	}
	return []*group{g}
}

// use records that a procedure has the field.
func (r *resolver) use(q *procedure, d int, user string, hit found, kinds *kindSet) {
	if hit.kinds == 0 {
		return
	}
	*kinds |= hit.kinds
	for _, s := range hit.sets {
		r.sets[s] = true
	}
	r.f.groups = append(r.f.groups, hit.groups...)
	if q.version < maxVersion && q.number < maxProcedure {
		r.f.want[d].procs[q.version][q.number/64] |= 1 << (q.number % 64)
	}
	if !slices.Contains(r.users[d], user) {
		r.users[d] = append(r.users[d], user)
	}
}

// search looks for the components from index at in a group. The result is what visitor would find.
func (r *resolver) search(g *group, at int) found {
	key := searchKey{g, at}
	if f, ok := r.memo[key]; ok {
		return f
	}
	var all found
	for i := range g.kids {
		all.add(r.kid(&g.kids[i], at))
	}
	r.memo[key] = all
	return all
}

func (r *resolver) kid(k *kid, at int) (hit found) {
	last := len(r.f.comps) - 1
	match := slices.Contains(r.f.comps[at], k.name)
	if at == last && match {
		hit.kinds |= k.kinds
		if k.kinds != 0 && k.set != 0 {
			hit.sets = append(hit.sets, k.set)
		}
		if k.below != nil && k.kinds&kData == 0 {
			hit.kinds |= kGroup
			hit.groups = append(hit.groups, k.below)
			if k.below.opaque() {
				hit.kinds |= kBytes
			}
		}
	}
	switch {
	case k.below.opaque():
		if match && at == last-1 && slices.Contains(r.f.comps[last], opaqueName) {
			hit.kinds |= kBytes
		}
	case k.below != nil:
		if match && at < last {
			at++
		}
		hit.add(r.search(k.below, at))
	}
	return hit
}

// start is the number of components that the name of a procedure takes.
func (f *programField) start(proc string) int {
	if len(f.comps) > 1 && slices.Contains(f.comps[0], proc) {
		return 1
	}
	return 0
}

// emit finds the values of a field in a transaction.
func (f *programField) emit(s *sink, v *rpc.View) {
	switch f.program.name {
	case "rpc":
		f.emitRPC(s, v)
	case "rpcrdma":
		for d, m := range [...]*transaction.Message{&v.Tx.Call, &v.Tx.Reply} {
			if f.dirs[d] && m.Seen() && m.Transport && !s.stop {
				f.header(s, &m.Header)
			}
		}
	default:
		f.emitBody(s, v)
	}
}

// emitRPC finds them in the RPC headers.
func (f *programField) emitRPC(s *sink, v *rpc.View) {
	w := &s.walk
	if f.dirs[arguments] && v.CallErr == nil {
		w.reset(s, f, 0, nil)
		v.Call().Walk(w)
	}
	if f.dirs[results] && v.ReplyErr == nil && !s.stop {
		w.reset(s, f, 0, nil)
		v.Reply().Walk(w)
	}
}

// emitBody finds them in arguments and results.
func (f *programField) emitBody(s *sink, v *rpc.View) {
	if v.Program == nil || v.Procedure == nil || v.Program.Name != f.program.name {
		return
	}
	w := &s.walk
	version, number := v.Program.Version, v.Procedure.Number
	start := f.start(v.Procedure.Name)
	if !f.leaves && len(f.comps) == 1 && slices.Contains(f.comps[0], v.Procedure.Name) {
		s.group(v.Procedure.Name)
	}
	if v.Args() != nil && f.dirs[arguments] && f.want[arguments].proc(version, number) && !s.stop {
		w.reset(s, f, start, v.ArgsErr)
		f.body(w, v.Args(), arguments)
	}
	if v.Result() != nil && f.dirs[results] && f.want[results].proc(version, number) && !s.stop {
		w.reset(s, f, start, v.ResultErr)
		f.body(w, v.Result(), results)
	}
}

// body walks arguments or results.
func (f *programField) body(w *visitor, m xdr.Message, d int) {
	switch m := m.(type) {
	case *nfs4.CompoundArgs:
		f.compound(w, m, &m.Operations, d, nfs4.OpName)
	case *nfs4.CbCompoundArgs:
		f.compound(w, m, &m.Operations, d, nfs4.CbOpName)
	case *nfs4.CompoundRes:
		f.compound(w, m, &m.Operations, d, nfs4.OpName)
	case *nfs4.CbCompoundRes:
		f.compound(w, m, &m.Operations, d, nfs4.CbOpName)
	default:
		m.Walk(w)
	}
}

func (f *programField) header(s *sink, h *rpcrdma.Header) {
	s.walk.reset(s, f, 0, nil)
	h.Walk(&s.walk)
}

// compound walks the operations that can have the field, and only those,
// unless it may stand beside them.
func (f *programField) compound(w *visitor, m xdr.Message, c *nfs4.Operations, d int, name func(uint32) string) {
	stopAt := w.stopAt
	w.stopAt = ""
	if f.want[d].top {
		if len(c.Ops) == 0 {
			w.stopAt = stopAt
		}
		m.Walk(w)
		return
	}
	for i := range c.Ops {
		o := &c.Ops[i]
		if o.Body == nil || !f.want[d].op(o.Number) {
			continue
		}
		if c.Incomplete && i == c.FailedAt {
			w.stopAt = stopAt
		}
		w.Begin(name(o.Number), "", i)
		o.Body.Walk(w)
		w.End()
		if w.s.stop {
			return
		}
	}
}

// visitor finds the fields of a path during Walk.
type visitor struct {
	s    *sink
	f    *programField
	last uint8
	at   uint8 // components found so far
	// named means that the last component names the current structure, direct that the component before it
	// does: either selects an opaque in it.
	named, direct bool
	// stopAt is the field that could not be decoded. It and the fields after it are zero and do not exist.
	// Other fields may have the same name, so the first of them that is zero ends the walk: no 0 may be shown
	// that was not sent.
	stopAt string
	ended  bool
	stack  []level
}

type level struct {
	at            uint8
	named, direct bool
}

func (w *visitor) reset(s *sink, f *programField, start int, err error) {
	w.s, w.f, w.last, w.at = s, f, uint8(len(f.comps)-1), uint8(start)
	w.named, w.direct = false, false
	w.stopAt, w.ended = "", false
	w.stack = w.stack[:0]
	if err == nil {
		return
	}
	if e, ok := err.(*xdr.Error); ok {
		w.stopAt = e.Field
	}
}

func (w *visitor) is(at uint8, name string) bool {
	return slices.Contains(w.f.comps[at], name)
}

// wanted reports whether a field is one of those searched for. zero means that its value is zero.
func (w *visitor) wanted(name string, zero bool) bool {
	if w.s.stop || w.ended {
		return false
	}
	if zero && w.stopAt != "" && name == w.stopAt {
		w.ended = true
		return false
	}
	return w.at == w.last && w.is(w.last, name)
}

func (w *visitor) Begin(name, _ string, _ int) {
	w.stack = append(w.stack, level{w.at, w.named, w.direct})
	w.named, w.direct = false, false
	if !w.is(w.at, name) {
		return
	}
	if w.at < w.last {
		w.at++
		w.direct = true
		return
	}
	w.named = w.f.leaves
	if !w.f.leaves && !w.s.stop && !w.ended {
		w.s.group(name)
	}
}

func (w *visitor) End() {
	if n := len(w.stack) - 1; n >= 0 {
		l := &w.stack[n]
		w.at, w.named, w.direct = l.at, l.named, l.direct
		w.stack = w.stack[:n]
	}
}

func (w *visitor) Uint(name string, v uint64) {
	if w.wanted(name, v == 0) {
		w.s.Uint(v)
	}
}

func (w *visitor) Int(name string, v int64) {
	if w.wanted(name, v == 0) {
		w.s.int(v)
	}
}

func (w *visitor) Bool(name string, v bool) {
	if w.wanted(name, !v) {
		w.s.Bool(v)
	}
}

func (w *visitor) Enum(name string, v uint32, symbol string) {
	if w.wanted(name, v == 0) {
		w.s.Enum(v, symbol)
	}
}

func (w *visitor) Flags(name string, v uint64, symbols string) {
	if w.wanted(name, v == 0) {
		w.s.flags(v, symbols)
	}
}

// Bytes handles an opaque. One named "data" is the whole contents of its structure: its path is the
// structure's name, or both names.
func (w *visitor) Bytes(name string, v []byte) {
	ok := w.wanted(name, len(v) == 0)
	if name == opaqueName {
		ok = !w.s.stop && !w.ended && (w.named || w.direct && ok)
	}
	if ok {
		w.s.Hex(v)
	}
}

func (w *visitor) String(name string, v []byte) {
	if w.wanted(name, len(v) == 0) {
		w.s.TextBytes(v)
	}
}

func (w *visitor) Time(name string, sec int64, nsec uint32) {
	if w.wanted(name, sec == 0 && nsec == 0) {
		w.s.time(sec, nsec)
	}
}

// Data handles file data and, below it, the length. The capture may have cut the data, but not the length.
func (w *visitor) Data(name string, d xdr.Data) {
	if w.wanted(name, d.Length == 0) {
		w.s.data(d)
	}
	if w.ended {
		return
	}
	w.Begin(name, "", -1)
	if w.at == w.last && w.is(w.last, "length") && !w.s.stop {
		w.s.Uint(uint64(d.Length))
	}
	w.End()
	if name == w.stopAt && w.stopAt != "" && d.Chunk == 0 && uint64(len(d.Inline)) < uint64(d.Length) {
		w.ended = true
	}
}
