package cli

import (
	"fmt"
	"math"
)

// Size is a flag for a number of bytes: 65536, 64K, 4M, 1G. Zero stands for the
// default.
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

// Set implements pflag.Value.
func (s *Size) Set(v string) error {
	n, unit := int64(0), ""
	if _, err := fmt.Sscanf(v, "%d%s", &n, &unit); err != nil && unit != "" || n <= 0 {
		return fmt.Errorf("%q is not a size: use for example 65536, 64K, 4M or 1G", v)
	}
	shift := 0
	switch unit {
	case "":
	case "k", "K", "KiB":
		shift = 10
	case "m", "M", "MiB":
		shift = 20
	case "g", "G", "GiB":
		shift = 30
	default:
		return fmt.Errorf("%q is not a size: use for example 65536, 64K, 4M or 1G", v)
	}
	if n > math.MaxInt>>shift || n > 1<<40>>shift {
		return fmt.Errorf("%q is too much", v)
	}
	*s = Size(n << shift)
	return nil
}
