package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Span has the flags that select packets of files by time.
type Span struct {
	since, until moment
	last         time.Duration
	flag         *pflag.Flag // of last; nil in commands that do not have it
}

// Flags adds --since, --until and --last.
func (s *Span) Flags(f *pflag.FlagSet) {
	f.Var(&s.since, "since", "leave out packets before this `time`: 05:49:38 on the day of the first packet, 2026-11-21T05:49:38Z, or +10s after the first packet; UTC")
	f.Var(&s.until, "until", "leave out packets after this `time`")
	DurationVar(f, &s.last, "last", 0, "keep only this `duration` at the end of the files")
	s.flag = f.Lookup("last")
}

// Given reports whether a span was asked for.
func (s *Span) Given() bool {
	return s.since.text != "" || s.until.text != "" || s.flag != nil && s.flag.Changed
}

// Check checks the flags with the files of a command line. live means that packets come as they are captured.
func (s *Span) Check(live bool, names []string) error {
	switch {
	case !s.Given():
		return nil
	case live:
		return Usagef("--since, --until and --last are for complete files, not for live capture or --follow")
	case s.flag != nil && s.flag.Changed && s.last == 0:
		return Usagef("--last must be more than zero")
	case s.last != 0 && s.since.text != "":
		return Usagef("--last and --since both say where to begin: give one of them")
	}
	for _, n := range names {
		if s.last != 0 && !readTwice(n) {
			return Usagef("--last needs a file that can be read twice, not %s", n)
		}
	}
	return nil
}

// Open returns what keeps the packets of an input that lie in the span; nil keeps all of them. For --last, it reads the
// files to find their end.
func (s *Span) Open(names []string, opt capture.Options) (*Selected, error) {
	if !s.Given() {
		return nil, nil
	}
	t := &Selected{flags: s}
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

// Selected leaves out the packets of an input that lie outside a span.
type Selected struct {
	flags          *Span
	began          bool
	since, until   bool // whether there are limits
	from, to       int64
	before, behind uint64 // packets that were left out
	kept           uint64
}

// begin sets the limits. Times of day and offsets refer to the first packet.
func (t *Selected) begin(first int64) {
	t.began = true
	if m := &t.flags.since; m.text != "" {
		t.from, t.since = m.at(first), true
	}
	if m := &t.flags.until; m.text != "" {
		t.to, t.until = m.at(first), true
	}
}

// Read reads the next packets that lie in the span. read reads those of the input.
func (t *Selected) Read(b *capture.Batch, read func(*capture.Batch) error) error {
	if t == nil {
		return read(b)
	}
	for {
		err := read(b)
		if t.keep(b); err != nil || len(b.Packets) > 0 {
			return err
		}
	}
}

// Reader returns a reader of the packets of r that lie in the span.
func (t *Selected) Reader(r capture.Reader) capture.Reader {
	if t == nil {
		return r
	}
	return &selectedReader{r, t}
}

type selectedReader struct {
	capture.Reader
	span *Selected
}

func (r *selectedReader) Read(b *capture.Batch) error { return r.span.Read(b, r.Reader.Read) }

// Again selects the packets of the same input, which is read once more.
func (t *Selected) Again() *Selected {
	if t == nil {
		return nil
	}
	return &Selected{flags: t.flags, since: t.since, from: t.from}
}

// keep removes the packets outside the span from b.
func (t *Selected) keep(b *capture.Batch) {
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

// Note says what was left out. It is empty if nothing was.
func (t *Selected) Note() string {
	if t == nil || t.before+t.behind == 0 {
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

// readTwice reports whether a file can be read twice.
func readTwice(name string) bool {
	st, err := os.Stat(name)
	return name != "-" && err == nil && st.Mode().IsRegular()
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
		d, err := ParseDuration(rest)
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
