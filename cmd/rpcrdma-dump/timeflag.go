package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// timeFlag is -t: repeated as in tcpdump, or with a word as in tshark.
type timeFlag struct {
	format text.TimeFormat
	count  int
	word   string
}

const timeRepeated = "t"

func (t *timeFlag) register(f *pflag.FlagSet) {
	f.VarP(t, "time", "t", "time format: -t none, -tt seconds since 1970, -ttt since the line before, "+
		"-tttt with date, -ttttt since the first line; or a word: a, ad local time "+
		"(with date), u, ud UTC (with date), e epoch, r relative, d delta; "+
		"default: time of day, UTC")
	f.Lookup("time").NoOptDefVal = timeRepeated
	f.BoolVar(&t.format.Nano, "nano", false, "show nanoseconds instead of microseconds")
}

func (t *timeFlag) String() string {
	if t.count > 0 {
		return strings.Repeat("t", t.count)
	}
	return t.word
}

func (t *timeFlag) Type() string { return "format" }

func (t *timeFlag) Set(s string) error {
	nano := t.format.Nano
	var err error
	if s == timeRepeated {
		t.count++
		t.format, err = text.TimeCount(t.count)
	} else {
		t.word = s
		t.format, err = text.ParseTime(s)
	}
	t.format.Nano = nano
	return err
}

// noteZone notes that local times are UTC if the time zone is not known.
func (j *job) noteZone() {
	if n := cli.NoZone(); n != "" {
		j.notes.Printf("%s", n)
	}
}

// splitTimes lets -t take its word from the next argument or without a space, which a flag with an optional
// value cannot do otherwise.
func splitTimes(args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		switch {
		case (a == "-t" || a == "--time") && i+1 < len(args) && text.TimeWord(args[i+1]):
			i++
			a += "=" + args[i]
		case strings.HasPrefix(a, "-t") && text.TimeWord(a[2:]):
			a = "-t=" + a[2:]
		}
		out = append(out, a)
	}
	return out
}
