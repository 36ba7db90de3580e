// Package memory accounts for the memory of a decoder: the usage of its parts is counted in one place, which
// also makes them evict what exceeds the limit.
//
// A part counts what it holds on an Account as it comes and goes. It may use whatever the others leave. When
// all together hold more than the Budget, the accounts that hold more than their share give things up, the
// one that is furthest above it first, until the sum fits again: what one peer floods does not push out what
// the others are busy with.
//
// Counted are the bytes that were asked of the allocator, at the length of the backing arrays, and an
// estimate for each entry of a map. Beside that there is what the allocator and the garbage collector need.
package memory

// DefaultLimit is the limit of a Budget that is not given one, in bytes.
const DefaultLimit = 72 << 20

// MapEntry is the memory of a map entry in addition to its key and value, in bytes: a map of the Go runtime
// is between 7/16 and 7/8 full.
const MapEntry = 24

// Budget is the memory that the parts of a decoder may use together. It is not safe for concurrent use.
type Budget struct {
	limit    int
	used     int
	peak     int // highest after Enforce
	evicted  uint64
	accounts []*Account
}

// NewBudget makes a Budget of the given number of bytes; 0 means DefaultLimit.
func NewBudget(limit int) *Budget {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Budget{limit: limit}
}

// SetLimit changes the limit. What exceeds it is given up by the next Enforce.
func (b *Budget) SetLimit(limit int) {
	b.limit = limit
	for _, a := range b.accounts {
		a.share = limit / 100 * a.percent
	}
}

// Account is what one part holds.
type Account struct {
	// Evict frees something, the oldest or the least used, and subtracts it from the account. It returns
	// false if there is nothing to free. A part without it relies on the others.
	Evict func() bool

	budget *Budget
	used   int
	share  int // bytes
	stuck  bool

	percent int // of the limit: its share
}

// Account opens the account of a part. share is the percentage of the limit
// that it may hold whatever the others do; all shares together are at most 100.
func (b *Budget) Account(share int) *Account {
	a := &Account{budget: b, share: b.limit / 100 * share, percent: share}
	b.accounts = append(b.accounts, a)
	return a
}

// Add counts n bytes more, or less if n is negative. It does not evict: that is
// for Enforce, when no part is in the middle of something.
func (a *Account) Add(n int) {
	a.used += n
	a.budget.used += n
}

// Fits reports whether n bytes more are within the limit, or within the share of
// the part: then Enforce has the others make room.
func (a *Account) Fits(n int) bool { return a.budget.used+n <= a.budget.limit || a.used+n <= a.share }

// Used is what the part holds, in bytes.
func (a *Account) Used() int { return a.used }

// Limit is the limit of the Budget, in bytes.
func (a *Account) Limit() int { return a.budget.limit }

// Used is what all parts hold, in bytes.
func (b *Budget) Used() int { return b.used }

// Limit is how much they may hold, in bytes.
func (b *Budget) Limit() int { return b.limit }

// Peak is the most that they have held after a call of Enforce, in bytes. It is
// above the limit only if nothing more could be given up.
func (b *Budget) Peak() int { return b.peak }

// Evicted is how many times something was given up.
func (b *Budget) Evicted() uint64 { return b.evicted }

// Over reports whether Enforce has something to do.
func (b *Budget) Over() bool { return b.used > b.limit }

// Enforce makes the parts evict what exceeds the limit. Call it between two packets.
func (b *Budget) Enforce() {
	if b.used > b.peak || b.used > b.limit { // small enough to be inlined: it is asked for each packet
		b.enforce()
	}
}

//go:noinline
func (b *Budget) enforce() {
	if b.used > b.limit {
		b.evict()
	}
	b.peak = max(b.peak, b.used)
}

func (b *Budget) evict() {
	// A little more than is needed, so that it is not done for each packet.
	goal := b.limit - b.limit/64
	for b.used > goal {
		var worst *Account
		for _, a := range b.accounts {
			if !a.stuck && a.Evict != nil && a.used > 0 && (worst == nil || a.used-a.share > worst.used-worst.share) {
				worst = a
			}
		}
		if worst == nil {
			break
		}
		if !worst.Evict() {
			worst.stuck = true
			continue
		}
		b.evicted++
	}
	for _, a := range b.accounts {
		a.stuck = false
	}
}
