package nfs4

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// filler fills values of the generated types at random.
type filler struct {
	*rand.Rand
	symbols map[reflect.Type][]uint64
}

func newFiller(seed uint64) *filler {
	return &filler{rand.New(rand.NewPCG(seed, 4)), map[reflect.Type][]uint64{}}
}

type symbolic interface{ Symbol() string }

// enum returns a defined value, or sometimes (if any is true) another one.
func (f *filler) enum(v reflect.Value) uint64 {
	t := v.Type()
	if f.symbols[t] == nil {
		probe := reflect.New(t).Elem()
		try := func(from, to uint64) {
			for n := from; n < to; n++ {
				probe.SetUint(n)
				if probe.Interface().(symbolic).Symbol() != "" {
					f.symbols[t] = append(f.symbols[t], n)
				}
			}
		}
		try(0, 100)
		try(10000, 10100)
		try(390000, 390010)
	}
	all := f.symbols[t]
	return all[f.IntN(len(all))]
}

func (f *filler) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.Uint32())
	}
	return b
}

// attrs fills some attributes.
func (f *filler) attrs() *Attrs {
	a := new(Attrs)
	for range f.IntN(12) {
		a.Mask = a.Mask.With(uint32(f.IntN(len(attrTable))))
	}
	v := reflect.ValueOf(a).Elem()
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; name {
		case "Mask", "Rest", "RestFrom", "Partial", "reader":
		default:
			f.fill(v.Field(i))
		}
	}
	return a
}

func (f *filler) fill(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *Bitmap4:
		*p = f.bytes(4 * f.IntN(4))
		return
	case *Fattr4:
		*p = f.attrs().Fattr4()
		return
	case *xdr.Data:
		p.Inline = f.bytes(f.IntN(20))
		p.Length = uint32(len(p.Inline))
		return
	}
	if _, ok := v.Interface().(symbolic); ok {
		v.SetUint(f.enum(v))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.Uint64() >> (64 - v.Type().Bits()))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.Uint64()) >> (64 - v.Type().Bits()))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Slice:
		n := f.IntN(4)
		if v.Type().Elem().Kind() == reflect.Struct && n > 2 {
			n = 1 // keeps trees of structures small
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	default:
		panic("no rule for " + v.Type().String())
	}
}

// messages are constructors of all independent types.
func messages() map[string]func() xdr.Message {
	all := map[string]func() xdr.Message{
		"layouthint4":     newMessage[Layouthint4],
		"layout_content4": newMessage[LayoutContent4],
		"device_addr4":    newMessage[DeviceAddr4],
		"layoutupdate4":   newMessage[Layoutupdate4],
		"dir_notify4":     newMessage[DirNotify4],
		"deviceid_notify": newMessage[DeviceidNotify4],
		"fattr4":          newMessage[Fattr4],
	}
	for _, t := range []opTable{foreOps, cbOps} {
		for _, op := range t {
			if op.name != "" {
				all[op.name+" args"] = op.newArgs
				all[op.name+" res"] = op.newRes
			}
		}
	}
	for _, b := range []bodyTypes{layoutBodies, hintBodies, deviceBodies, updateBodies, returnBodies} {
		for _, t := range b {
			all[t.name] = t.make
		}
	}
	for _, b := range [][]bodyType{dirNotifications, deviceidNotifications} {
		for _, t := range b {
			if t.make != nil {
				all[t.name] = t.make
			}
		}
	}
	for _, a := range attrTable {
		if a.message != nil {
			all["attribute "+a.name] = func() xdr.Message { return a.message(new(Attrs)) }
		}
	}
	return all
}

// TestIdentity encodes random values of every type, decodes them into used memory, and encodes
// them again.
func TestIdentity(t *testing.T) {
	f := newFiller(1)
	const rounds = 40
	all := messages()
	for _, name := range slices.Sorted(maps.Keys(all)) { // the same values each time
		make := all[name]
		used, good := make(), 0
		for range rounds {
			m := make()
			if _, void := m.(xdr.Void); void {
				good = rounds
				break
			}
			f.fill(reflect.ValueOf(m).Elem())
			b := m.Append(nil)
			if m.EncodedSize() != len(b) || len(b)%4 != 0 {
				t.Fatalf("%s: size %d, encoded %d bytes", name, m.EncodedSize(), len(b))
			}
			var r xdr.Reader
			r.Reset(b, len(b))
			used.Decode(&r)
			if e, ok := r.Err().(*xdr.Error); ok && (e.Kind == xdr.Value || e.Kind == xdr.Range) {
				// A union without an arm for this value; an "optional" array
				// with more than one element.
				continue
			}
			good++
			if r.Err() != nil || r.Remaining() != 0 {
				t.Fatalf("%s: %v, %d bytes left of %x", name, r.Err(), r.Remaining(), b)
			}
			if again := used.Append(nil); !bytes.Equal(again, b) {
				t.Fatalf("%s:\n got %x\nwant %x", name, again, b)
			}
			if got, want := show(used.Walk), show(m.Walk); got != want {
				t.Fatalf("%s: shows\n%s\nwant\n%s", name, got, want)
			}
		}
		if good == 0 {
			t.Errorf("%s: no value could be decoded", name)
		}
	}
}

// TestIdentityCompound does the same with whole COMPOUNDs of all operations.
func TestIdentityCompound(t *testing.T) {
	f := newFiller(2)
	for range 100 {
		for _, m := range []xdr.Message{new(CompoundArgs), new(CompoundRes), new(CbCompoundArgs), new(CbCompoundRes)} {
			table, results := foreOps, false
			switch m := m.(type) {
			case *CompoundArgs:
				m.Tag, m.Minorversion = f.bytes(f.IntN(9)), f.Uint32()
			case *CompoundRes:
				m.Tag, m.Status, results = f.bytes(f.IntN(9)), Nfsstat4(f.Uint32()), true
			case *CbCompoundArgs:
				m.Tag, m.CallbackIdent, table = f.bytes(f.IntN(9)), f.Uint32(), cbOps
			case *CbCompoundRes:
				m.Tag, table, results = f.bytes(f.IntN(9)), cbOps, true
			}
			ops := operations(m)
			for range f.IntN(8) {
				slot := f.IntN(len(table))
				if table[slot].name == "" {
					continue
				}
				op := Op{Number: uint32(slot)}
				if slot == 0 {
					op.Number = uint32(OP_ILLEGAL)
				}
				op.Body = table[slot].newArgs()
				if results {
					op.Body = table[slot].newRes()
				}
				if _, void := op.Body.(xdr.Void); !void {
					f.fill(reflect.ValueOf(op.Body).Elem())
				}
				var r xdr.Reader
				one := op.Body.Append(nil)
				r.Reset(one, len(one))
				if op.Body.Decode(&r); !r.Failed() {
					ops.Ops = append(ops.Ops, op)
				}
			}
			b := m.Append(nil)
			if m.EncodedSize() != len(b) {
				t.Fatalf("size %d, encoded %d bytes", m.EncodedSize(), len(b))
			}
			back := reflect.New(reflect.TypeOf(m).Elem()).Interface().(xdr.Message)
			var r xdr.Reader
			r.Reset(b, len(b))
			back.Decode(&r)
			if r.Err() != nil || r.Remaining() != 0 || operations(back).Incomplete {
				t.Fatalf("%v, %d bytes left", r.Err(), r.Remaining())
			}
			if again := back.Append(nil); !bytes.Equal(again, b) {
				t.Fatalf("\n got %x\nwant %x", again, b)
			}
			if got, want := show(back.Walk), show(m.Walk); got != want {
				t.Fatalf("shows\n%s\nwant\n%s", got, want)
			}
		}
	}
}

// TestIdentityAttrs builds attributes from values and reads them back.
func TestIdentityAttrs(t *testing.T) {
	f := newFiller(3)
	var used Attrs
	for range 500 {
		a := f.attrs()
		fa := a.Fattr4()
		if a.ValuesSize() != len(fa.AttrVals) {
			t.Fatalf("size %d, encoded %d bytes", a.ValuesSize(), len(fa.AttrVals))
		}
		if err := used.Decode(&fa); err != nil || used.Partial {
			// <1> arrays may hold up to three elements here.
			if e, ok := err.(*xdr.Error); !ok || e.Kind != xdr.Range {
				t.Fatalf("%v: %v %+v", fa.Attrmask, err, used)
			}
		}
		if back := used.Fattr4(); !bytes.Equal(back.AttrVals, fa.AttrVals) || !bytes.Equal(back.Attrmask.Bitmap4, fa.Attrmask.Bitmap4) {
			t.Fatalf("%v:\n got %x\nwant %x", fa.Attrmask, back.AttrVals, fa.AttrVals)
		}
	}
}
