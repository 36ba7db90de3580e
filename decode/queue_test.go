package decode

import "testing"

// TestQueue adds and takes in turn, with more and fewer elements than there is room for.
func TestQueue(t *testing.T) {
	var q queue[int]
	in, out := 0, 0
	for i := range 1000 {
		for range i * 7 % 13 {
			q.add(in)
			in++
		}
		if q.len() != in-out || len(q.all()) != q.len() {
			t.Fatalf("length %d, %d elements, want %d", q.len(), len(q.all()), in-out)
		}
		for range i * 5 % 13 {
			if q.len() == 0 {
				break
			}
			if first, x := q.first(), q.take(); first != out || x != out {
				t.Fatalf("first %d, took %d, want %d", first, x, out)
			}
			out++
		}
	}
	for q.len() > 0 {
		q.take()
	}
	if n := testing.AllocsPerRun(100, func() {
		for range 5 {
			q.add(1)
		}
		for q.len() > 0 {
			q.take()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
