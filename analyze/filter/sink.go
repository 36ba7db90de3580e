package filter

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// sink receives the values of a field one by one. It tests them, or collects them as text.
type sink struct {
	p               *predicate
	seen, hit, miss bool
	stop            bool // further values cannot change the result

	collect bool
	dst     []string

	walk   visitor
	buf    []byte
	reader fields.Reader
}

// Stopped reports whether further values are of no use.
func (s *sink) Stopped() bool { return s.stop }

func (s *sink) result(ok bool) {
	ok = ok != s.p.neg
	s.seen = true
	if ok {
		s.hit = true
	} else {
		s.miss = true
	}
	s.stop = ok != s.p.all
}

func (s *sink) text(t string) { s.dst = append(s.dst, t) }

// ordered returns the result of an ordering comparison.
func ordered(op opcode, c int) bool {
	switch op {
	case opEq, opIn:
		return c == 0
	case opLt:
		return c < 0
	case opLe:
		return c <= 0
	case opGt:
		return c > 0
	case opGe:
		return c >= 0
	}
	return false
}

// exists handles an existence test for a value that is always present.
func (s *sink) exists() bool {
	if s.p.op != opExists {
		return false
	}
	s.result(true)
	return true
}

// any tells whether one of the literals of a kind matches; nothing if there is none of it.
func (s *sink) any(k kindSet, match func(*literal) bool) {
	known := false
	for i := range s.p.lits {
		if l := &s.p.lits[i]; l.kinds&k != 0 {
			if match(l) {
				s.result(true)
				return
			}
			known = true
		}
	}
	if known {
		s.result(false)
	}
}

func (s *sink) number(u uint64, k kindSet) {
	s.any(k, func(l *literal) bool { return s.p.numeric(l, u) })
}

// numeric reports whether the test holds for a number.
func (p *predicate) numeric(l *literal, u uint64) bool {
	switch {
	case p.op == opMask:
		return u&l.u != 0
	case l.hi != nil:
		return u >= l.u && u <= l.hi.u
	}
	return ordered(p.op, cmp.Compare(u, l.u))
}

// symbolic reports whether the test holds for a symbol, or several: "A|B". It is undecided if the literal is a number.
func (p *predicate) symbolic(l *literal, symbols string) (ok, decided bool) {
	switch {
	case p.op == opContains:
		return containsFold(symbols, l.text), true
	case p.op == opMatches:
		return p.re.MatchString(symbols), true
	}
	for _, w := range l.symbols {
		if p.op == opMask {
			ok = ok || hasFlag(symbols, w)
		} else {
			ok = ok || w == symbols
		}
	}
	return ok, len(l.symbols) > 0
}

// Uint is a number.
func (s *sink) Uint(u uint64) {
	if s.collect {
		s.text(strconv.FormatUint(u, 10))
		return
	}
	if !s.exists() {
		s.number(u, kUint)
	}
}

// Count is a number of which 0 means "none".
func (s *sink) Count(u uint64) {
	if !s.collect && s.p.op == opExists {
		s.result(u != 0)
		return
	}
	s.Uint(u)
}

func (s *sink) signed(n int64, k kindSet) {
	if s.exists() {
		return
	}
	p := s.p
	s.any(k, func(l *literal) (ok bool) {
		lo, hi := l.i, int64(0)
		if l.hi != nil {
			hi = l.hi.i
		}
		if k == kDuration {
			if lo = l.ns; l.hi != nil {
				hi = l.hi.ns
			}
		}
		if l.hi != nil {
			ok = n >= lo && n <= hi
		} else {
			ok = ordered(p.op, cmp.Compare(n, lo))
		}
		return ok
	})
}

// int is a signed number.
func (s *sink) int(n int64) {
	if s.collect {
		s.text(strconv.FormatInt(n, 10))
		return
	}
	s.signed(n, kInt)
}

// Duration is one in nanoseconds.
func (s *sink) Duration(d time.Duration) {
	if s.collect {
		s.text(strconv.FormatInt(int64(d), 10))
		return
	}
	s.signed(int64(d), kDuration)
}

// Time is nanoseconds since 1970.
func (s *sink) Time(ns int64) {
	sec := ns / 1e9
	if ns %= 1e9; ns < 0 {
		sec, ns = sec-1, ns+1e9
	}
	s.time(sec, uint32(ns))
}

// time is seconds and nanoseconds since 1970; nsec may be any number.
func (s *sink) time(sec int64, nsec uint32) {
	if s.collect {
		b := time.Unix(sec, int64(nsec)).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000000000Z")
		s.text(string(b))
		return
	}
	if s.exists() {
		return
	}
	p := s.p
	s.any(kTime, func(l *literal) (ok bool) {
		c := compareTime(sec, nsec, l)
		if l.hi != nil {
			ok = c >= 0 && compareTime(sec, nsec, l.hi) <= 0
		} else {
			ok = ordered(p.op, c)
		}
		return ok
	})
}

func compareTime(sec int64, nsec uint32, l *literal) int {
	if l.daily {
		sec = ofDay(sec)
	}
	if c := cmp.Compare(sec, l.sec); c != 0 {
		return c
	}
	return cmp.Compare(nsec, l.nsec)
}

// Bool handles true or false. Alone in an expression the value must be true.
func (s *sink) Bool(b bool) {
	switch {
	case s.collect:
		s.text(strconv.FormatBool(b))
	case s.p.op == opExists:
		s.result(b)
	default:
		s.any(kBool, func(l *literal) bool { return l.b == b })
	}
}

// Text is a text.
func (s *sink) Text(t string) {
	if s.collect {
		s.text(t)
		return
	}
	if s.exists() {
		return
	}
	p := s.p
	ok := false
	switch p.op {
	case opContains:
		ok = strings.Contains(t, p.lits[0].text)
	case opMatches:
		ok = p.re.MatchString(t)
	default:
		for i := range p.lits {
			l := &p.lits[i]
			if l.hi != nil {
				ok = t >= l.text && t <= l.hi.text
			} else {
				ok = ordered(p.op, strings.Compare(t, l.text))
			}
			if ok {
				break
			}
		}
	}
	s.result(ok)
}

// TextBytes is a text in bytes.
func (s *sink) TextBytes(b []byte) {
	if s.collect {
		s.text(string(b))
		return
	}
	s.octets(b, kString)
}

// Hex is bytes.
func (s *sink) Hex(b []byte) {
	if s.collect {
		s.text(hex.EncodeToString(b))
		return
	}
	s.octets(b, kBytes)
}

// data handles file data. Data in a chunk has no bytes here and is not compared.
func (s *sink) data(d xdr.Data) {
	switch {
	case s.collect:
		if d.Chunk == 0 {
			s.text(hex.EncodeToString(d.Inline))
		}
	case s.p.op == opExists:
		s.result(true)
	case d.Chunk == 0 && uint64(len(d.Inline)) == uint64(d.Length):
		s.octets(d.Inline, kData)
	}
}

func (s *sink) octets(b []byte, k kindSet) {
	if s.exists() {
		return
	}
	p := s.p
	s.any(k, func(l *literal) (ok bool) {
		want, hi := l.raw, ""
		if l.hi != nil {
			hi = l.hi.raw
		}
		if k == kString {
			if want = l.text; l.hi != nil {
				hi = l.hi.text
			}
		}
		switch {
		case p.op == opMatches:
			ok = p.re.Match(b)
		case p.op == opContains:
			ok = containsBytes(b, want)
		case l.hi != nil:
			ok = compareBytes(b, want) >= 0 && compareBytes(b, hi) <= 0
		case p.op == opEq || p.op == opIn:
			ok = string(b) == want
		default:
			ok = ordered(p.op, compareBytes(b, want))
		}
		return ok
	})
}

// compareBytes and containsBytes avoid copies.
func compareBytes(b []byte, t string) int {
	n := min(len(b), len(t))
	for i := range n {
		if b[i] != t[i] {
			return cmp.Compare(b[i], t[i])
		}
	}
	return cmp.Compare(len(b), len(t))
}

func containsBytes(b []byte, t string) bool {
	if t == "" {
		return true
	}
	for {
		i := bytes.IndexByte(b, t[0])
		if i < 0 || len(b)-i < len(t) {
			return false
		}
		if b = b[i:]; string(b[:len(t)]) == t {
			return true
		}
		b = b[1:]
	}
}

// Enum handles a number with a symbol, which is empty if there is none.
func (s *sink) Enum(code uint32, symbol string) {
	if s.collect {
		s.text(xdr.EnumString(code, symbol))
		return
	}
	p := s.p
	if p.only != "" {
		s.result(symbol == p.only)
		return
	}
	if s.exists() {
		return
	}
	s.any(kEnum, func(l *literal) bool {
		if p.op == opMatches && symbol == "" {
			s.buf = strconv.AppendUint(s.buf[:0], uint64(code), 10)
			return p.re.Match(s.buf)
		}
		ok, decided := p.symbolic(l, symbol)
		return ok || !decided && p.numeric(l, uint64(code))
	})
}

// Symbol handles a symbol whose number does not count; it may be a number as text.
func (s *sink) Symbol(t string) {
	if s.collect {
		s.text(t)
		return
	}
	p := s.p
	if p.only != "" {
		s.result(t == p.only)
		return
	}
	if s.exists() {
		return
	}
	s.any(kEnum, func(l *literal) bool {
		ok, decided := p.symbolic(l, t)
		return ok || !decided && (p.op == opEq || p.op == opIn) && t == l.text
	})
}

// flags is a mask with the symbols of its bits.
func (s *sink) flags(u uint64, symbols string) {
	if s.collect {
		if symbols == "" {
			symbols = strconv.FormatUint(u, 10)
		}
		s.text(symbols)
		return
	}
	if s.exists() {
		return
	}
	s.any(kFlags, func(l *literal) bool {
		ok, decided := s.p.symbolic(l, symbols)
		return ok || !decided && s.p.numeric(l, u)
	})
}

// hasFlag reports whether a flag is in "A|B|C".
func hasFlag(symbols, flag string) bool {
	for len(symbols) >= len(flag) {
		i := strings.IndexByte(symbols, '|')
		if i < 0 {
			return symbols == flag
		}
		if symbols[:i] == flag {
			return true
		}
		symbols = symbols[i+1:]
	}
	return false
}

// containsFold is strings.Contains, ignoring the case of ASCII letters. The texts are short.
func containsFold(s, t string) bool {
	for i := 0; i+len(t) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(t)], t) {
			return true
		}
	}
	return false
}

// Addr is an address.
func (s *sink) Addr(a netip.Addr) {
	if s.collect {
		if a.IsValid() {
			s.text(link.AddrString(a))
		}
		return
	}
	if !a.IsValid() || s.exists() {
		return
	}
	p := s.p
	if p.op == opMatches {
		if _, lid := link.IsLID(a); lid {
			s.buf = append(s.buf[:0], link.AddrString(a)...)
		} else {
			s.buf = a.AppendTo(s.buf[:0])
		}
		s.result(p.re.Match(s.buf))
		return
	}
	s.any(kAddr, func(l *literal) (ok bool) {
		switch {
		case l.address != "":
			ok = link.AddrString(a) == l.address
		case l.hi != nil:
			b := a.Unmap()
			ok = b.Zone() == "" && b.BitLen() == l.prefix.Addr().BitLen() && b.Compare(l.prefix.Addr()) >= 0 && b.Compare(l.hi.prefix.Addr()) <= 0
		default:
			ok = l.prefix.Contains(a.Unmap())
		}
		return ok
	})
}

// group handles a field that holds others.
func (s *sink) group(name string) {
	if s.collect {
		s.text(name)
	} else {
		s.exists()
	}
}
