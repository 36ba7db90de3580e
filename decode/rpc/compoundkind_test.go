package rpc

import "testing"

// TestKinds: the same operations in another minor version are another kind, however many there are.
func TestKinds(t *testing.T) {
	o := newOutline(false)
	o.args.Numbers = []uint32{53, 22, 9}
	seen := map[uint64]bool{}
	for minor := range uint32(3 * kinds) {
		o.args.Minor = minor
		stamp := o.kind().stamp
		if seen[stamp] || stamp == 0 {
			t.Fatalf("minor version %d has the kind of another", minor)
		}
		if seen[stamp] = true; o.kind().stamp != stamp {
			t.Fatalf("minor version %d has two kinds", minor)
		}
	}
}
