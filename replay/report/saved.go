package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Saved is what is read of a Report in JSON, to compare another run with it.
type Saved struct {
	Schema     string           `json:"schema"`
	Sources    []string         `json:"sources"`
	Took       time.Duration    `json:"took_ns"`
	Setup      Setup            `json:"setup"`
	Planned    int              `json:"planned"`
	Sent       int              `json:"sent"`
	Bytes      uint64           `json:"bytes"`
	Totals     map[string]int   `json:"verdicts"`
	Ops        []SavedOperation `json:"operations"`
	Mismatches []SavedMismatch  `json:"mismatches"`
	More       int              `json:"more_mismatches"`
	ReadBack   *struct {
		Wrong []SavedFinding `json:"wrong"`
	} `json:"read_back"`
}

// SavedOperation is an OperationReport.
type SavedOperation struct {
	Operation string         `json:"operation"`
	Count     int            `json:"count"`
	Outcomes  map[string]int `json:"verdicts"`
	Live      Spread         `json:"live"`
}

// SavedMismatch is a Mismatch.
type SavedMismatch struct {
	Op      int      `json:"op"`
	Clone   int      `json:"clone"`
	What    string   `json:"what"`
	Verdict string   `json:"verdict"`
	Reasons []string `json:"reasons"`
	Codes   []string `json:"codes"`
}

// SavedFinding is a Finding.
type SavedFinding struct {
	Path string `json:"path"`
	Code string `json:"code"`
}

// maxSaved is how long a Report may be that is read.
const maxSaved = 64 << 20

// Load reads a Report in JSON.
func Load(r io.Reader) (*Saved, error) { return load(r, maxSaved) }

func load(r io.Reader, most int64) (*Saved, error) {
	var s Saved
	limited := &io.LimitedReader{R: r, N: most}
	if err := json.NewDecoder(limited).Decode(&s); err != nil {
		if limited.N <= 0 {
			return nil, fmt.Errorf("it is longer than %d MB", most>>20)
		}
		return nil, fmt.Errorf("no report of a replay in JSON: %w", err)
	}
	if s.Schema != Schema {
		return nil, fmt.Errorf("its schema is %q: want %s, as run --report writes it", s.Schema, Schema)
	}
	return &s, nil
}

// sameAs is what a mismatch has in common with one of another run: the texts of reasons may differ in numbers.
func sameAs(op int, v string, codes []string) string {
	return fmt.Sprint(op, v, codes)
}

// Accept marks the differences that an earlier run had, too.
func (r *Report) Accept(earlier *Saved) {
	known := map[string]bool{}
	for i := range earlier.Mismatches {
		m := &earlier.Mismatches[i]
		known[sameAs(m.Op, m.Verdict, m.Codes)] = true
	}
	for i := range r.Mismatches {
		m := &r.Mismatches[i]
		var codes []string
		for _, c := range m.Codes {
			codes = append(codes, c.String())
		}
		if !m.Verdict.Fine() && known[sameAs(m.Op, m.Verdict.String(), codes)] {
			m.Accepted = true
			r.Accepted++
		}
	}
	if r.ReadBack == nil || earlier.ReadBack == nil {
		return
	}
	for i := range r.ReadBack.Wrong {
		f := &r.ReadBack.Wrong[i]
		f.Accepted = slices.Contains(earlier.ReadBack.Wrong, SavedFinding{f.Path, f.Code.String()})
	}
}
