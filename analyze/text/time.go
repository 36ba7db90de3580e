package text

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/digits"
)

// TimeStyle is how the time of a packet is written.
type TimeStyle uint8

// Styles of times.
const (
	TimeOfDay      TimeStyle = iota // 05:33:11.644754
	TimeNone                        // nothing
	TimeEpoch                       // seconds since 1970
	TimeDelta                       // seconds since the previous line
	TimeDate                        // 2026-11-21 05:33:11.644754
	TimeSinceFirst                  // seconds since the first line
)

// TimeFormat is a style with its details.
type TimeFormat struct {
	Style TimeStyle
	Local bool // local time instead of UTC
	Nano  bool // nanoseconds instead of microseconds
}

// timeWords are the formats by the letters that tshark uses.
var timeWords = map[string]TimeFormat{
	"a":  {Style: TimeOfDay, Local: true},
	"ad": {Style: TimeDate, Local: true},
	"u":  {Style: TimeOfDay},
	"ud": {Style: TimeDate},
	"e":  {Style: TimeEpoch},
	"r":  {Style: TimeSinceFirst},
	"d":  {Style: TimeDelta},
	"dd": {Style: TimeDelta},
}

// counted are the formats by the number of -t options, as in tcpdump.
var counted = [...]TimeFormat{
	{Style: TimeOfDay}, {Style: TimeNone}, {Style: TimeEpoch}, {Style: TimeDelta},
	{Style: TimeDate}, {Style: TimeSinceFirst},
}

// TimeWord reports whether ParseTime accepts s.
func TimeWord(s string) bool {
	_, ok := timeWords[s]
	return ok
}

// ParseTime returns the format that a word stands for.
func ParseTime(s string) (TimeFormat, error) {
	f, ok := timeWords[s]
	if !ok {
		return f, fmt.Errorf("no such time format: %q (a, ad, u, ud, e, r, d, or t repeated: -t to -ttttt)", s)
	}
	return f, nil
}

// TimeCount returns the format that -t given n times stands for.
func TimeCount(n int) (TimeFormat, error) {
	if n < 0 || n >= len(counted) {
		return TimeFormat{}, fmt.Errorf("-t may be given at most %d times", len(counted)-1)
	}
	return counted[n], nil
}

// Clock writes consecutive times. The zero value writes the time of day in UTC.
type Clock struct {
	Format TimeFormat

	first, last int64
	started     bool
	from        int64 // when the cached second began; 0: unknown
	second      int64 // since 1970, local: the cached time of day
	time        [9]byte
	day         int64 // start of the cached date, in local seconds since 1970
	date        [10]byte
	zone        int64 // offset of local time in seconds, valid for an hour from zoneFrom
	zoneFrom    int64
	zoned       bool
}

const secondsPerDay = 24 * 60 * 60

// Append appends a time in nanoseconds since 1970. It appends nothing for
// TimeNone.
func (c *Clock) Append(b []byte, ns int64) []byte {
	if !c.started {
		c.started, c.first, c.last = true, ns, ns
	}
	last := c.last
	c.last = ns
	if frac := uint64(ns - c.from); frac < 1e9 && c.from != 0 && c.Format.Style == TimeOfDay && !c.Format.Nano { // most times
		return digits.Micro(append(b, c.time[:]...), uint32(frac)/1000)
	}
	switch c.Format.Style {
	case TimeNone:
		return b
	case TimeEpoch:
		return c.seconds(b, ns, 1)
	case TimeDelta:
		return c.seconds(b, ns-last, 4)
	case TimeSinceFirst:
		return c.seconds(b, ns-c.first, 4)
	}
	if c.Format.Style == TimeDate {
		day := c.turn(ns)
		if day != c.day || c.date[0] == 0 {
			c.day = day
			t := time.Unix(day, 0).UTC()
			if y := t.Year(); y < 0 || y > 9999 {
				return t.AppendFormat(b, "2006-01-02 15:04:05")
			}
			t.AppendFormat(c.date[:0], "2006-01-02")
		}
		b = append(b, c.date[:]...)
		b = append(b, ' ')
	} else {
		c.turn(ns)
	}
	return c.fraction(append(b, c.time[:]...), ns-c.from)
}

// turn has the time of day of a second, 05:33:11. with the point, and when it began. It returns the start of the day.
func (c *Clock) turn(ns int64) (day int64) {
	sec, frac := split(ns)
	c.from = ns - frac
	if c.Format.Local {
		sec += c.offset(sec)
	}
	day = sec - mod(sec, secondsPerDay)
	if sec != c.second || c.time[0] == 0 {
		const colons = (':' - '0') << 16 * (1 + 1<<24)
		rest := uint32(sec - day)
		minutes := rest / 60
		hours := minutes / 60
		binary.LittleEndian.PutUint64(c.time[:], colons+digits.EightWord(hours*1_000_000+(minutes-60*hours)*1000+rest-60*minutes))
		c.time[8] = '.'
		c.second = sec
	}
	return day
}

// offset is the offset of local time at a given time. It is looked up once per hour of the capture.
func (c *Clock) offset(sec int64) int64 {
	hour := sec - mod(sec, 3600)
	if !c.zoned || hour != c.zoneFrom {
		_, off := time.Unix(sec, 0).Zone()
		c.zoned, c.zoneFrom, c.zone = true, hour, int64(off)
	}
	return c.zone
}

// seconds appends seconds with a fraction; the integer part is at least width digits wide.
func (c *Clock) seconds(b []byte, ns int64, width int) []byte {
	neg := ns < 0
	if neg {
		ns = -max(ns, -math.MaxInt64)
	}
	sec, frac := split(ns)
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], sec, 10)
	n := len(d)
	if neg {
		n++
	}
	for ; n < width; n++ {
		b = append(b, ' ')
	}
	if neg {
		b = append(b, '-')
	}
	b = append(b, d...)
	return c.fraction(append(b, '.'), frac)
}

// fraction appends nanoseconds of a second, as far as they are shown.
func (c *Clock) fraction(b []byte, ns int64) []byte {
	if c.Format.Nano {
		return digits.Nano(b, uint32(ns))
	}
	return digits.Micro(b, uint32(ns)/1000)
}

func split(ns int64) (sec, frac int64) {
	sec, frac = ns/1e9, ns%1e9
	if frac < 0 {
		sec, frac = sec-1, frac+1e9
	}
	return sec, frac
}

func mod(a, m int64) int64 {
	if a %= m; a < 0 {
		a += m
	}
	return a
}

// timestamp appends the full time of a packet, UTC with nanoseconds.
func timestamp(b []byte, r rdma.Ref) []byte {
	c := Clock{Format: TimeFormat{Style: TimeDate, Nano: true}}
	return c.Append(b, r.Time)
}
