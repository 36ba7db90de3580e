package filter

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// field is the meaning of a name.
type field struct {
	name    string
	kinds   kindSet
	desc    string
	cost    int             // 0: available at once; more: must be searched for
	symbols func() []string // of kEnum and kFlags
	textual bool            // its symbols have no numbers
	joined  bool            // its values are symbols joined by "+", some with a count: LOOKUP*2+GETATTR
	emit    func(s *sink, v *rpc.View)
	united  bool          // durations need a unit
	blame   bool          // it needs Transaction.Blame
	program *programField // set for fields of a program
}

func (f *field) info() FieldInfo { return FieldInfo{f.name, f.kinds.String(), f.desc} }

func (f *field) symbolList() []string {
	if f.symbols == nil {
		return nil
	}
	return f.symbols()
}

// costProgram is the cost of a field of a program: it walks messages.
const costProgram = 8

var kindOf = map[fields.Type]kindSet{
	fields.Number: kUint, fields.Count: kUint | kCount, fields.Duration: kDuration, fields.Time: kTime, fields.Boolean: kBool, fields.Text: kString,
	fields.Symbol: kEnum, fields.Enum: kEnum, fields.Address: kAddr, fields.Bytes: kBytes,
}

var vocabulary = map[fields.Words]func() []string{
	fields.Programs:                func() []string { return protocols().programNames },
	fields.Procedures:              func() []string { return protocols().procedures },
	fields.Operations:              func() []string { return protocols().operations },
	fields.ProceduresAndOperations: func() []string { return protocols().ops },
	fields.Statuses:                statusSymbols,
}

// schemaFields are the attributes of every transaction. A duration whose name ends in _ns, or is a member of such an object, has a
// second name, with which its literals need a unit.
var schemaFields = sync.OnceValue(func() []field {
	var all []field
	table := fields.All()
	for i := range table {
		a := &table[i]
		if !a.In(fields.Filter) {
			continue
		}
		f := field{
			name: a.Name, kinds: kindOf[a.Type], desc: a.Doc, cost: int(a.Cost), symbols: a.Symbols, textual: a.Type == fields.Symbol, joined: a.Joined, blame: a.Blame,
			emit: func(s *sink, v *rpc.View) {
				s.reader.Values = s
				s.reader.Reset()
				a.Read(&s.reader, v)
			},
		}
		if a.Words != fields.Fixed {
			f.symbols = vocabulary[a.Words]
		}
		all = append(all, f)
		if name := strings.Replace(a.Name, "_ns", "", 1); a.Type == fields.Duration && name != a.Name {
			f.name, f.united = name, true
			if !strings.HasPrefix(f.desc, sameAs) {
				f.desc = sameAs + a.Name
			}
			all = append(all, f)
		}
	}
	return all
})

const sameAs = "the same as "

// statusColumn is the status as listings show it, for comparisons with "ok", which stands for success of any
// program. A transaction without a readable status has a value too, so that "status != ok" finds it.
var statusColumn = sync.OnceValue(func() *field {
	status := schemaByName()["status"]
	return &field{
		name: status.name, kinds: status.kinds,
		symbols: func() []string {
			return append(slices.Clone(statusSymbols()), "ok", transaction.Refused.String(), transaction.NotAcknowledged.String())
		},
		emit: func(s *sink, v *rpc.View) {
			switch {
			case v.Tx.State == transaction.NoReply:
				s.Symbol("no reply")
			case v.Tx.ReplyLost():
				s.Symbol(v.Tx.ReplyDelivery().String())
			case v.Status() == "":
				s.Symbol("?")
			case !v.Failed():
				s.Symbol("ok")
			default:
				status.emit(s, v)
			}
		},
	}
})

// statusSymbols are all symbols that "status" can have.
var statusSymbols = sync.OnceValue(func() []string {
	all := slices.Clone(protocols().statuses)
	for n := range oncrpc.AcceptStat(8) {
		all = append(all, n.String())
	}
	for n := range oncrpc.RejectStat(4) {
		all = append(all, n.String())
	}
	for n := range rpcrdma.ErrorCode(128) {
		all = append(all, n.Name(rpcrdma.Version1), n.Name(rpcrdma.Version2))
	}
	all = append(all, "RDMA_ERROR")
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
})

var schemaByName = sync.OnceValue(func() map[string]*field {
	all := schemaFields()
	m := make(map[string]*field, len(all))
	for i := range all {
		m[all[i].name] = &all[i]
	}
	return m
})

// lookup finds a field. pos is the position of its name in expr.
func lookup(name string, pos int, expr string) (*field, error) {
	lower := strings.ToLower(name)
	if f, ok := schemaByName()[lower]; ok {
		return f, nil
	}
	first, rest, dotted := strings.Cut(name, ".")
	if p := protocols().program(first); p != nil {
		if !dotted {
			return p.whole(), nil
		}
		f, err := p.resolve(rest, pos+len(first)+1, expr)
		if e, ok := errors.AsType[*Error](err); ok && foreign[lower] != nil {
			e.Hint = suggest(foreign[lower], 3)
		}
		return f, err
	}
	return nil, &Error{Expr: expr, Pos: pos, Found: name, Expected: "a field", Hint: unknownHint(lower), Unknown: true}
}

// unknownHint proposes fields for a name that does not exist.
func unknownHint(name string) string {
	if meant := foreign[name]; meant != nil {
		return suggest(meant, 3)
	}
	var found []string
	if _, ok := schemaByName()["file."+name]; ok {
		found = append(found, "file."+name)
	}
	for _, p := range protocols().programs {
		if leaf := p.canonical(name); leaf != "" {
			found = append(found, p.name+"."+leaf)
		}
	}
	for _, f := range schemaFields() {
		if _, last, ok := strings.Cut(f.name, "."); ok && last == name && !slices.Contains(found, f.name) {
			found = append(found, f.name)
		}
	}
	if len(found) > 0 {
		return suggest(found, 3)
	}
	var all []string
	for _, f := range schemaFields() {
		all = append(all, f.name)
	}
	for _, p := range protocols().programs {
		all = append(all, p.name)
	}
	return didYouMean(name, all)
}
