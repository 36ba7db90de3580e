package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// maxSeconds bounds times given as a number, so that they fit a time.Duration.
const maxSeconds = 1e9

var errNegative = errors.New("negative")

// ParseDuration reads a time: a number of seconds, such as 2 or 0.5, or a number
// with a unit, such as 500ms or 10m. It is not negative.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		var f float64
		if f, err = strconv.ParseFloat(s, 64); err == nil && math.Abs(f) <= maxSeconds {
			d = time.Duration(f * float64(time.Second))
		} else {
			return 0, fmt.Errorf("not a time: use seconds, such as 2 or 0.5, or a unit, such as 500ms or 10m")
		}
	}
	if d < 0 {
		return 0, errNegative
	}
	return d, nil
}

// duration is the value of a flag that ParseDuration reads.
type duration time.Duration

func (d *duration) Type() string { return "duration" }

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Set(s string) error {
	v, err := ParseDuration(s)
	if err == nil {
		*d = duration(v)
	}
	return err
}

// DurationVarP defines a flag for a time that ParseDuration reads. Zero as its
// default is not shown in the help.
func DurationVarP(f *pflag.FlagSet, p *time.Duration, name, short string, value time.Duration, usage string) {
	*p = value
	f.VarP((*duration)(p), name, short, usage)
}

// DurationVar is DurationVarP without a short name.
func DurationVar(f *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	DurationVarP(f, p, name, "", value, usage)
}
