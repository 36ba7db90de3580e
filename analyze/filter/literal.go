package filter

import (
	"math"
	"math/bits"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// literal is a literal of an expression in every form that it can be compared in.
type literal struct {
	kinds kindSet // forms that are set

	u       uint64
	i       int64
	ns      int64 // duration
	sec     int64 // time
	nsec    uint32
	daily   bool // sec counts from midnight, of any day
	b       bool
	text    string
	raw     string   // bytes
	symbols []string // of kEnum and kFlags; empty if only u counts
	prefix  netip.Prefix
	address string // of an InfiniBand port

	hi *literal // the end of a range
}

// parseLiteral converts a literal to the forms that fields of these kinds need. symbols are the symbols of
// the field, nil if it has none. op is the operator that compares the literal.
func parseLiteral(t token, kinds kindSet, symbols []string, op opcode) literal {
	l := literal{text: t.text}
	word := t.kind == tokWord
	if word || kinds&(kString|kBytes|kData|kEnum|kFlags) == 0 {
		if u, ok := parseUint(t.text); ok {
			l.u, l.kinds = u, l.kinds|kUint|kEnum|kFlags
			if u <= math.MaxInt64 {
				l.i, l.kinds = int64(u), l.kinds|kInt
			}
		} else if strings.HasPrefix(t.text, "-") {
			if u, ok := parseUint(t.text[1:]); ok && u <= 1<<63 {
				l.i, l.kinds = -int64(u), l.kinds|kInt
			}
		}
	}
	if kinds&kDuration != 0 {
		if d, err := time.ParseDuration(t.text); err == nil {
			l.ns, l.kinds = int64(d), l.kinds|kDuration
		} else if ns, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			l.ns, l.kinds = ns, l.kinds|kDuration
		}
	}
	if kinds&kTime != 0 {
		l.time(t.text)
	}
	if kinds&kBool != 0 {
		switch strings.ToLower(t.text) {
		case "true", "yes", "1":
			l.b, l.kinds = true, l.kinds|kBool
		case "false", "no", "0":
			l.kinds |= kBool
		}
	}
	l.kinds |= kString
	if kinds&(kEnum|kFlags) != 0 && l.kinds&(kEnum|kFlags) == 0 {
		l.symbolic(kinds, symbols, op)
	}
	if kinds&(kBytes|kData) != 0 {
		if word {
			if raw, ok := parseHex(t.text); ok {
				l.raw, l.kinds = raw, l.kinds|kBytes|kData
			}
		} else {
			l.raw, l.kinds = t.text, l.kinds|kBytes|kData
		}
	}
	if kinds&kAddr != 0 {
		if p, ok := parsePrefix(t.text); ok {
			l.prefix, l.kinds = p, l.kinds|kAddr
		} else if n, ok := strings.CutPrefix(strings.ToLower(t.text), "lid "); ok {
			if _, err := strconv.ParseUint(n, 10, 16); err == nil {
				l.address, l.kinds = "lid "+n, l.kinds|kAddr
			}
		}
	}
	return l
}

// symbolic finds the symbols that a literal names: the symbol itself in any case, or all symbols that end
// with it after their prefix: NOENT stands for NFS3ERR_NOENT and NFS4ERR_NOENT.
func (l *literal) symbolic(kinds kindSet, symbols []string, op opcode) {
	if op == opLt || op == opLe || op == opGt || op == opGe {
		return // symbols are not ordered
	}
	l.symbols = matchSymbols(l.text, symbols)
	if len(l.symbols) > 0 {
		l.kinds |= kinds & (kEnum | kFlags)
	}
}

// join accepts symbols joined by "+", each with an optional count ("LOOKUP*2"). It rejects symbols that the
// field cannot have.
func (l *literal) join(symbols []string, op opcode) {
	if !op.equates() || !strings.ContainsAny(l.text, "+*") {
		return
	}
	parts := strings.Split(l.text, "+")
	for i, part := range parts {
		name, times, counted := strings.Cut(part, "*")
		found := matchSymbols(name, symbols)
		if len(found) == 0 {
			return
		}
		if parts[i] = found[0]; counted {
			if _, err := strconv.ParseUint(times, 10, 16); err != nil {
				return
			}
			parts[i] += "*" + times
		}
	}
	l.symbols, l.kinds = []string{strings.Join(parts, "+")}, l.kinds|kEnum
}

func matchSymbols(text string, symbols []string) (found []string) {
	for _, s := range symbols {
		if strings.EqualFold(s, text) {
			found = append(found, s)
		}
	}
	if found != nil {
		return found
	}
	for _, s := range symbols {
		if _, rest, ok := strings.Cut(s, "_"); ok && strings.EqualFold(rest, text) {
			found = append(found, s)
		}
	}
	return found
}

// sizes are the units of numbers. A letter, alone or with "iB", is a power of 1024; with "B" it is a power of
// 1000.
var sizes = map[string]uint64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
	"p": 1 << 50, "pib": 1 << 50, "pb": 1e15,
}

// parseUint parses a number: decimal, with or without a size unit, 0x…, 0b…, 0o… or 0…, or octets separated
// by colons, most significant first.
func parseUint(s string) (uint64, bool) {
	if len(s) == 0 || s[0] < '0' || s[0] > '9' {
		return colons(s)
	}
	if len(s) > 1 && s[0] == '0' {
		digits, base := s[2:], 0
		switch s[1] | 0x20 {
		case 'x':
			base = 16
		case 'o':
			base = 8
		case 'b':
			base = 2
		}
		if base == 0 {
			digits, base = s[1:], 8
		}
		if u, err := strconv.ParseUint(digits, base, 64); err == nil {
			return u, true
		}
		return colons(s)
	}
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	u, err := strconv.ParseUint(s[:n], 10, 64)
	unit, ok := sizes[strings.ToLower(s[n:])]
	if err != nil || !ok {
		return colons(s)
	}
	hi, lo := bits.Mul64(u, unit)
	return lo, hi == 0
}

// colons parses a number written as octets: 12:34:ab:cd.
func colons(s string) (uint64, bool) {
	if len(s) < 5 || len(s) > 23 || s[2] != ':' {
		return 0, false
	}
	raw, ok := parseHex(s)
	var u uint64
	for i := range len(raw) {
		u = u<<8 | uint64(raw[i])
	}
	return u, ok
}

// parseHex parses bytes: 01:02:ff, 01-02-ff, 0x0102ff or 0102ff.
func parseHex(s string) (string, bool) {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "0x"), "0X")
	sep := byte(0)
	if len(s) > 2 && (s[2] == ':' || s[2] == '-') {
		sep = s[2]
	}
	var raw []byte
	for i := 0; i < len(s); i += 2 {
		if i > 0 && sep != 0 {
			if s[i] != sep {
				return "", false
			}
			i++
		}
		if i+2 > len(s) {
			return "", false
		}
		v, ok := hexByte(s[i], s[i+1])
		if !ok {
			return "", false
		}
		raw = append(raw, v)
	}
	return string(raw), len(raw) > 0
}

// time sets the form of a time, if it is one.
func (l *literal) time(s string) {
	at, ok := parseTime(s)
	l.sec = at.Unix()
	if !ok {
		if at, ok = parseClock(s); !ok {
			return
		}
		l.sec, l.daily = ofDay(at.Unix()), true
	}
	l.nsec, l.kinds = uint32(at.Nanosecond()), l.kinds|kTime
}

// timeLayouts are RFC 3339 and shorter forms of it, in UTC.
var timeLayouts = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02"}

func parseTime(s string) (time.Time, bool) {
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// clockLayouts are times of the day, as listings show them, in UTC unless they have an offset.
var clockLayouts = [...]string{"15:04:05.999999999Z07:00", "15:04:05.999999999", "15:04"}

func parseClock(s string) (time.Time, bool) {
	for _, layout := range clockLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// ofDay is how many seconds of its day have passed at a time in seconds since 1970.
func ofDay(sec int64) int64 {
	const day = 24 * 60 * 60
	return (sec%day + day) % day
}

func parsePrefix(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), true
}

// predicate is the test applied to each value.
type predicate struct {
	op   opcode // opEq … opMask; a negated test has the plain op and negate
	neg  bool
	all  bool // every value must pass, and there must be at least one
	lits []literal
	re   *regexp.Regexp
	// only is the symbol to be equal to if there is but one, usually.
	only string
}
