package latency

import (
	"reflect"
	"testing"
)

// TestCountsMerge: no count is forgotten when groups are added up.
func TestCountsMerge(t *testing.T) {
	sum, one := Counts{Statuses: map[string]uint64{}}, Counts{Statuses: map[string]uint64{"NFS3ERR_IO": 1}}
	v := reflect.ValueOf(&one).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.CanUint() {
			f.SetUint(1)
		}
	}
	sum.merge(&one)
	sum.merge(&one)
	for v, i := reflect.ValueOf(sum), 0; i < v.NumField(); i++ {
		if f := v.Field(i); f.CanUint() && f.Uint() != 2 || f.Kind() == reflect.Map && f.MapIndex(reflect.ValueOf("NFS3ERR_IO")).Uint() != 2 {
			t.Errorf("%s: %v of two groups", v.Type().Field(i).Name, f)
		}
	}
}
