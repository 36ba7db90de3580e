package cli

import (
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/pflag"
)

// number is the value of a flag for a whole number within bounds.
type number struct {
	n           *int
	least, most int
}

func (v *number) Type() string { return "int" }

// String is empty for zero: the default, which the help text of the flag explains.
func (v *number) String() string {
	if v.n == nil || *v.n == 0 {
		return ""
	}
	return strconv.Itoa(*v.n)
}

func (v *number) Set(s string) error {
	n, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return err
	case n >= v.least && n <= v.most:
		*v.n = n
		return nil
	case v.most == math.MaxInt:
		return fmt.Errorf("use a number of at least %d", v.least)
	}
	return fmt.Errorf("use a number from %d to %d", v.least, v.most)
}

// NumberVar defines a flag for a number from least to most. Without the flag, p is zero, which cannot be given
// unless it lies within the bounds.
func NumberVar(f *pflag.FlagSet, p *int, name string, least, most int, usage string) {
	*p = 0
	f.Var(&number{p, least, most}, name, usage)
}

// PositiveVar defines a flag for a number of at least one. Without the flag, p is zero.
func PositiveVar(f *pflag.FlagSet, p *int, name, usage string) {
	NumberVar(f, p, name, 1, math.MaxInt, usage)
}
