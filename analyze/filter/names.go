package filter

import (
	_ "embed"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// names.txt lists what the messages of all programs can show, as a graph:
//
//	set 4 NFS3ERR_ACCES NFS3ERR_BADHANDLE …        symbols
//	group 9 data:data status:enum=4 attributes{2}  fields: kinds, symbols, group below
//	procedure nfs 3 READ 6 17 18                   program, version, name, number, groups of arguments and results
//
// A number 0 stands for no group.
//
//go:embed names.txt
var namesText string

// group is the contents of a structure, a union or a message.
type group struct{ kids []kid }

type kid struct {
	name  string
	kinds kindSet
	set   int // of symbols; 0: none
	below *group
}

// opaque reports whether a group holds only an opaque named "data", as nfs_fh3 does. The name of the
// enclosing field then stands for it.
func (g *group) opaque() bool {
	return g != nil && len(g.kids) == 1 && g.kids[0].name == opaqueName && g.kids[0].kinds == kBytes
}

const opaqueName = "data"

type procedure struct {
	version, number uint32
	name            string
	groups          [2]*group // arguments, results
}

type program struct {
	name  string
	procs []procedure
	// names maps lower-case names to all spellings of procedures, groups and fields.
	names map[string][]string
	table *protocolTable
}

type protocolTable struct {
	programs     []*program
	sets         [][]string
	programNames []string // of RPC programs
	procedures   []string
	operations   []string
	ops          []string // both
	statuses     []string
}

var kindWords = map[string]kindSet{
	"uint": kUint, "int": kInt, "bool": kBool, "enum": kEnum, "flags": kFlags, "string": kString, "bytes": kBytes, "data": kData, "time": kTime,
}

// protocols is the table of names.txt.
var protocols = sync.OnceValue(func() *protocolTable {
	t, err := loadNames(namesText)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return t
})

func loadNames(text string) (*protocolTable, error) {
	r := &nameReader{table: &protocolTable{sets: [][]string{nil}}, groups: []*group{nil}, length: &group{[]kid{{name: "length", kinds: kUint}}}}
	for n, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if err := r.line(f); err != nil {
			return nil, fmt.Errorf("names.txt: line %d: %w", n+1, err)
		}
	}
	r.table.collect()
	return r.table, nil
}

// nameReader reads names.txt. A line refers only to numbers defined above it.
type nameReader struct {
	table  *protocolTable
	groups []*group
	length *group // below data
}

func (r *nameReader) line(f []string) error {
	switch {
	case f[0] == "set" && len(f) > 2:
		r.table.sets = append(r.table.sets, f[2:])
		return nil
	case f[0] == "group" && len(f) > 1:
		return r.group(f[2:])
	case f[0] == "procedure" && len(f) == 7:
		return r.procedure(f[1:])
	}
	return fmt.Errorf("unknown line")
}

func (r *nameReader) group(kids []string) error {
	g := &group{}
	for _, s := range kids {
		k, err := r.kid(s)
		if err != nil {
			return err
		}
		g.kids = append(g.kids, k)
	}
	r.groups = append(r.groups, g)
	return nil
}

// procedure has program, version, name, number, and the groups of arguments and results.
func (r *nameReader) procedure(f []string) error {
	var v [4]int
	for i, s := range [...]string{f[1], f[3], f[4], f[5]} {
		most := 1<<31 - 1
		if i >= 2 {
			most = len(r.groups)
		}
		var err error
		if v[i], err = index(s, most); err != nil {
			return err
		}
	}
	r.table.addProcedure(f[0], procedure{uint32(v[0]), uint32(v[1]), f[2], [2]*group{r.groups[v[2]], r.groups[v[3]]}})
	return nil
}

func (r *nameReader) kid(s string) (k kid, err error) {
	s, sub, below := strings.Cut(s, "{")
	n := 0
	if below {
		if n, err = index(strings.TrimSuffix(sub, "}"), len(r.groups)); err != nil {
			return k, err
		}
	}
	if k, err = parseFlatKid(s, r.table.sets); err != nil {
		return k, err
	}
	switch {
	case below && r.groups[n] == nil:
		k.below = &group{}
	case below:
		k.below = r.groups[n]
	case k.kinds&kData != 0:
		k.below = r.length
	}
	return k, nil
}

// index parses a number below most.
func index(s string, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && (n < 0 || n >= most) {
		err = fmt.Errorf("number %d is not defined", n)
	}
	return n, err
}

func parseFlatKid(s string, sets [][]string) (k kid, err error) {
	s, set, ok := strings.Cut(s, "=")
	if ok {
		if k.set, err = index(set, len(sets)); err != nil {
			return k, err
		}
	}
	name, kinds, ok := strings.Cut(s, ":")
	k.name = name
	if ok {
		for _, w := range strings.Split(kinds, "+") {
			if kindWords[w] == 0 {
				return k, fmt.Errorf("unknown kind %q", w)
			}
			k.kinds |= kindWords[w]
		}
	}
	return k, nil
}

func (t *protocolTable) addProcedure(name string, q procedure) {
	p := t.program(name)
	if p == nil {
		p = &program{name: name, names: map[string][]string{}, table: t}
		t.programs = append(t.programs, p)
	}
	p.procs = append(p.procs, q)
}

// program finds a program by name, in any case; nil if there is none.
func (t *protocolTable) program(name string) *program {
	for _, p := range t.programs {
		if strings.EqualFold(p.name, name) {
			return p
		}
	}
	return nil
}

// header reports whether p stands for the RPC or transport headers, which every message has.
func (p *program) header() bool { return p.name == "rpc" || p.name == "rpcrdma" }

// collect fills the lists of names.
func (t *protocolTable) collect() {
	for _, p := range t.programs {
		add := func(name string) {
			lower := strings.ToLower(name)
			if !slices.Contains(p.names[lower], name) {
				p.names[lower] = append(p.names[lower], name)
			}
		}
		seen := map[*group]bool{}
		var visit func(g *group)
		visit = func(g *group) {
			if g == nil || seen[g] {
				return
			}
			seen[g] = true
			for _, k := range g.kids {
				add(k.name)
				visit(k.below)
			}
		}
		for i := range p.procs {
			q := &p.procs[i]
			visit(q.groups[0])
			visit(q.groups[1])
			if p.header() {
				continue
			}
			add(q.name)
			t.procedures = append(t.procedures, q.name)
			if q.compound() {
				for _, k := range q.groups[0].kids {
					if k.kinds == 0 {
						t.operations = append(t.operations, k.name)
					}
				}
			}
			statuses := map[*group]bool{}
			var find func(g *group)
			find = func(g *group) {
				if g == nil || statuses[g] {
					return
				}
				statuses[g] = true
				for _, k := range g.kids {
					if k.set != 0 && k.kinds&kEnum != 0 && strings.Contains(k.name, "stat") {
						t.statuses = append(t.statuses, t.sets[k.set]...)
					}
					find(k.below)
				}
			}
			find(q.groups[1])
		}
		if !p.header() {
			t.programNames = append(t.programNames, p.name)
		}
	}
	t.ops = append(slices.Clone(t.procedures), t.operations...)
	for _, l := range []*[]string{&t.procedures, &t.operations, &t.ops, &t.statuses} {
		slices.Sort(*l)
		*l = slices.Compact(*l)
	}
}

// compound reports whether the groups of a procedure contain operations.
func (q *procedure) compound() bool { return q.name == "COMPOUND" || q.name == "CB_COMPOUND" }

// canonical is a field's name as the protocol spells it; "" if the program has no such field.
func (p *program) canonical(name string) string {
	if l := p.names[strings.ToLower(name)]; len(l) > 0 {
		return l[0]
	}
	return ""
}

func (p *program) allNames() (all []string) {
	for _, l := range p.names {
		all = append(all, l...)
	}
	sort.Strings(all)
	return all
}

// leaf is a field of a program, whatever its path.
type leaf struct {
	name  string
	kinds kindSet
	users [2][]string // the procedures and operations with this field, by direction
}

// leaves lists the fields of a program by name.
func (p *program) leaves() []leaf {
	byName := map[string]*leaf{}
	for i := range p.procs {
		q := &p.procs[i]
		for d, g := range q.groups {
			if g == nil {
				continue
			}
			if !q.compound() {
				addLeaves(byName, g, d, q.name, map[*group]bool{})
				continue
			}
			for _, k := range g.kids {
				if k.kinds == 0 {
					addLeaves(byName, k.below, d, k.name, map[*group]bool{})
				} else {
					addLeaf(byName, k, d, q.name)
				}
			}
		}
	}
	var all []leaf
	for _, l := range byName {
		all = append(all, *l)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	return all
}

func addLeaves(m map[string]*leaf, g *group, d int, user string, seen map[*group]bool) {
	if seen[g] {
		return
	}
	seen[g] = true
	for _, k := range g.kids {
		if k.kinds != 0 {
			addLeaf(m, k, d, user)
		}
		if k.below.opaque() {
			// Its name stands for its contents.
			addLeaf(m, kid{name: k.name, kinds: kBytes}, d, user)
		} else if k.below != nil {
			addLeaves(m, k.below, d, user, seen)
		}
	}
}

func addLeaf(m map[string]*leaf, k kid, d int, user string) {
	l := m[k.name]
	if l == nil {
		l = &leaf{name: k.name}
		m[k.name] = l
	}
	l.kinds |= k.kinds
	if !slices.Contains(l.users[d], user) {
		l.users[d] = append(l.users[d], user)
	}
}

// describe says where a field occurs.
func (p *program) describe(l *leaf) string {
	const most = 6
	var parts []string
	for d, what := range [...]string{"arguments", "results"} {
		users := l.users[d]
		if len(users) == 0 {
			continue
		}
		if p.header() {
			parts = append(parts, [...]string{"header of calls", "header of replies"}[d])
			continue
		}
		more := ""
		if len(users) > most {
			more = fmt.Sprintf(" and %d more", len(users)-most)
			users = users[:most]
		}
		parts = append(parts, what+" of "+strings.Join(users, ", ")+more)
	}
	return strings.Join(parts, "; ")
}

// Fields lists the fields: those of every transaction in the order of the
// schema, then those of the programs by name. A field of a program is listed
// once, without the names of procedures and structures that may stand before
// it.
func Fields() []FieldInfo {
	var all []FieldInfo
	for _, f := range schemaFields() {
		all = append(all, f.info())
	}
	for _, p := range protocols().programs {
		for _, l := range p.leaves() {
			name := p.name + "." + l.name
			if _, ok := schemaByName()[name]; ok {
				continue
			}
			all = append(all, FieldInfo{name, l.kinds.String(), p.describe(&l)})
		}
	}
	return all
}
