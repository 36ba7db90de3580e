package layout

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Done says what became of a unit. It depends on the Unit and the version of the program only.
type Done struct {
	Schema  string `json:"schema"`
	Unit    string `json:"unit"`
	Tap     string `json:"tap"`
	Version string `json:"version"`
	// Status is 0, or 3 if the input was truncated or malformed.
	Status int `json:"status"`
	// Follows is the unit of the tap that this one goes on from. Damage, Problems, Notes, Counts.Findings and State are of
	// all captures of the tap up to here.
	Follows string `json:"follows,omitempty"`
	// Apart is the last unit that State does not have, though its captures come before: it could not be gone on from. Results
	// of the tap are made of the states of both.
	Apart string `json:"apart,omitempty"`
	// Last is the time of the newest packet of the tap up to here.
	Last     time.Time `json:"last,omitzero"`
	Counts   Counts    `json:"counts"`
	Damage   uint64    `json:"damage"` // how many Problems there are in all
	Problems []Problem `json:"problems"`
	Notes    []string  `json:"notes"`
	State    Result    `json:"state"`
	// Ended is what this unit and those before it have found of connections that have ended, which State does not have.
	Ended   []Result `json:"ended,omitempty"`
	Results []Result `json:"results"` // Parquet files, in the order in which they were begun
}

// Counts are numbers of a unit.
type Counts struct {
	Files        int    `json:"files"`
	Stored       int64  `json:"stored_bytes"` // of the files, as stored
	Packets      uint64 `json:"packets"`
	Bytes        uint64 `json:"bytes"` // on the wire
	Transactions uint64 `json:"transactions"`
	Rows         uint64 `json:"rows"` // of Parquet: transactions that pass the filter
	Connections  int    `json:"connections"`
	Findings     uint64 `json:"findings"` // of check, of all severities
}

// Problem is a damaged place, or a malformed message.
type Problem struct {
	File   string `json:"file,omitempty"`
	Packet uint64 `json:"packet,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	Text   string `json:"text"`
}

// String is the problem in words.
func (p *Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ": ")
	}
	if p.Packet != 0 {
		fmt.Fprintf(&b, "packet %d: ", p.Packet)
	}
	if p.Offset != 0 {
		fmt.Fprintf(&b, "offset %d: ", p.Offset)
	}
	return b.String() + p.Text
}

// Result is an object that a unit has written.
type Result struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Rows   uint64 `json:"rows,omitempty"`
	// Tail: transactions that were still open at the end of the unit. The unit that follows has them whole: then these rows do
	// not count. See Manifest.
	Tail bool `json:"tail,omitempty"`
	// First and Last are the times of the first and the last transaction in nanoseconds since 1970. Where an agent has written the
	// transactions of the tap as well, those of that time count once.
	First int64 `json:"first_ns,omitempty"`
	Last  int64 `json:"last_ns,omitempty"`
	// Unpacked is how many bytes a state has that is not compressed: memory that reading it takes.
	Unpacked int64 `json:"unpacked_bytes,omitempty"`
}

// Limits of a Done.
const (
	MaxProblems = 64
	// MaxEnded is how many objects have what has ended. After that, units keep it, and pass it on to those that follow.
	MaxEnded = 4096
	maxNotes = 64
)

// Encode is the JSON form.
func (d *Done) Encode() []byte {
	c := *d
	c.Schema = DoneSchema
	return encode(&c)
}

// ParseDone reads a Done of a unit, and checks that it fits.
func ParseDone(b []byte, u Outline) (*Done, error) {
	d := &Done{}
	if err := decode(b, MaxDone, d); err != nil {
		return nil, err
	}
	return d, d.check(u)
}

func (d *Done) check(u Outline) error {
	switch {
	case d.Schema != DoneSchema:
		return malformed("schema %q is not %s", d.Schema, DoneSchema)
	case d.Unit != u.ID || d.Tap != u.Tap:
		return malformed("it is of another unit")
	case d.Status != 0 && d.Status != 3:
		return malformed("status %d", d.Status)
	case d.Counts.Files != u.Files || d.Counts.Stored != u.Bytes || d.Counts.Connections < 0:
		return malformed("its counts do not fit the unit")
	case len(d.Problems) > MaxProblems || len(d.Notes) > maxNotes || len(d.Ended) > MaxEnded || len(d.Results) > MaxParts || len(d.Version) > maxWord:
		return malformed("a list is too long")
	case d.Follows != "" && !IsID(d.Follows), d.Apart != "" && !IsID(d.Apart):
		return malformed("it follows %q and %q", d.Follows, d.Apart)
	case d.State.Name != StateName(u.ID):
		return malformed("the state is %q", d.State.Name)
	}
	for i := range d.Ended {
		if err := d.Ended[i].checkEnded(); err != nil {
			return err
		}
	}
	rows := uint64(0)
	for i := range d.Results {
		r := &d.Results[i]
		if r.Name != PartName(dayIn(r.Name), u.Tap, u.ID, i) {
			return malformed("%q is not a result of the unit", r.Name)
		}
		if err := r.check(); err != nil {
			return err
		}
		rows += r.Rows
	}
	if rows != d.Counts.Rows {
		return malformed("the results have %d rows, and it counts %d", rows, d.Counts.Rows)
	}
	return d.State.check()
}

// dayIn is the day that the name of a Parquet file has.
func dayIn(name string) string {
	day, ok := strings.CutPrefix(name, Transactions+"day=")
	day, _, _ = strings.Cut(day, "/")
	if _, err := time.Parse(time.DateOnly, day); err != nil || !ok {
		return "none"
	}
	return day
}

// checkEnded checks an object with connections that have ended, of this unit or of one before.
func (r *Result) checkEnded() error {
	unit, n, _ := strings.Cut(strings.TrimPrefix(r.Name, Units), "/ended-")
	if k, err := strconv.Atoi(n); err != nil || k < 0 || !IsID(unit) || r.Name != EndedName(unit, k) {
		return malformed("%q has no connections that have ended", r.Name)
	}
	return r.check()
}

func (r *Result) check() error {
	if r.Size < 0 || r.Unpacked < 0 || !IsHash(r.SHA256) {
		return malformed("%q: sizes %d and %d, SHA-256 %q", r.Name, r.Size, r.Unpacked, r.SHA256)
	}
	return nil
}
