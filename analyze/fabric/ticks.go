package fabric

// ticks follows the clock of a TCP sender's timestamps (RFC 7323, section 4.1), in order to find segments that took
// longer than others to the capture point: one that had been sent long before it was seen was held up by the
// network, or by the machine that captured it.
type ticks struct {
	begun bool
	first int64 // time of the first segment
	last  uint32
	sum   int64 // ticks since the first segment
	unit  int64 // nanoseconds of a tick; 0 if unknown

	from, fromSum int64 // of the period that the unit is checked over
	now, before   int64 // least delay of this period and of the one before, compared with the first segment's
}

// tickUnits are the lengths of ticks in common use: Linux 1 µs or 1 ms (earlier 4 and 10), Windows 1 ms or 10, BSD 1 ms.
var tickUnits = [...]int64{1_000, 1_000_000, 4_000_000, 10_000_000}

const (
	tickPeriod = 250_000_000
	never      = int64(1) << 62
)

// late is how much longer a segment took to the capture point than the fastest in the last periods, to half a tick; 0
// if that is no more than a tick, or while the length of a tick is unknown.
func (c *ticks) late(at int64, stamp uint32) int64 {
	if !c.begun {
		*c = ticks{begun: true, first: at, last: stamp, from: at, now: never, before: never}
		return 0
	}
	if n := int32(stamp - c.last); n > 0 {
		c.sum += int64(n)
		c.last = stamp
	} else if n < 0 {
		return 0 // overtaken
	}
	if passed := at - c.from; passed >= tickPeriod || c.unit == 0 && passed >= tickPeriod/8 {
		unit := tick(passed, c.sum-c.fromSum)
		if unit == 0 && c.unit != 0 && passed < 4*tickPeriod {
			unit = -1 // this segment may have been held up
		} else if unit != c.unit {
			c.unit, c.now = unit, never
		}
		if unit > 0 || unit == 0 && passed >= tickPeriod {
			c.from, c.fromSum, c.before, c.now = at, c.sum, c.now, never
		}
	}
	if c.unit == 0 || c.sum > never/c.unit {
		return 0
	}
	delay := at - c.first - c.sum*c.unit
	c.now = min(c.now, delay)
	if n := delay - min(c.now, c.before); n > c.unit {
		return n - c.unit/2
	}
	return 0
}

// tick is the length of a tick, given how long a number of them takes; 0 if it is not in common use.
func tick(took, count int64) int64 {
	if count < 25 {
		return 0
	}
	for _, u := range tickUnits {
		if n := took / count; n >= u-u/16 && n <= u+u/16 {
			return u
		}
	}
	return 0
}
