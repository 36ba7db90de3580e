package rpc

import "testing"

// TestShapes: the same operations in another minor version are another shape, however many there are.
func TestShapes(t *testing.T) {
	o := newOutline(false)
	o.args.Numbers = []uint32{53, 22, 9}
	seen := map[uint64]bool{}
	for minor := range uint32(3 * shapes) {
		o.args.Minor = minor
		stamp := o.shape().stamp
		if seen[stamp] || stamp == 0 {
			t.Fatalf("minor version %d has the shape of another", minor)
		}
		if seen[stamp] = true; o.shape().stamp != stamp {
			t.Fatalf("minor version %d has two shapes", minor)
		}
	}
}
