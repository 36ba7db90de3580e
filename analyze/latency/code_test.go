package latency

import (
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
)

// TestCodeLarge saves distributions of few values and of many.
func TestCodeLarge(t *testing.T) {
	for _, n := range []int{1, 100, 24000} {
		m := &memory{limit: DefaultMemory}
		var d dist
		for i := range n {
			d.add(int64(i)*int64(i)*1000, m)
		}
		w := state.NewWriter(nil)
		d.code(w, 0, m)
		var got dist
		r := state.NewReader(w.Bytes())
		got.code(r, 0, &memory{limit: DefaultMemory})
		if err := r.End(); err != nil {
			t.Fatal(err)
		}
		if a, b := d.distribution(), got.distribution(); !reflect.DeepEqual(a, b) {
			t.Errorf("%d values:\n%+v\n%+v", n, a, b)
		}
	}
}
