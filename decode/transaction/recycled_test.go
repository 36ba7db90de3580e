package transaction

import (
	"reflect"
	"testing"
)

// TestRecycled makes sure that recycle resets every field: all of them are set
// first, and what is left afterwards has to be memory kept on purpose.
func TestRecycled(t *testing.T) {
	tr := NewTracker(Options{}, nil)
	tx := tr.pool.take()
	kept := map[string]bool{
		"entry":    true, // names the transaction itself
		"lists":    true, // of the memory that is kept
		"size":     true, // of the memory that is kept
		"empty":    true, // says so
		"blame":    true, // of the memory that is kept
		"kernel":   true, // of the memory that is kept
		"spans":    true, // of the memory that is kept
		"measured": true,
		"Header":   true, // rpcrdma tests its own reset
	}
	fill(reflect.ValueOf(tx).Elem(), kept)
	tr.pool.recycle(tx)
	if len(tr.pool.free) != 1 {
		t.Fatal("not kept")
	}
	left(t, "Transaction", reflect.ValueOf(tx).Elem(), kept)
}

// fill sets the plain fields of a struct, also those that are not exported.
func fill(v reflect.Value, kept map[string]bool) {
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		if kept[name] {
			continue
		}
		f = reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
		switch f.Kind() {
		case reflect.Struct:
			fill(f, kept)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64, reflect.Int32:
			f.SetInt(7)
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			f.SetUint(1)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
	}
}

// left reports fields that are not empty.
func left(t *testing.T, at string, v reflect.Value, kept map[string]bool) {
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch {
		case kept[name]:
		case f.Kind() == reflect.Struct:
			left(t, at+"."+name, f, kept)
		case f.Kind() == reflect.Slice:
			if f.Len() != 0 {
				t.Errorf("%s.%s has %d elements left", at, name, f.Len())
			}
		case !f.IsZero():
			t.Errorf("%s.%s is left", at, name)
		}
	}
}
