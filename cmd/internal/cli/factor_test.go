package cli

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestFactors(t *testing.T) {
	for _, c := range []struct {
		value      string
		more, zero bool // whether the flags for more than zero, and from zero on, take it
	}{
		{"1", true, true}, {"0.5", true, true}, {"1e9", true, true}, {"1e-300", true, true},
		{"0", false, true}, {"-0", false, true}, {"-1", false, false}, {"-1e-9", false, false},
		{"NaN", false, false}, {"nan", false, false}, {"Inf", false, false}, {"-inf", false, false}, {"infinity", false, false},
		{"1e999", false, false}, {"", false, false}, {"x", false, false},
	} {
		var a, b float64
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		FactorVar(f, &a, "more", 3, "")
		FactorOrZeroVar(f, &b, "zero", 3, "")
		if err := f.Set("more", c.value); (err == nil) != c.more || err != nil && a != 3 {
			t.Errorf("more than zero, %q: %v, value %v", c.value, err, a)
		}
		if err := f.Set("zero", c.value); (err == nil) != c.zero || err != nil && b != 3 {
			t.Errorf("from zero on, %q: %v, value %v", c.value, err, b)
		}
	}
}
