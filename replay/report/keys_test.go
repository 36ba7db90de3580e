package report

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestKeys: the keys of a report are in the style of the other documents, and
// tell the unit of what is a time.
func TestKeys(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type, string)
	walk = func(x reflect.Type, path string) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(x.Elem(), path)
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[x] || x == reflect.TypeFor[time.Time]() {
			return
		}
		seen[x] = true
		for f := range x.Fields() {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key == "-" || !f.IsExported() {
				continue
			}
			where := path + "." + f.Name
			if key == "" && !f.Anonymous || key != strings.ToLower(key) {
				t.Errorf("%s: key %q", where, key)
			}
			if f.Type == reflect.TypeFor[time.Duration]() && !strings.HasSuffix(key, "_ns") {
				t.Errorf("%s: key %q of a duration does not end in _ns", where, key)
			}
			walk(f.Type, where)
		}
	}
	walk(reflect.TypeFor[Report](), "Report")
	if len(seen) < 8 {
		t.Errorf("only %d types seen", len(seen))
	}
}
