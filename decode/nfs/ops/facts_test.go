package ops_test

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// known is a procedure or operation with empty arguments and results.
type known struct {
	name          string
	entry         *ops.Entry
	args, results xdr.Message
}

// all visits the procedures of all programs and the operations of NFSv4.
func all(t *testing.T) iter.Seq[known] {
	return func(yield func(known) bool) {
		for p := range nfs.All() {
			for i := range p.Procedures {
				proc := p.Procedure(uint32(i))
				if proc == nil {
					continue
				}
				e := ops.Procedure(p.Number, p.Version, uint32(i))
				if e == nil {
					t.Fatalf("%s version %d has no entry for %s", p.Name, p.Version, proc.Name)
				}
				if !yield(known{fmt.Sprintf("%s%d %s", p.Name, p.Version, proc.Name), e, proc.NewArgs(), proc.NewResult()}) {
					return
				}
			}
		}
		for i := range uint32(200) {
			e := ops.Operation(i)
			if e == nil {
				continue
			}
			k := known{nfs4.OpName(i), e, body(new(nfs4.CompoundArgs), i), body(new(nfs4.CompoundRes), i)}
			if k.args == nil || k.results == nil {
				t.Fatalf("%s: the codec makes %T and %T", k.name, k.args, k.results)
			}
			if !yield(k) {
				return
			}
		}
	}
}

// body is what the codec makes of an operation in an otherwise empty message.
func body(m xdr.Message, number uint32) xdr.Message {
	for n := range 1 << 10 {
		b := xdr.AppendUint32(xdr.AppendUint32(make([]byte, 8), 1), number)
		for range n / 4 {
			b = xdr.AppendUint32(b, uint32(n%4))
		}
		var r xdr.Reader
		r.Reset(b, len(b))
		m.Decode(&r)
		var found []nfs4.Op
		switch m := m.(type) {
		case *nfs4.CompoundArgs:
			found = m.Ops
		case *nfs4.CompoundRes:
			found = m.Ops
		}
		if len(found) == 1 {
			return found[0].Body
		}
	}
	return nil
}

// fields are the fields of a message by their XDR names, whatever its values are.
func fields(m xdr.Message) map[string]bool {
	list := map[string]bool{}
	v := reflect.TypeOf(m)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return list
	}
	for i := range v.NumField() {
		var name strings.Builder
		for j, c := range v.Field(i).Name {
			if c >= 'A' && c <= 'Z' {
				if j > 0 {
					name.WriteByte('_')
				}
				c += 'a' - 'A'
			}
			name.WriteRune(c)
		}
		list[name.String()] = true
	}
	return list
}

// holdsData is how many places of a type hold data that may travel in a chunk; 2
// stands for any number.
func holdsData(t reflect.Type, depth int) int {
	switch {
	case t == reflect.TypeFor[xdr.Data]():
		return 1
	case depth > 12:
		return 0
	}
	switch t.Kind() {
	case reflect.Slice:
		return 2 * holdsData(t.Elem(), depth+1)
	case reflect.Pointer, reflect.Array:
		return holdsData(t.Elem(), depth+1)
	case reflect.Struct:
		n := 0
		for i := range t.NumField() {
			n += holdsData(t.Field(i).Type, depth+1)
		}
		return n
	}
	return 0
}

// TestReplies: results have the items that their codec can put into chunks, and
// what bounds them are arguments that exist.
func TestReplies(t *testing.T) {
	for k := range all(t) {
		r := &k.entry.Reply
		for _, name := range []string{r.Item, r.Rest} {
			if name != "" && !fields(k.args)[name] {
				t.Errorf("%s: no argument %q: %v", k.name, name, fields(k.args))
			}
		}
		if r.Item != "" && r.Items == ops.NoItem || r.Rest != "" && r.Room != 0 {
			t.Errorf("%s: %+v", k.name, *r)
		}
		if r.Items == ops.ManyItems && k.entry.Class != ops.Composed && (r.Rest == "" || r.Rest != r.Item) {
			t.Errorf("%s: no room for the items behind the first one: %+v", k.name, *r)
		}
		if k.entry.Class == ops.Composed {
			continue // its operations have entries of their own
		}
		want := ops.Items(min(holdsData(reflect.TypeOf(k.results), 0), int(ops.ManyItems)))
		if r.Items != want {
			t.Errorf("%s: %d items, the codec has %d", k.name, r.Items, want)
		}
	}
}

// TestRanges: arguments with an offset are about a range, apart from these.
func TestRanges(t *testing.T) {
	without := map[string]bool{
		"IO_ADVISE":    true, // a wish, whatever the range
		"LAYOUTCOMMIT": true, // layouts are not followed
		"LAYOUTGET":    true, "LAYOUTRETURN": true, "LAYOUTERROR": true, "LAYOUTSTATS": true,
	}
	for k := range all(t) {
		offset := false
		for name := range fields(k.args) {
			offset = offset || strings.HasSuffix(name, "offset")
		}
		var a ops.Act
		k.entry.Act(k.args, &a)
		if offset && k.entry.Class != ops.Never && !a.Ranged && !without[k.name] {
			t.Errorf("%s: arguments %v, and no range", k.name, fields(k.args))
		}
		if a.Ranged && a.Subject() == nil {
			t.Errorf("%s: a range of nothing", k.name)
		}
	}
}

// TestOutcomes: an entry that gives a handle has an outcome, which takes its
// results, and nothing of results that report a failure.
func TestOutcomes(t *testing.T) {
	for k := range all(t) {
		var o ops.Outcome
		k.entry.Outcome(k.results, &o)
		k.entry.Outcome(wrong{}, &o)
		if o.Handle != nil || o.HasMoved || o.EOF {
			t.Errorf("%s: %+v of what is nobody's results", k.name, o)
		}
	}
	e := ops.Operation(uint32(nfs4.OP_GETFH))
	var o ops.Outcome
	if e.Outcome(&nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: []byte("h")}}, &o); string(o.Handle) != "h" {
		t.Errorf("%+v", o)
	}
	if e.Outcome(&nfs4.GETFH4res{Status: nfs4.NFS4ERR_STALE, Resok4: nfs4.GETFH4resok{Object: []byte("h")}}, &o); o.Handle != nil {
		t.Errorf("%+v of a failure", o)
	}
}

// TestHeld: what needs a state needs the one of its arguments.
func TestHeld(t *testing.T) {
	id := nfs4.Stateid4{Seqid: 7}
	lock := &nfs4.LOCK4args{Locker: nfs4.Locker4{NewLockOwner: true}}
	lock.Locker.OpenOwner.OpenStateid = id
	for _, c := range []struct {
		op   nfs4.NfsOpnum4
		args xdr.Message
		held bool
	}{
		{nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: id}, true},
		{nfs4.OP_LOCK, lock, true},
		{nfs4.OP_OPEN, &nfs4.OPEN4args{}, false},
		{nfs4.OP_OPEN, &nfs4.OPEN4args{Claim: nfs4.OpenClaim4{Claim: nfs4.CLAIM_DELEG_CUR_FH, OcDelegateStateid: id}}, true},
		{nfs4.OP_READ, &nfs4.READ4args{Stateid: id}, false},
		{nfs4.OP_CLOSE, xdr.Void{}, false},
	} {
		s := ops.Operation(uint32(c.op)).Held(c.args)
		if (s != nil) != c.held || s != nil && *s != id {
			t.Errorf("%s needs %v", c.op, s)
		}
	}
}

// holdsState reports whether a type has a place for a state id.
func holdsState(t reflect.Type, depth int) bool {
	switch {
	case t == reflect.TypeFor[nfs4.Stateid4]():
		return true
	case depth > 12:
		return false
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer, reflect.Array:
		return holdsState(t.Elem(), depth+1)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsState(t.Field(i).Type, depth+1) {
				return true
			}
		}
	}
	return false
}

// fillStates makes every state id and every list of a message known.
func fillStates(v reflect.Value, depth int) {
	if depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillStates(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if holdsState(v.Type(), 0) {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fillStates(v.Index(0), depth+1)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		if !v.CanAddr() {
			return // a message without content
		}
		if s, ok := v.Addr().Interface().(*nfs4.Stateid4); ok {
			s.Seqid = 7
			return
		}
		if d, ok := v.Addr().Interface().(*nfs4.OpenDelegation4); ok {
			d.DelegationType = nfs4.OPEN_DELEGATE_WRITE
		}
		for i := range v.NumField() {
			fillStates(v.Field(i), depth+1)
		}
	}
}

// TestStates: arguments with a state id have a use for it, and no others; results with
// one tell it.
func TestStates(t *testing.T) {
	untold := map[string]bool{
		"COPY_NOTIFY": true, // never replayed
		"DELEGRETURN": true, "FREE_STATEID": true,
	}
	for k := range all(t) {
		if k.entry.Class == ops.Composed {
			continue
		}
		if has := holdsState(reflect.TypeOf(k.args), 0); has != (k.entry.Use != ops.NoUse) {
			t.Errorf("%s: a state id among the arguments: %v; its use: %d", k.name, has, k.entry.Use)
		}
		fillStates(reflect.ValueOf(k.args), 0)
		if t := reflect.TypeOf(k.results); t.Kind() == reflect.Pointer {
			k.results = reflect.New(t.Elem()).Interface().(xdr.Message) // of success
		}
		if id := k.entry.Held(k.args); id != nil && (k.entry.Use == ops.NoUse || k.entry.Use == ops.Accesses) {
			t.Errorf("%s needs a state id that it uses for %d", k.name, k.entry.Use)
		}
		fillStates(reflect.ValueOf(k.results), 0)
		var o ops.Outcome
		k.entry.Outcome(k.results, &o)
		has, tells := holdsState(reflect.TypeOf(k.results), 0), o.State != nil || o.Delegation != nil
		if has && !tells && !untold[k.name] || tells && !has || !tells && k.entry.Gives.Has(ops.State) {
			t.Errorf("%s: state ids in results: %v; told: %v", k.name, has, tells)
		}
		if (o.Client != nil) != k.entry.Gives.Has(ops.Client) || (o.Session != nil) != k.entry.Gives.Has(ops.Session) {
			t.Errorf("%s gives %b, and tells %v, %v", k.name, k.entry.Gives, o.Client, o.Session)
		}
	}
}
