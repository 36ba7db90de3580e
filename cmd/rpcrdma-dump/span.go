package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/units"
)

// span has the flags that select packets of files by time.
type span struct {
	since, until moment
	last         time.Duration
	flag         *pflag.Flag // of last; nil in commands that do not have it
}

func (s *span) flags(f *pflag.FlagSet) {
	f.Var(&s.since, "since", "leave out packets before this `time`: 05:49:38 on the day of the first packet,\n2026-11-21T05:49:38Z, or +10s after the first packet; UTC")
	f.Var(&s.until, "until", "leave out packets after this `time`")
	cli.DurationVar(f, &s.last, "last", 0, "keep only this `duration` at the end of the files")
	s.flag = f.Lookup("last")
}

func (s *span) given() bool {
	return s.since.text != "" || s.until.text != "" || s.flag != nil && s.flag.Changed
}

// check checks the flags with the files of a command line.
func (s *span) check(live bool, names []string) error {
	switch {
	case !s.given():
		return nil
	case live:
		return cli.Usagef("--since, --until and --last are for complete files, not for live capture or --follow")
	case s.flag != nil && s.flag.Changed && s.last == 0:
		return cli.Usagef("--last must be more than zero")
	case s.last != 0 && s.since.text != "":
		return cli.Usagef("--last and --since both say where to begin: give one of them")
	}
	for _, n := range names {
		if s.last != 0 && mayWait(n, nil) {
			return cli.Usagef("--last needs a file that can be read twice, not %s", n)
		}
	}
	return nil
}

// open returns the span of an input. For --last, it reads the files to find their end.
func (s *span) open(names []string, opt capture.Options) (*timeSpan, error) {
	if !s.given() {
		return nil, nil
	}
	t := &timeSpan{flags: s}
	if s.last == 0 {
		return t, nil
	}
	r, err := capture.Open(names, opt)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	end, found := int64(0), false
	var b capture.Batch
	for err = r.Read(&b); !errors.Is(err, io.EOF); err = r.Read(&b) {
		for i := range b.Packets {
			if p := &b.Packets[i]; !found || p.Time > end {
				end, found = p.Time, true
			}
		}
		if err != nil && len(b.Packets) == 0 {
			break // the decoder reports the error
		}
	}
	t.from, t.since = end-int64(s.last), true
	return t, nil
}

// timeSpan leaves out packets of an input.
type timeSpan struct {
	flags          *span
	began          bool
	since, until   bool // whether there are limits
	from, to       int64
	before, behind uint64 // packets that were left out
	kept           uint64
}

// begin sets the limits. Times of day and offsets refer to the first packet.
func (t *timeSpan) begin(first int64) {
	t.began = true
	if m := &t.flags.since; m.text != "" {
		t.from, t.since = m.at(first), true
	}
	if m := &t.flags.until; m.text != "" {
		t.to, t.until = m.at(first), true
	}
}

// keep removes the packets outside the span from b.
func (t *timeSpan) keep(b *capture.Batch) {
	if !t.began && len(b.Packets) > 0 {
		t.begin(b.Packets[0].Time)
	}
	kept := b.Packets[:0]
	for i := range b.Packets {
		switch p := &b.Packets[i]; {
		case t.since && p.Time < t.from:
			t.before++
		case t.until && p.Time > t.to:
			t.behind++
		default:
			kept = append(kept, *p)
		}
	}
	b.Packets = kept
	t.kept += uint64(len(kept))
}

// note says what was left out. It is empty if nothing was.
func (t *timeSpan) note() string {
	if t.before+t.behind == 0 {
		return ""
	}
	var parts []string
	if t.before > 0 {
		parts = append(parts, fmt.Sprintf("%s before %s", units.Plural(t.before, "packet"), stamp(t.from)))
	}
	if t.behind > 0 {
		parts = append(parts, fmt.Sprintf("%s after %s", units.Plural(t.behind, "packet"), stamp(t.to)))
	}
	rest := ""
	if t.kept == 0 {
		rest = "; no packet is left"
	}
	return "left out: " + strings.Join(parts, ", ") + rest
}

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000000 UTC") }

// Nanoseconds since 1970 fit into 64 bits in these years.
const (
	firstYear = 1678
	lastYear  = 2261
)

// moment is the value of a flag that takes a time.
type moment struct {
	text  string
	date  bool          // abs is given, a date with a time
	abs   int64         // nanoseconds since 1970
	clock time.Duration // since midnight, or since the first packet
	plus  bool          // since the first packet
}

func (m *moment) Type() string   { return "time" }
func (m *moment) String() string { return m.text }

func (m *moment) Set(s string) error {
	*m = moment{text: s}
	if rest, ok := strings.CutPrefix(s, "+"); ok {
		d, err := cli.ParseDuration(rest)
		m.clock, m.plus = d, true
		return err
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			m.clock = t.Sub(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC))
			return nil
		}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			if y := t.UTC().Year(); y < firstYear || y > lastYear {
				return fmt.Errorf("%q is not in a year from %d to %d", s, firstYear, lastYear)
			}
			m.date, m.abs = true, t.UnixNano()
			return nil
		}
	}
	return fmt.Errorf("%q is not a time: write 05:49:38, 2026-11-21T05:49:38Z, or +10s after the first packet", s)
}

// at returns the time in an input whose first packet came at first. Both are nanoseconds since 1970.
func (m *moment) at(first int64) int64 {
	switch {
	case m.date:
		return m.abs
	case m.plus:
		return first + int64(m.clock)
	}
	t := time.Unix(0, first).UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Add(m.clock).UnixNano()
}
