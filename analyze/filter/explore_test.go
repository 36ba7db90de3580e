package filter

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// names.txt holds what the Walk methods of all messages can show. It is found
// by driving them: every message is built with every arm of its unions, every
// optional part and every value of its enumerations.

var update = flag.Bool("update", false, "write names.txt anew")

func TestNamesAreCurrent(t *testing.T) {
	got := exploreAll()
	if *update {
		if err := os.WriteFile("names.txt", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("names.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Fatalf("names.txt is out of date (run go generate): line %d\n has   %.300s\n wants %.300s", i+1, w[i], g[i])
			}
		}
		t.Fatalf("names.txt is out of date (run go generate): %d lines, want %d", len(w), len(g))
	}
}

// shape is a field as Walk shows it, with what is below it.
type shape struct {
	kinds   map[string]bool // of leaves; none for what only Begin opens
	group   bool            // Begin opens it
	symbols map[string]bool
	kids    map[string]*shape
}

func newShape() *shape {
	return &shape{kinds: map[string]bool{}, symbols: map[string]bool{}, kids: map[string]*shape{}}
}

func (s *shape) kid(name string) (*shape, bool) {
	k, ok := s.kids[name]
	if !ok {
		k = newShape()
		s.kids[name] = k
	}
	return k, !ok
}

// shaper is a Visitor that adds what it sees to a shape.
type shaper struct {
	stack []*shape
	grew  bool
}

func (s *shaper) leaf(name, kind, symbols string) {
	if strings.ContainsAny(name, " ") {
		return // "unknown attribute 99": there is no such name
	}
	k, fresh := s.stack[len(s.stack)-1].kid(name)
	if fresh || !k.kinds[kind] {
		k.kinds[kind], s.grew = true, true
	}
	for _, sym := range strings.Split(symbols, "|") {
		if sym != "" && !k.symbols[sym] && (sym[0] < '0' || sym[0] > '9') {
			k.symbols[sym], s.grew = true, true
		}
	}
}

func (s *shaper) Begin(name, _ string, _ int) {
	k, fresh := s.stack[len(s.stack)-1].kid(name)
	if fresh || !k.group {
		k.group, s.grew = true, true
	}
	s.stack = append(s.stack, k)
}
func (s *shaper) End()                                { s.stack = s.stack[:len(s.stack)-1] }
func (s *shaper) Uint(name string, _ uint64)          { s.leaf(name, "uint", "") }
func (s *shaper) Int(name string, _ int64)            { s.leaf(name, "int", "") }
func (s *shaper) Bool(name string, _ bool)            { s.leaf(name, "bool", "") }
func (s *shaper) Bytes(name string, _ []byte)         { s.leaf(name, "bytes", "") }
func (s *shaper) String(name string, _ []byte)        { s.leaf(name, "string", "") }
func (s *shaper) Data(name string, _ xdr.Data)        { s.leaf(name, "data", "") }
func (s *shaper) Time(name string, _ int64, _ uint32) { s.leaf(name, "time", "") }
func (s *shaper) Enum(name string, _ uint32, symbol string) {
	s.leaf(name, "enum", symbol)
}
func (s *shaper) Flags(name string, _ uint64, symbols string) { s.leaf(name, "flags", symbols) }

// walker is what has a Walk method.
type walker interface{ Walk(xdr.Visitor) }

// cover returns values of a type that together show all that it can show.
// Its results are cached and must not be changed.
type explorer struct {
	covers map[reflect.Type][]reflect.Value
}

func exploreAll() []byte {
	x := &explorer{covers: map[reflect.Type][]reflect.Value{}}
	w := &namesWriter{ids: map[string]int{}}
	for _, list := range [][]xdr.Program{
		nfs2.Programs, nfs3.Programs, nfs4.Programs, nfsacl.Programs, mount.Programs, nlm.Programs, nsm.Programs, rpcbind.Programs,
	} {
		for _, p := range list {
			for i := range p.Procedures {
				q := &p.Procedures[i]
				if q.Name == "" {
					continue
				}
				args, res := w.group(x.shapeOf(q.NewArgs())), w.group(x.shapeOf(q.NewResult()))
				fmt.Fprintf(&w.procs, "procedure %s %d %s %d %d %d\n", p.Name, p.Version, q.Name, q.Number, args, res)
			}
		}
	}
	w.header("rpc", callShape(), replyShape())
	w.header("rpcrdma", rdmaShape(), rdmaShape())
	var out bytes.Buffer
	out.WriteString("# Names of all fields, by go generate. Do not edit.\n")
	out.Write(w.defs.Bytes())
	out.Write(w.procs.Bytes())
	return out.Bytes()
}

// shapeOf is the shape of all that a message can show.
func (x *explorer) shapeOf(m xdr.Message) *shape {
	root := newShape()
	s := &shaper{}
	for _, v := range x.messageCover(m) {
		s.stack = append(s.stack[:0], root)
		v.(walker).Walk(s)
	}
	return root
}

func (x *explorer) messageCover(m xdr.Message) []any {
	switch m.(type) {
	case xdr.Void:
		return nil
	case *nfs4.CompoundArgs:
		return x.compound(nfs4.OpName, func(ops nfs4.Operations) any { return &nfs4.CompoundArgs{Operations: ops} }, func() opsMessage { return &compoundArgs{} })
	case *nfs4.CompoundRes:
		var all []any
		for _, v := range x.cover(reflect.TypeOf(nfs4.Nfsstat4(0))) {
			all = append(all, &nfs4.CompoundRes{Status: v.Interface().(nfs4.Nfsstat4)})
		}
		return append(all, x.compound(nfs4.OpName, func(ops nfs4.Operations) any { return &nfs4.CompoundRes{Operations: ops} }, func() opsMessage { return &compoundRes{} })...)
	case *nfs4.CbCompoundArgs:
		return x.compound(nfs4.CbOpName, func(ops nfs4.Operations) any { return &nfs4.CbCompoundArgs{Operations: ops} }, func() opsMessage { return &cbCompoundArgs{} })
	case *nfs4.CbCompoundRes:
		var all []any
		for _, v := range x.cover(reflect.TypeOf(nfs4.Nfsstat4(0))) {
			all = append(all, &nfs4.CbCompoundRes{Status: v.Interface().(nfs4.Nfsstat4)})
		}
		return append(all, x.compound(nfs4.CbOpName, func(ops nfs4.Operations) any { return &nfs4.CbCompoundRes{Operations: ops} }, func() opsMessage { return &cbCompoundRes{} })...)
	}
	var all []any
	for _, v := range x.cover(reflect.TypeOf(m).Elem()) {
		all = append(all, pointer(v))
	}
	return all
}

func pointer(v reflect.Value) any {
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface()
}

// opsMessage decodes one operation, to learn its type.
type opsMessage interface {
	one(op, fill uint32) []nfs4.Op
}

type (
	compoundArgs   struct{ m nfs4.CompoundArgs }
	compoundRes    struct{ m nfs4.CompoundRes }
	cbCompoundArgs struct{ m nfs4.CbCompoundArgs }
	cbCompoundRes  struct{ m nfs4.CbCompoundRes }
)

func decodeOp(m xdr.Message, words int, op, fill uint32) {
	var b []byte
	for range words {
		b = xdr.AppendUint32(b, 0)
	}
	b = xdr.AppendUint32(b, 1)
	b = xdr.AppendUint32(b, op)
	for range 1024 {
		b = xdr.AppendUint32(b, fill)
	}
	var r xdr.Reader
	r.Reset(b, len(b))
	m.Decode(&r)
}

func (c *compoundArgs) one(op, fill uint32) []nfs4.Op   { decodeOp(&c.m, 2, op, fill); return c.m.Ops }
func (c *compoundRes) one(op, fill uint32) []nfs4.Op    { decodeOp(&c.m, 2, op, fill); return c.m.Ops }
func (c *cbCompoundArgs) one(op, fill uint32) []nfs4.Op { decodeOp(&c.m, 3, op, fill); return c.m.Ops }
func (c *cbCompoundRes) one(op, fill uint32) []nfs4.Op  { decodeOp(&c.m, 2, op, fill); return c.m.Ops }

const maxOp = 400

func (x *explorer) compound(name func(uint32) string, build func(nfs4.Operations) any, decoder func() opsMessage) (all []any) {
	for op := range uint32(maxOp + 1) {
		if op == maxOp {
			op = uint32(nfs4.OP_ILLEGAL)
		}
		var ops []nfs4.Op
		for fill := uint32(0); fill < 8 && len(ops) == 0; fill++ {
			ops = decoder().one(op, fill) // a union may have no arm for 0
		}
		if len(ops) == 0 {
			if n := name(op); !strings.Contains(n, " ") {
				panic("operation " + n + " does not decode")
			}
			continue
		}
		for _, v := range x.messageCover(ops[0].Body) {
			all = append(all, build(nfs4.Operations{Ops: []nfs4.Op{{Number: op, Body: v.(xdr.Message)}}}))
		}
		all = append(all, build(nfs4.Operations{Ops: []nfs4.Op{{Number: op, Body: ops[0].Body}}}))
	}
	return all
}

// cover returns values of a type that together show all that it can show.
func (x *explorer) cover(t reflect.Type) []reflect.Value {
	if c, ok := x.covers[t]; ok {
		return c
	}
	x.covers[t] = []reflect.Value{reflect.Zero(t)} // ends recursion
	c := x.candidates(t)
	if _, ok := reflect.New(t).Interface().(walker); ok {
		c = useful(c)
	}
	x.covers[t] = c
	return c
}

// useful drops the values that show nothing new.
func useful(all []reflect.Value) (kept []reflect.Value) {
	s := &shaper{}
	root := newShape()
	for _, v := range all {
		s.stack, s.grew = append(s.stack[:0], root), false
		pointer(v).(walker).Walk(s)
		if s.grew {
			kept = append(kept, v)
		}
	}
	return kept
}

type symbolic interface{ Symbol() string }

func values[T any](all ...T) (vs []reflect.Value) {
	for _, v := range all {
		vs = append(vs, reflect.ValueOf(v))
	}
	return vs
}

func (x *explorer) candidates(t reflect.Type) []reflect.Value {
	switch t {
	case reflect.TypeFor[xdr.Data]():
		return values(xdr.Data{Length: 1, Inline: []byte{1}})
	case reflect.TypeFor[nfs4.Fattr4]():
		return x.attributes()
	case reflect.TypeFor[nfs4.LayoutContent4](), reflect.TypeFor[nfs4.Layouthint4](),
		reflect.TypeFor[nfs4.DeviceAddr4](), reflect.TypeFor[nfs4.Layoutupdate4]():
		return x.typedBody(t)
	case reflect.TypeFor[nfs4.DirNotify4](), reflect.TypeFor[nfs4.DeviceidNotify4]():
		return x.notify(t)
	case reflect.TypeFor[nfs4.LAYOUTRETURN4args]():
		all := x.structure(t)
		a := nfs4.LAYOUTRETURN4args{LrReturntype: nfs4.LAYOUTRETURN4_FILE, LoraLayoutType: nfs4.LAYOUT4_FLEX_FILES}
		for _, b := range x.cover(reflect.TypeFor[nfs4.FfLayoutreturn4]()) {
			a.LrfBody = pointer(b).(xdr.Message).Append(nil)
			all = append(all, reflect.ValueOf(a))
		}
		return all
	}
	if t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Type == reflect.TypeFor[nfs4.Bitmap4]() {
		var all []reflect.Value
		for bit := range uint32(128) {
			v := reflect.New(t).Elem()
			v.Field(0).Set(reflect.ValueOf(nfs4.NewBitmap4(bit)))
			all = append(all, v)
		}
		return all
	}
	switch t.Kind() {
	case reflect.Bool:
		return values(true, false)
	case reflect.Struct:
		return x.structure(t)
	case reflect.Slice:
		var all []reflect.Value
		for _, e := range x.cover(t.Elem()) {
			if t.Elem().Kind() == reflect.Uint8 {
				e = reflect.ValueOf(byte('x'))
			}
			all = append(all, reflect.Append(reflect.MakeSlice(t, 0, 1), e))
		}
		return all
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return []reflect.Value{reflect.Zero(t)}
		}
		var all []reflect.Value
		for _, e := range x.cover(t.Elem()) {
			a := reflect.New(t).Elem()
			for i := range a.Len() {
				a.Index(i).Set(e)
			}
			all = append(all, a)
		}
		return all
	case reflect.Pointer:
		var all []reflect.Value
		for _, e := range x.cover(t.Elem()) {
			p := reflect.New(t.Elem())
			p.Elem().Set(e)
			all = append(all, p)
		}
		return all
	case reflect.Uint32, reflect.Int32, reflect.Uint64, reflect.Int64:
		return x.numbers(t)
	}
	return []reflect.Value{reflect.Zero(t)}
}

// pseudoFlavors is where the numbers of RFC 2623 begin.
const pseudoFlavors = 390000

// numbers are values that have a name in some enumeration, or single bits.
func (x *explorer) numbers(t reflect.Type) (all []reflect.Value) {
	add := func(n uint64) {
		v := reflect.New(t).Elem()
		if v.CanUint() {
			v.SetUint(n)
		} else {
			v.SetInt(int64(n))
		}
		all = append(all, v)
	}
	if _, ok := reflect.Zero(t).Interface().(symbolic); ok {
		for _, from := range []uint32{0, pseudoFlavors} {
			for n := range uint32(20000) {
				v := reflect.ValueOf(from + n).Convert(t)
				if v.Interface().(symbolic).Symbol() != "" {
					all = append(all, v)
				}
			}
		}
		add(1<<32 - 1) // defined nowhere: the default arm
		return all
	}
	for n := range uint64(256) {
		add(n)
	}
	for n := range uint64(40) {
		add(10000 + n)
		add(pseudoFlavors + n)
	}
	for bit := range t.Bits() {
		add(1 << bit)
		if bit >= 8 && bit < 16 {
			for n := range uint64(8) {
				add(n << bit)
			}
		}
	}
	return all
}

func (x *explorer) structure(t reflect.Type) []reflect.Value {
	base := reflect.New(t).Elem()
	covers := make([][]reflect.Value, t.NumField())
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			if covers[i] = x.cover(f.Type); len(covers[i]) > 0 {
				base.Field(i).Set(covers[i][0])
			}
		}
	}
	with := func(v reflect.Value, i int, f reflect.Value) reflect.Value {
		c := reflect.New(t).Elem()
		c.Set(v)
		c.Field(i).Set(f)
		return c
	}
	// First the members that may choose an arm.
	configs := []reflect.Value{base}
	_, walks := base.Addr().Interface().(walker)
	for i := range t.NumField() {
		switch t.Field(i).Type.Kind() {
		case reflect.Bool, reflect.Uint32, reflect.Int32, reflect.Uint64, reflect.Int64:
			for _, f := range covers[i] {
				configs = append(configs, with(base, i, f))
			}
		}
	}
	if walks {
		configs = useful(configs)
	}
	// Then the others, in each of these. A discriminant may have hundreds of values that show only their
	// symbol: one of each shape will do.
	shapes := map[string]bool{}
	all := configs
	for _, c := range configs {
		if walks {
			root := newShape()
			pointer(c).(walker).Walk(&shaper{stack: []*shape{root}})
			key := root.structureKey()
			if shapes[key] {
				continue
			}
			shapes[key] = true
		}
		for i := range t.NumField() {
			switch t.Field(i).Type.Kind() {
			case reflect.Struct, reflect.Slice, reflect.Array, reflect.Pointer:
				for _, f := range covers[i] {
					all = append(all, with(c, i, f))
				}
			}
		}
	}
	return all
}

// structureKey tells shapes apart by their names only.
func (s *shape) structureKey() string {
	var names []string
	for n, k := range s.kids {
		names = append(names, n+"{"+k.structureKey()+"}")
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

// attributes covers fattr4: the fields of Attrs stand in the order of the
// attributes' numbers.
func (x *explorer) attributes() (all []reflect.Value) {
	t := reflect.TypeFor[nfs4.Attrs]()
	first := 0
	for t.Field(first).Name != "SupportedAttrs" {
		first++
	}
	for i := first; i < t.NumField(); i++ {
		n := uint32(i - first)
		if got := strings.ReplaceAll(nfs4.AttrName(n), "_", ""); got != strings.ToLower(t.Field(i).Name) {
			panic("attribute " + got + " is not field " + t.Field(i).Name)
		}
		for _, f := range x.cover(t.Field(i).Type) {
			a := new(nfs4.Attrs)
			reflect.ValueOf(a).Elem().Field(i).Set(f)
			a.Mask = nfs4.NewBitmap4(n)
			all = append(all, reflect.ValueOf(a.Fattr4()))
		}
	}
	if n := uint32(t.NumField() - first); nfs4.AttrName(n) != "" || nfs4.AttrName(n-1) == "" {
		panic("the attributes' table and their fields differ in number")
	}
	return all
}

// typedBody covers an opaque whose content depends on a layout type.
func (x *explorer) typedBody(t reflect.Type) (all []reflect.Value) {
	for typ := range nfs4.Layouttype4(16) {
		v := reflect.New(t)
		body := v.Elem().Field(0).Addr().Interface().(*nfs4.TypedBody)
		*body = nfs4.TypedBody{Type: typ, Body: []byte{1, 2, 3}}
		all = append(all, v.Elem())
		contents := v.Interface().(interface{ Content() xdr.Message })
		var content xdr.Message
		for n := 0; n <= 512 && content == nil; n += 4 {
			body.Body = make([]byte, n)
			content = contents.Content()
		}
		if content == nil {
			continue
		}
		for _, c := range x.messageCover(content) {
			w := reflect.New(t)
			*w.Elem().Field(0).Addr().Interface().(*nfs4.TypedBody) = nfs4.TypedBody{Type: typ, Body: c.(xdr.Message).Append(nil)}
			all = append(all, w.Elem())
		}
	}
	return all
}

// notify covers a notify4.
func (x *explorer) notify(t reflect.Type) (all []reflect.Value) {
	for bit := range uint32(32) {
		build := func(vals []byte) reflect.Value {
			v := reflect.New(t).Elem()
			v.Field(0).Set(reflect.ValueOf(nfs4.Notify4{Mask: nfs4.NewBitmap4(bit), Vals: vals}))
			return v
		}
		v := build(make([]byte, 512))
		all = append(all, v)
		for _, c := range pointer(v).(interface{ Contents() []xdr.Message }).Contents() {
			for _, m := range x.messageCover(c) {
				all = append(all, build(m.(xdr.Message).Append(nil)))
			}
		}
	}
	return all
}

func sample(walkers ...walker) *shape {
	root := newShape()
	for _, w := range walkers {
		w.Walk(&shaper{stack: []*shape{root}})
	}
	return root
}

func flavors() (all []oncrpc.Flavor) {
	for n := range oncrpc.Flavor(16) {
		all = append(all, n, pseudoFlavors+n)
	}
	return all
}

func callShape() *shape {
	sys := oncrpc.Sys{Machine: []byte("m"), Count: 1}
	var all []walker
	for _, flavor := range flavors() {
		all = append(all, &oncrpc.Call{Cred: oncrpc.Auth{Flavor: flavor}, Verf: oncrpc.Auth{Flavor: flavor}})
	}
	all = append(all, &oncrpc.Call{Cred: oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}})
	for n := range uint32(16) {
		gss := oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSProc(n), Service: oncrpc.Service(n), Handle: []byte("h")}
		all = append(all, &oncrpc.Call{Cred: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: gss.Append(nil)}})
	}
	return sample(all...).kids["rpc"]
}

func replyShape() *shape {
	var all []walker
	for n := range uint32(16) {
		all = append(all,
			&oncrpc.Reply{Accept: oncrpc.AcceptStat(n)},
			&oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.RejectStat(n)},
			&oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: oncrpc.AuthStat(n)})
	}
	for _, flavor := range flavors() {
		all = append(all, &oncrpc.Reply{Verf: oncrpc.Auth{Flavor: flavor}})
	}
	return sample(all...).kids["rpc"]
}

func rdmaShape() *shape {
	var all []walker
	write := rpcrdma.WriteChunk{{}}
	for version := range uint32(3) {
		for typ := range rpcrdma.Type(16) {
			h := rpcrdma.Header{
				Version: version, Type: typ, Call: make([]rpcrdma.ReadSegment, 1), Reads: make([]rpcrdma.ReadSegment, 1),
				Writes: []rpcrdma.WriteChunk{write}, HasReply: true, Reply: write,
			}
			all = append(all, &h)
			if typ == rpcrdma.TypeError {
				for e := range rpcrdma.ErrorCode(128) {
					c := h
					c.Error = e
					all = append(all, &c)
				}
			}
			for id := range uint32(16) {
				for _, value := range [][]byte{{1}, {0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 0, 2}, {0, 0, 0, 3}} {
					c := h
					c.Properties = []rpcrdma.Property{{ID: id, Value: value}}
					all = append(all, &c)
				}
			}
		}
	}
	return sample(all...).kids["rpcrdma"]
}

// namesWriter writes equal shapes and sets of symbols once.
type namesWriter struct {
	defs, procs bytes.Buffer
	ids         map[string]int
	sets        int
	groups      int
}

func (w *namesWriter) define(word, body string, last *int) int {
	if id, ok := w.ids[word+body]; ok {
		return id
	}
	*last++
	w.ids[word+body] = *last
	fmt.Fprintf(&w.defs, "%s %d %s\n", word, *last, body)
	return *last
}

// group defines what is below a shape and returns its number, 0 for nothing.
func (w *namesWriter) group(s *shape) int {
	if len(s.kids) == 0 {
		return 0
	}
	var kids []string
	for _, name := range sortedKeys(s.kids) {
		k, text := s.kids[name], name
		if len(k.kinds) > 0 {
			text += ":" + strings.Join(sortedKeys(k.kinds), "+")
		}
		if len(k.symbols) > 0 {
			text += fmt.Sprintf("=%d", w.define("set", strings.Join(sortedKeys(k.symbols), " "), &w.sets))
		}
		if k.group {
			text += fmt.Sprintf("{%d}", w.group(k))
		}
		kids = append(kids, text)
	}
	return w.define("group", strings.Join(kids, " "), &w.groups)
}

func (w *namesWriter) header(name string, args, res *shape) {
	fmt.Fprintf(&w.procs, "procedure %s 0 - 0 %d %d\n", name, w.group(args), w.group(res))
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
