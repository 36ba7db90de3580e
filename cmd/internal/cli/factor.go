package cli

import (
	"errors"
	"math"
	"strconv"

	"github.com/spf13/pflag"
)

// factor is the value of a flag for a number that need not be whole.
type factor struct {
	n    *float64
	zero bool // allowed
}

func (v *factor) Type() string { return "float64" }

// String is empty for zero: the default, which the help text of the flag explains.
func (v *factor) String() string {
	if v.n == nil || *v.n == 0 {
		return ""
	}
	return strconv.FormatFloat(*v.n, 'g', -1, 64)
}

// Set takes numbers only: package strconv also reads NaN, which is less than nothing and not more than anything,
// and infinities.
func (v *factor) Set(s string) error {
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return err
	case math.IsNaN(n), math.IsInf(n, 0):
		return errors.New("not a number")
	case n < 0 || n == 0 && !v.zero:
		if v.zero {
			return errNegative
		}
		return errors.New("use a number of more than zero")
	}
	*v.n = n
	return nil
}

// FactorVar defines a flag for a finite number of more than zero.
func FactorVar(f *pflag.FlagSet, p *float64, name string, value float64, usage string) {
	*p = value
	f.Var(&factor{n: p}, name, usage)
}

// FactorOrZeroVar defines a flag for a finite number that is not negative.
func FactorOrZeroVar(f *pflag.FlagSet, p *float64, name string, value float64, usage string) {
	*p = value
	f.Var(&factor{p, true}, name, usage)
}
