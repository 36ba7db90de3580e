package roce

// clock finds connections that have not been used for a round of its hand.
type clock struct {
	all   []*connection
	hand  int
	swept int // the last that sweep returned
}

func (k *clock) add(c *connection) {
	c.index = len(k.all)
	k.all = append(k.all, c)
}

func (k *clock) remove(c *connection) {
	last := len(k.all) - 1
	k.all[c.index] = k.all[last]
	k.all[c.index].index = c.index
	k.all[last] = nil
	k.all = k.all[:last]
}

// next moves the hand to the next connection. It returns that, and whether it was used since the hand passed.
func (k *clock) next() (c *connection, used bool) {
	if k.hand++; k.hand >= len(k.all) {
		k.hand = 0
	}
	c = k.all[k.hand]
	used, c.used = c.used, false
	return c, used
}

// unused is the next connection that was not used.
func (k *clock) unused() *connection {
	for {
		if c, used := k.next(); !used {
			return c
		}
	}
}

// sweep returns the next connection, whether it was used or not; nil if there is none.
func (k *clock) sweep() *connection {
	if k.swept++; k.swept >= len(k.all) {
		k.swept = 0
	}
	if len(k.all) == 0 {
		return nil
	}
	return k.all[k.swept]
}

// glance is how many connections are compared when memory is short.
const glance = 8

// heaviest is the largest of the next connections, of those that were not used if there are some; nil if there is no connection.
func (k *clock) heaviest() (heaviest *connection) {
	most := 0
	for range min(glance, len(k.all)) {
		c, used := k.next()
		weight := c.size
		if !used {
			weight *= 16
		}
		if heaviest == nil || weight > most {
			heaviest, most = c, weight
		}
	}
	return heaviest
}
