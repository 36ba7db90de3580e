package latency

import (
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestPlaces compares where a value is counted with the buckets of histograms of three digits.
func TestPlaces(t *testing.T) {
	var n near
	for shift := range 63 {
		for _, v := range []int64{1 << shift, 1<<shift + 1, 1<<shift - 1, 1<<shift + 1<<shift/3} {
			if v <= 0 || v > maxValue {
				continue
			}
			span, place := n.places(v)
			if span >= len(n.at) || place >= 1<<nearBits {
				t.Fatalf("%d: range %d, place %d", v, span, place)
			}
			cut := max(bits.Len64(uint64(v))-nearBits-1, 0)
			if low := n.least(span, place); low != v>>cut<<cut || v > highest(low, nearDigits) {
				t.Errorf("%d is in the bucket of %d", v, low)
			}
		}
	}
}

// TestCountUsual compares where countUsual counts a value with what places says, and its bucket of two digits with bucketOf.
func TestCountUsual(t *testing.T) {
	var d dist
	m := memory{limit: 1 << 30}
	for range nearFrom {
		d.add(7, &m)
	}
	for shift := range 63 {
		d.countRare(1<<shift, 1, &m)
	}
	r := rand.New(rand.NewPCG(7, 8))
	for shift := range 63 {
		for i := range int64(40) {
			v := int64(1)<<shift + r.Int64N(1<<shift)
			if i < 10 {
				v = max(int64(1)<<shift+i-5, 0)
			}
			clear(d.near.counts)
			small := []uint16{0}
			usual := v >= 1<<nearBits && v < 1<<53
			if n := d.near.countUsual([]int64{v}, small); n == 1 != usual {
				t.Fatalf("%d: counted %d times", v, n)
			}
			if !usual {
				continue
			}
			span, place := d.near.places(v)
			if d.near.counts[int(d.near.at[span]-1)<<nearBits+place] != 1 || small[0] != uint16(bucketOf(v)) {
				t.Fatalf("%d is counted elsewhere, or bucket %d is not %d", v, small[0], bucketOf(v))
			}
		}
	}
}

// TestNear compares distributions with counters of 8 bits, some of which overflow, and without.
func TestNear(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	shaped := shapes(150000, r)
	for name, values := range shaped {
		for _, limit := range []int{1, 12 << 10, 40 << 10, 1 << 20, 1 << 30} {
			var a, b, c dist
			m, none := memory{limit: limit}, memory{limit: 1 << 30}
			for i, v := range values {
				a.add(v, &m)
				b.addPlain(v, &none)
				if i%50001 == 0 {
					c.merge(&a, &m)
				}
			}
			if limit == 1<<30 && name == "equal" && a.near == nil {
				t.Error("no counters")
			}
			c.merge(&a, &m)
			if limit <= 12<<10 {
				if c.count != b.count || c.sum != b.sum || c.longest != b.longest {
					t.Errorf("%s, %d bytes: counts differ", name, limit)
				}
			} else if x, y := c.distribution(), b.distribution(); !m.scarce && !reflect.DeepEqual(x, y) {
				t.Errorf("%s, %d bytes:\n%+v\n%+v", name, limit, x, y)
			}
			c.leave(&m)
			if m.used -= c.memory; m.used != 0 {
				t.Errorf("%s, %d bytes: %d bytes are lost", name, limit, m.used)
			}
		}
	}
}

// addPlain adds a value without counters of 8 bits.
func (d *dist) addPlain(v int64, m *memory) {
	used := m.used
	m.used = m.limit/2 + 1 // no room for them
	m.limit *= 4
	d.add(v, m)
	m.limit /= 4
	m.used += used - m.limit/2 - 1
}

// bucketsOf lists the buckets of a dist.
func bucketsOf(d *dist) (list [][3]uint64) {
	d.each(func(low, high int64, n uint64) { list = append(list, [3]uint64{uint64(low), uint64(high), n}) })
	return list
}

// TestEachNear: buckets are the same, be they in the counters, in the histogram, or in both, and be they those of a copy.
func TestEachNear(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 6))
	for name, values := range shapes(20000, r) {
		for _, limit := range []int{64 << 10, 1 << 30} {
			var d dist
			m := memory{limit: limit}
			for i, v := range values {
				if d.add(v, &m); i%3333 != 0 || d.near == nil {
					continue
				}
				if i%2 == 0 {
					d.gather() // what comes now is in the counters
					continue
				}
				used := m.used
				c := d.clone(&m)
				a, b, whole := bucketsOf(&d), bucketsOf(&c), d.distribution()
				d.gather()
				plain := bucketsOf(&d)
				if x := d.distribution(); !reflect.DeepEqual(whole, x) {
					t.Fatalf("%s, %d values:\n%+v\nin the histogram\n%+v", name, i, whole, x)
				}
				if !slices.Equal(a, plain) || !slices.Equal(b, plain) || !slices.Equal(bucketsOf(&c), plain) {
					t.Fatalf("%s, %d values:\n%v\nof a copy\n%v\nin the histogram\n%v", name, i, a, b, plain)
				}
				c.leave(&m)
				if m.used -= c.memory; m.used != used {
					t.Fatalf("%s: %d bytes are lost", name, m.used-used)
				}
			}
		}
	}
}

// FuzzNear adds values, in runs, and merges at some.
func FuzzNear(f *testing.F) {
	f.Add([]byte{1, 255, 3, 8, 200, 9, 40, 255, 255, 7}, uint32(1<<24))
	f.Add([]byte{62, 255, 255, 62, 255, 254, 62, 255, 253}, uint32(1<<15))
	f.Fuzz(func(t *testing.T, data []byte, limit uint32) {
		var a, b, c dist
		m, none := memory{limit: int(limit)}, memory{limit: 1 << 40}
		for ; len(data) >= 3; data = data[3:] {
			v := (int64(1)<<(data[0]&63) | int64(data[2])<<(data[0]&31)) & (1<<63 - 1)
			for i := range int64(data[1]) * 20 {
				a.add(v+i&7, &m)
				b.addPlain(v+i&7, &none)
			}
			if data[0]&64 != 0 {
				c.merge(&a, &m)
			}
		}
		c.merge(&a, &m)
		if c.count != b.count || c.sum != b.sum || c.sumHigh != b.sumHigh {
			t.Fatal("counts differ")
		}
		if x, y := c.distribution(), b.distribution(); c.digits == b.digits && !reflect.DeepEqual(x, y) {
			t.Fatalf("\n%+v\n%+v", x, y)
		}
		c.leave(&m)
		if m.used != c.memory {
			t.Fatalf("%d bytes are counted, %d in use", m.used, c.memory)
		}
	})
}
