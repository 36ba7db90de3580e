package duplicates

// maxHeld is how many packets wait for their copies. Older packets are forgotten; their copies then count as originals.
const maxHeld = 1 << 17

// maxAlike bounds how many packets with the same print are compared with one copy. A sender may repeat a packet without limit.
const maxAlike = 16

// point is a tap whose packets come more than once.
type point struct {
	delay Delay
	at    map[uint64]uint64 // the latest packet with a print, by its number from 1
	ring  []held            // a power of two
	next  uint64            // number of the next packet
	first uint64            // number of the oldest that is held
}

// held is a packet that waits for its copy.
type held struct {
	sum  uint64
	time int64
	same uint64 // the one with the same print before it; 0: none
	left int    // copies that have not come
}

func newPoint(d Delay) *point {
	return &point{delay: d, at: map[uint64]uint64{}, ring: make([]held, 64), next: 1, first: 1}
}

func (t *point) of(n uint64) *held { return &t.ring[n&uint64(len(t.ring)-1)] }

// copied reports whether a packet is the copy of an earlier one. If not, it waits for its own copy.
func (t *point) copied(sum uint64, now int64) bool {
	t.forget(now)
	var of *held
	n := t.at[sum]
	for range maxAlike {
		if n < t.first { // 0, or forgotten
			break
		}
		h := t.of(n)
		if d := now - h.time; h.left > 0 && d >= t.delay.Low && d <= t.delay.High {
			of = h // the oldest one matches: copies come in the order of their originals
		}
		n = h.same
	}
	if of != nil {
		of.left--
		return true
	}
	t.hold(sum, now)
	return false
}

// forget drops the packets whose copies are overdue.
func (t *point) forget(now int64) {
	for t.first < t.next {
		h := t.of(t.first)
		if h.left > 0 && now-h.time <= t.delay.High && now >= h.time && t.next-t.first < maxHeld {
			return
		}
		if t.at[h.sum] == t.first {
			delete(t.at, h.sum)
		}
		t.first++
	}
}

func (t *point) hold(sum uint64, now int64) {
	if t.next-t.first == uint64(len(t.ring)) {
		old := t.ring
		t.ring = make([]held, 2*len(old))
		for n := t.first; n < t.next; n++ {
			*t.of(n) = old[n&uint64(len(old)-1)]
		}
	}
	*t.of(t.next) = held{sum: sum, time: now, same: t.at[sum], left: t.delay.Times - 1}
	t.at[sum] = t.next
	t.next++
}
