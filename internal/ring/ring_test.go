package ring

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestModel compares a Ring with a slice.
func TestModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var r Ring[int]
	var model []int
	for i := range 20000 {
		if rnd.IntN(1000) < 400+i%300 {
			r.Push(i)
			model = append(model, i)
		} else if len(model) > 0 {
			if got := r.Pop(); got != model[0] {
				t.Fatalf("step %d: popped %d, want %d", i, got, model[0])
			}
			model = model[1:]
		}
		if r.Len() != len(model) {
			t.Fatalf("step %d: %d entries, want %d", i, r.Len(), len(model))
		}
	}
	got := make([]int, 0, r.Len())
	for i := range r.Len() {
		got = append(got, *r.At(i))
	}
	if !slices.Equal(got, model) {
		t.Error("the entries differ from the model's")
	}
	if r.Len() > 0 && *r.Front() != model[0] {
		t.Error("Front is not the oldest entry")
	}
}

func TestAllocations(t *testing.T) {
	var r Ring[*int]
	v := new(int)
	if n := testing.AllocsPerRun(100, func() {
		for range 16 {
			r.Push(v)
		}
		for range 16 {
			r.Pop()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for _, p := range r.slots {
		if p != nil {
			t.Error("a popped entry is still referenced")
		}
	}
}
