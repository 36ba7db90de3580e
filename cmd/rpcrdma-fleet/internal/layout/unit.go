package layout

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Schemas of the objects.
const (
	JobSchema     = "rpcrdma.fleet.job/1"
	UnitSchema    = "rpcrdma.fleet.unit/1"
	DoneSchema    = "rpcrdma.fleet.done/2" // 2: states are compressed
	FailureSchema = "rpcrdma.fleet.failure/1"
	AsideSchema   = "rpcrdma.fleet.aside/1"

	HeadSchema     = "rpcrdma.fleet.head/1"
	ManifestSchema = "rpcrdma.fleet.manifest/1"
)

// How many files a unit, and units a job have at most.
const (
	MaxFiles = 500_000
	MaxUnits = 200_000
)

const (
	maxURL  = 4096
	maxWord = 256
	maxSize = int64(1) << 50
	// maxMemory is more than a unit can use.
	maxMemory = 64 << 30
	maxList   = 64
)

// Path is the path of the URL.
func (f *File) Path() string {
	u, err := url.Parse(f.URL)
	if err != nil || u.Path == "" {
		return f.URL
	}
	return u.Path
}

// Unit is work for one worker: the captures of one tap, in the order in which they were made.
type Unit struct {
	Schema string `json:"schema"`
	ID     string `json:"id"`
	Tap    string `json:"tap"`
	// After is the ID of the unit whose captures come before those of this one; empty for the first unit of a tap.
	After   string  `json:"after,omitempty"`
	Options Options `json:"options"`
	Files   []File  `json:"files"`
}

// File is a capture as it was when the work was submitted. One that is different when it is read fails the unit.
type File struct {
	URL      string    `json:"url"`
	Size     int64     `json:"size"`
	ETag     string    `json:"etag,omitempty"` // of the store, if it has one
	Modified time.Time `json:"modified"`
}

// Options are what the result of a unit depends on besides its files.
type Options struct {
	By          []string `json:"by"`          // groups of the report: latency.KeyNames; empty for one group
	Interval    int64    `json:"interval_ns"` // of the table over time; 0 chooses one
	Top         int      `json:"top"`         // slowest transactions
	Inline      []uint32 `json:"inline"`      // thresholds to try, in bytes
	Filter      string   `json:"filter,omitempty"`
	Profile     string   `json:"profile"`         // of check
	Rules       string   `json:"rules,omitempty"` // of check; empty for all
	NoICRC      bool     `json:"no_icrc,omitempty"`
	OpenCalls   int      `json:"limit_calls,omitempty"`
	Connections int      `json:"limit_connections,omitempty"`
	Message     int      `json:"limit_message,omitempty"`
	Memory      int64    `json:"limit_memory"` // resident bytes of a worker: what is given up, and when, depends on it
	// A Parquet file ends with the capture with which at least PartBytes, as stored, or PartFiles captures have
	// been read since the last one ended. A worker can go on from there.
	PartBytes int64 `json:"part_bytes"`
	PartFiles int   `json:"part_files"`
}

// DefaultMemory is Options.Memory if nobody says otherwise.
const DefaultMemory = 200 << 20

// DefaultOptions are those of rpcrdma-dump.
func DefaultOptions() Options {
	return Options{
		By: []string{"operation"}, Top: 10, Inline: []uint32{1024, 4096, 16384, 65536}, Profile: "rfc8166",
		Memory: DefaultMemory, PartBytes: 512 << 20, PartFiles: 1000,
	}
}

func (o *Options) check() error {
	switch {
	case len(o.By) > maxList || len(o.Inline) > maxList || len(o.Filter) > maxURL || len(o.Rules) > maxURL || len(o.Profile) > maxWord:
		return malformed("options are too long")
	case o.Top < 0 || o.Interval < 0 || o.OpenCalls < 0 || o.Connections < 0 || o.Message < 0:
		return malformed("an option is negative")
	case o.Memory < 40<<20 || o.Memory > maxMemory:
		return malformed("limit_memory %d: 40 MiB to 64 GiB", o.Memory)
	case o.PartBytes < 1 || o.PartBytes > maxSize || o.PartFiles < 1 || o.PartFiles > MaxFiles:
		return malformed("part_bytes %d, part_files %d", o.PartBytes, o.PartFiles)
	}
	for _, s := range o.By {
		if len(s) > maxWord {
			return malformed("options are too long")
		}
	}
	return nil
}

// NewUnit makes the first Unit of a tap.
func NewUnit(tap string, files []File, opt Options) (*Unit, error) {
	return newUnit(tap, "", files, opt)
}

// Next makes the Unit of captures that follow those of u.
func (u *Unit) Next(files []File) (*Unit, error) { return newUnit(u.Tap, u.ID, files, u.Options) }

func newUnit(tap, after string, files []File, opt Options) (*Unit, error) {
	u := &Unit{Schema: UnitSchema, Tap: tap, After: after, Options: opt, Files: slices.Clone(files)}
	for i := range u.Files {
		u.Files[i].Modified = u.Files[i].Modified.UTC().Round(0)
	}
	u.ID = u.hash()
	return u, u.check()
}

// hash is the ID that fits the contents.
func (u *Unit) hash() string {
	c := *u
	c.ID = ""
	return id(encode(&c))
}

func (u *Unit) check() error {
	if u.Schema != UnitSchema {
		return malformed("schema %q is not %s", u.Schema, UnitSchema)
	}
	if err := CheckTap(u.Tap); err != nil {
		return malformed("%w", err)
	}
	if u.After != "" && !IsID(u.After) {
		return malformed("after: %q is not the ID of a unit", u.After)
	}
	if len(u.Files) == 0 || len(u.Files) > MaxFiles {
		return malformed("a unit has 1 to %d files, not %d", MaxFiles, len(u.Files))
	}
	if err := u.Options.check(); err != nil {
		return err
	}
	for i := range u.Files {
		if err := u.Files[i].check(); err != nil {
			return err
		}
	}
	if h := u.hash(); u.ID != h {
		return malformed("the ID %q does not fit the contents of the unit, which give %s", u.ID, h)
	}
	return nil
}

func (f *File) check() error {
	switch {
	case len(f.URL) > maxURL || len(f.ETag) > maxWord:
		return malformed("the name of a file is too long")
	case !utf8.ValidString(f.URL) || !utf8.ValidString(f.ETag):
		return malformed("%q is not UTF-8", f.URL)
	case f.Size < 0 || f.Size > maxSize:
		return malformed("%q: size %d", f.URL, f.Size)
	}
	return CheckURL(f.URL)
}

// CheckURL says what is wrong with the URL of a file: it has a scheme, and no part of its path is "." or "..".
func CheckURL(s string) error {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme == "" || rest == "" {
		return malformed("%q is not the URL of an object", s)
	}
	for _, c := range scheme {
		if !unicode.IsLower(c) && !unicode.IsDigit(c) {
			return malformed("%q is not the URL of an object", s)
		}
	}
	for part := range strings.SplitSeq(rest, "/") {
		p, err := url.PathUnescape(part)
		if err != nil {
			p = part
		}
		if p == ".." || p == "." || part == ".." || part == "." {
			return malformed("%q leads elsewhere", s)
		}
	}
	return nil
}

// ParseUnit reads a Unit and checks it.
func ParseUnit(b []byte) (*Unit, error) {
	u := &Unit{}
	if err := decode(b, MaxUnit, u); err != nil {
		return nil, err
	}
	return u, u.check()
}

// Encode is the JSON form.
func (u *Unit) Encode() []byte { return encode(u) }

// Bytes is the size of all files, as stored.
func (u *Unit) Bytes() (n int64) {
	for i := range u.Files {
		n += u.Files[i].Size
	}
	return n
}

// Outline is what is known of a Unit without its files, of which there may be many: enough to check a Done.
type Outline struct {
	ID, Tap string
	Files   int
	Bytes   int64 // of the files, as stored
	After   string
}

// Outline is the outline of the unit.
func (u *Unit) Outline() Outline { return Outline{u.ID, u.Tap, len(u.Files), u.Bytes(), u.After} }

// Parts divides the files where Parquet files end: of each part, the index of the file behind its last. It depends on
// nothing but the Unit.
func (u *Unit) Parts() (ends []int) {
	bytes, files := int64(0), 0
	for i := range u.Files {
		bytes, files = bytes+u.Files[i].Size, files+1
		if bytes >= u.Options.PartBytes || files >= u.Options.PartFiles || i == len(u.Files)-1 {
			ends = append(ends, i+1)
			bytes, files = 0, 0
		}
	}
	return ends
}

// Job is what was submitted at once.
type Job struct {
	Schema   string    `json:"schema"`
	ID       string    `json:"id"`
	Patterns []string  `json:"patterns"`
	Options  Options   `json:"options"`
	Units    []string  `json:"units"` // in ascending order
	Created  time.Time `json:"created"`
	Version  string    `json:"version"`
}

// NewJob makes a Job. Its ID depends on the units alone.
func NewJob(patterns, units []string, opt Options, created time.Time, version string) (*Job, error) {
	j := &Job{
		Schema: JobSchema, Patterns: patterns, Options: opt, Units: slices.Clone(units), Created: created.UTC().Truncate(time.Second), Version: version,
	}
	slices.Sort(j.Units)
	j.Units = slices.Compact(j.Units)
	j.ID = j.hash()
	return j, j.check()
}

func (j *Job) hash() string { return id([]byte(strings.Join(j.Units, "\n"))) }

func (j *Job) check() error {
	switch {
	case j.Schema != JobSchema:
		return malformed("schema %q is not %s", j.Schema, JobSchema)
	case len(j.Units) == 0 || len(j.Units) > MaxUnits:
		return malformed("a job has 1 to %d units, not %d", MaxUnits, len(j.Units))
	case len(j.Patterns) > MaxFiles || len(j.Version) > maxWord:
		return malformed("a list is too long")
	}
	for i, u := range j.Units {
		if !IsID(u) || i > 0 && u <= j.Units[i-1] {
			return malformed("%q is not the ID of a unit, or not in order", u)
		}
	}
	if err := j.Options.check(); err != nil {
		return err
	}
	if h := j.hash(); j.ID != h {
		return malformed("the ID %q does not fit the job, which gives %s", j.ID, h)
	}
	return nil
}

// ParseJob reads a Job and checks it.
func ParseJob(b []byte) (*Job, error) {
	j := &Job{}
	if err := decode(b, MaxJob, j); err != nil {
		return nil, err
	}
	return j, j.check()
}

// Encode is the JSON form.
func (j *Job) Encode() []byte { return encode(j) }

// Failure is an attempt at a unit that failed.
type Failure struct {
	Schema  string    `json:"schema"`
	Unit    string    `json:"unit"`
	Attempt int       `json:"attempt"`
	Reason  string    `json:"reason"`
	Worker  string    `json:"worker"`
	Time    time.Time `json:"time"`
}

// Aside says that a unit is not tried any more.
type Aside struct {
	Schema   string    `json:"schema"`
	Unit     string    `json:"unit"`
	Attempts int       `json:"attempts"`
	Reason   string    `json:"reason"` // of the last failure
	Time     time.Time `json:"time"`
}

const maxReason = 8 << 10

func reason(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + " …"
	}
	return s
}

// Encode is the JSON form.
func (f *Failure) Encode() []byte {
	c := *f
	c.Schema, c.Reason, c.Worker, c.Time = FailureSchema, reason(f.Reason), reason(f.Worker), f.Time.UTC().Truncate(time.Second)
	return encode(&c)
}

// Encode is the JSON form.
func (a *Aside) Encode() []byte {
	c := *a
	c.Schema, c.Reason, c.Time = AsideSchema, reason(a.Reason), a.Time.UTC().Truncate(time.Second)
	return encode(&c)
}

// ParseFailure reads a Failure of a unit.
func ParseFailure(b []byte, unit string) (*Failure, error) {
	f := &Failure{}
	if err := decode(b, MaxFailure, f); err != nil {
		return nil, err
	}
	if f.Schema != FailureSchema || f.Unit != unit || f.Attempt < 0 {
		return nil, malformed("it is not a failure of unit %s", unit)
	}
	return f, nil
}

// ParseAside reads an Aside of a unit.
func ParseAside(b []byte, unit string) (*Aside, error) {
	a := &Aside{}
	if err := decode(b, MaxFailure, a); err != nil {
		return nil, err
	}
	if a.Schema != AsideSchema || a.Unit != unit || a.Attempts < 0 {
		return nil, malformed("it says nothing of unit %s", unit)
	}
	return a, nil
}

// String names a unit for people.
func (u *Unit) String() string {
	return fmt.Sprintf("unit %s (tap %q, %d files)", u.ID[:min(len(u.ID), 12)], u.Tap, len(u.Files))
}
