package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a flag for a number of bytes: 65536, 64K, 4M, 1.5G; see ParseSize. Zero
// stands for the default.
type Size int

// Type implements pflag.Value.
func (s *Size) Type() string { return "size" }

// String implements pflag.Value.
func (s *Size) String() string {
	if *s == 0 {
		return ""
	}
	return fmt.Sprint(int(*s))
}

// Set implements pflag.Value. At most 1T is accepted.
func (s *Size) Set(v string) error {
	n, err := ParseSize(v)
	switch {
	case err != nil:
		return err
	case n == 0:
		return notSize(v)
	case n > 1<<40 || n > math.MaxInt:
		return fmt.Errorf("%q is too much", v)
	}
	*s = Size(n)
	return nil
}

// ParseSize reads a number of bytes: 65536, 64K, 1.5M, 1GiB. K, M, G and T are
// powers of 1024, alone or with iB; with B, as in 100MB, they are powers of 1000,
// as in filters.
func ParseSize(s string) (int64, error) {
	if n, ok := scaled(s, 1024); ok {
		return n, nil
	}
	return 0, notSize(s)
}

func notSize(s string) error {
	return fmt.Errorf("%q is not a size: use for example 65536, 64K, 4M or 1G", s)
}

// ParseRate reads a number of bits a second: 10G, 2500M. K, M, G and T are powers
// of 1000.
func ParseRate(s string) (int64, error) {
	if n, ok := scaled(s, 1000); ok {
		return n, nil
	}
	return 0, fmt.Errorf("%q is not a rate: use for example 100M, 2.5G or 10G", s)
}

// scaled reads a number that is not negative, with a unit that is a power of
// base, or of 1000 if it ends with B and not with iB. A number without a point is exact.
func scaled(s string, base int64) (int64, bool) {
	digits := strings.TrimRight(s, "kKmMgGtTiB")
	unit := s[len(digits):]
	if decimal, ok := strings.CutSuffix(unit, "B"); ok && !strings.HasSuffix(decimal, "i") {
		base = 1000
	}
	unit = strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(unit, "B"), "i"))
	power := 0
	if unit != "" {
		if power = 1 + strings.Index("KMGT", unit); power == 0 || len(unit) > 1 {
			return 0, false
		}
	}
	factor := int64(1)
	for range power {
		factor *= base
	}
	const most = 1 << 62
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		if n < 0 || n > most/factor {
			return 0, false
		}
		return n * factor, true
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(f >= 0 && f*float64(factor) <= most) {
		return 0, false
	}
	return int64(f * float64(factor)), true
}
