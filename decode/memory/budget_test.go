package memory

import "testing"

// hoard holds pieces of one size.
type hoard struct {
	*Account
	size, n int
}

func (h *hoard) take(n int) {
	h.n += n
	h.Add(n * h.size)
}

func newHoard(b *Budget, share, size int) *hoard {
	h := &hoard{Account: b.Account(share), size: size}
	h.Evict = func() bool {
		if h.n == 0 {
			return false
		}
		h.take(-1)
		return true
	}
	return h
}

func TestBudget(t *testing.T) {
	b := NewBudget(64_000)
	calm, greedy := newHoard(b, 50, 100), newHoard(b, 50, 100)
	calm.take(200)
	greedy.take(440)
	if b.Enforce(); b.Over() || b.Evicted() != 0 || b.Used() != 64_000 || b.Peak() != 64_000 {
		t.Errorf("%d evicted, %d used, peak %d", b.Evicted(), b.Used(), b.Peak())
	}
	if !calm.Fits(12_000) || calm.Fits(12_001) || !greedy.Fits(0) || greedy.Fits(1) {
		t.Error("fits")
	}
	greedy.take(1000)
	b.Enforce()
	if b.Used() != 63_000 || calm.n != 200 || greedy.n != 430 || b.Peak() != 64_000 {
		t.Errorf("%d used, %d and %d, peak %d", b.Used(), calm.n, greedy.n, b.Peak())
	}
	// Both above their share: both give.
	calm.take(1000)
	b.Enforce()
	if b.Used() > 64_000 || greedy.n < 310 || calm.n < 310 {
		t.Errorf("%d used, %d and %d", b.Used(), calm.n, greedy.n)
	}
}

// TestStuck has a part that cannot give up anything: the others do instead, and
// in the end all return.
func TestStuck(t *testing.T) {
	b := NewBudget(10_000)
	fixed, other := b.Account(10), newHoard(b, 10, 100)
	fixed.Evict = func() bool { return false }
	fixed.Add(9_000)
	other.take(50)
	b.Enforce()
	if b.Used() > 10_000 || other.n == 0 {
		t.Errorf("%d used, %d left", b.Used(), other.n)
	}
	fixed.Add(9_000)
	b.Enforce()
	if other.n != 0 || b.Peak() != 18_000 || !b.Over() {
		t.Errorf("%d left, peak %d", other.n, b.Peak())
	}
	if NewBudget(0).Limit() != DefaultLimit {
		t.Error("no default")
	}
}
