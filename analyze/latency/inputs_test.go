package latency

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
)

// TestManyInputs saves a state of more inputs than one has names of.
func TestManyInputs(t *testing.T) {
	inputs := make([]string, maxParts+10)
	for i := range inputs {
		inputs[i] = fmt.Sprint(i)
	}
	s := New(Options{}).State(Source{Inputs: inputs})
	got, err := read(state.NewUnit(s.Section()))
	if err != nil {
		t.Fatal(err)
	}
	if x := got.tap.inputs; len(x) != maxParts || x[maxParts-1] != "and 11 more" {
		t.Errorf("%d inputs, the last one %q", len(x), x[len(x)-1])
	}
}
