package column

import "github.com/parquet-go/parquet-go/format"

// Bools is a column of BOOLEAN.
type Bools struct {
	chunk
	bools
	turned bools   // see column.turn
	all    [2]bool // in the row group
}

// bools is the values of a page.
type bools struct {
	b    []byte // packed
	n    int
	seen [2]bool
}

func (c *Bools) turn() { c.bools, c.turned = c.turned, c.bools }

// Add appends a value.
func (c *Bools) Add(v bool) {
	if c.n%8 == 0 {
		c.b = append(c.b, 0) // the same file must be the same bytes: those behind the values count, too
	}
	if v {
		c.b[c.n/8] |= 1 << (c.n % 8)
		c.seen[1] = true
	} else {
		c.seen[0] = true
	}
	c.n++
}

func (c *Bools) page(p *pager) {
	x := &c.turned
	p.data = append(p.data[:0], x.b...)
	c.write(p, format.Plain, x.n, boolBounds(x.seen))
	for i := range c.all {
		c.all[i] = c.all[i] || x.seen[i]
	}
	*x = bools{b: keep(x.b)}
}

func boolBounds(seen [2]bool) bounds {
	switch seen {
	case [2]bool{true, true}:
		return bounds{[]byte{0}, []byte{1}}
	case [2]bool{true, false}:
		return bounds{[]byte{0}, []byte{0}}
	case [2]bool{false, true}:
		return bounds{[]byte{1}, []byte{1}}
	}
	return bounds{}
}

func (c *Bools) dictionary(*pager) int { return 0 }

func (c *Bools) limits() bounds { return boolBounds(c.all) }

func (c *Bools) reset() { c.b, c.n, c.seen, c.all = c.b[:0], 0, [2]bool{}, [2]bool{} }
