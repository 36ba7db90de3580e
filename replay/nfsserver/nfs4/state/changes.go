package state

import (
	"sync/atomic"
	"time"
)

// changes counts the changes of files that are in progress; files of one cell are counted together.
type changes struct {
	seed  uint32
	cells [512]atomic.Int32
}

func (c *changes) of(k Key) *atomic.Int32 {
	h := (k.ID ^ uint64(k.Generation)<<40 ^ uint64(c.seed)) * 0x9e3779b97f4a7c15
	return &c.cells[h>>55]
}

// contention remembers, for half a minute to a minute, files whose delegations were
// recalled: it has a fixed size, and may mistake others for one of them (a Bloom filter, as in
// Linux).
type contention struct {
	seed   uint32
	bits   [2][64]uint64
	newest int
	since  time.Time
}

const contentionTime = 30 * time.Second

// cells is the two bits of a file.
func (c *contention) cells(k Key) [2]uint32 {
	h := (k.ID ^ uint64(k.Generation)<<32 ^ uint64(c.seed)<<17) * 0xd6e8feb86659fd93
	h ^= h >> 29
	return [2]uint32{uint32(h>>8) % 4096, uint32(h>>40) % 4096}
}

func (c *contention) turn(now time.Time) {
	switch old := now.Sub(c.since); {
	case old >= 2*contentionTime:
		c.bits = [2][64]uint64{}
		c.since = now
	case old >= contentionTime:
		c.newest ^= 1
		c.bits[c.newest] = [64]uint64{}
		c.since = now
	}
}

func (c *contention) add(k Key, now time.Time) {
	c.turn(now)
	for _, n := range c.cells(k) {
		c.bits[c.newest][n/64] |= 1 << (n % 64)
	}
}

func (c *contention) has(k Key, now time.Time) bool {
	c.turn(now)
	cell := c.cells(k)
	for i := range c.bits {
		if c.bits[i][cell[0]/64]>>(cell[0]%64)&1 != 0 && c.bits[i][cell[1]/64]>>(cell[1]%64)&1 != 0 {
			return true
		}
	}
	return false
}
