package plan

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Counts are numbers by class.
type Counts struct {
	Exact       int `json:"exact"`
	Inferred    int `json:"inferred"`
	Synthesised int `json:"synthesised"`
	Impossible  int `json:"impossible"`
}

// Add counts one more of a class.
func (n *Counts) Add(c Class) {
	switch c {
	case Inferred:
		n.Inferred++
	case Synthesised:
		n.Synthesised++
	case Impossible:
		n.Impossible++
	default:
		n.Exact++
	}
}

// Reason is a reason and how often it applies.
type Reason struct {
	Class  Class  `json:"class"`
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Summary counts what a plan contains, and what of it was not in the capture.
type Summary struct {
	Transactions int `json:"transactions"`
	// Ops counts those of the plan; Impossible those that are not in it.
	Ops Counts `json:"ops"`
	// Objects are by how their names are known, Sizes those of files to be
	// prepared, States are clients, sessions, opens, locks and delegations.
	Objects Counts `json:"objects"`
	Sizes   Counts `json:"sizes"`
	States  Counts `json:"states"`
	// Reasons say why ops are not exact.
	Reasons []Reason `json:"reasons"`
	// NotReplayed are transactions that are left out on purpose.
	NotReplayed []Reason `json:"not_replayed"`
	// Notes are what is strange about objects.
	Notes      []Reason        `json:"notes,omitempty"`
	Programs   map[string]int  `json:"programs"`   // ops by "nfs4.1"
	Procedures map[string]int  `json:"procedures"` // ops by "READ"
	Roles      map[Role]int    `json:"roles"`
	Edges      map[DepKind]int `json:"edges"`
	Modifying  int             `json:"modifying"` // ops that may change something

	Prepared      int    `json:"prepared"`       // objects to prepare
	PreparedBytes uint64 `json:"prepared_bytes"` // their sizes
	KnownBytes    uint64 `json:"known_bytes"`    // of these the content is in the side file
	Created       int    `json:"created"`        // objects that the workload makes
	ReadBytes     uint64 `json:"read_bytes"`
	WriteBytes    uint64 `json:"write_bytes"`
	// Servers are addresses of the first servers that have calls. Same tells which
	// further addresses belong to one, and why.
	Servers []string     `json:"servers,omitempty"`
	Same    []SameServer `json:"same_servers,omitempty"`
	// Limits that were reached.
	Limits []string `json:"limits,omitempty"`
}

// Text writes the summary of a plan for people.
func (h *Header) Text(w io.Writer) error {
	s := h.Summary
	if s == nil {
		s = new(Summary)
	}
	p := &printer{w: w}
	total := s.Ops.Exact + s.Ops.Inferred + s.Ops.Synthesised
	p.f("%d transactions: %d to replay over %v", s.Transactions, total, time.Duration(h.Duration).Round(time.Millisecond))
	if len(h.Fabrics) > 0 {
		p.f(", from %v", join(h.Fabrics))
	}
	p.f("\n")
	for _, x := range s.Same {
		p.f("%s\n", x)
	}
	if len(s.Servers) > 1 {
		p.f("several servers, whose files are prepared apart: %s\n", join(s.Servers))
	}
	if s.Transactions == 0 && s.Ops == (Counts{}) {
		p.f("There is nothing to replay: the capture has no calls of RPC that could be found.\n")
		for _, l := range s.Limits {
			p.f("limit reached: %s\n", l)
		}
		return p.err
	}
	p.counts("operations", s.Ops)
	for _, r := range s.Reasons {
		p.f("  %6d  %s: %s\n", r.Count, r.Class, r.Reason)
	}
	left := 0
	for _, r := range s.NotReplayed {
		left += r.Count
	}
	if left > 0 {
		p.f("left out on purpose: %d\n", left)
		for _, r := range s.NotReplayed {
			p.f("  %6d  %s\n", r.Count, r.Reason)
		}
	}
	if total == 0 {
		p.f("There is nothing to replay: all transactions are left out, for the reasons above.\n")
	}
	p.counts("names of objects", s.Objects)
	p.counts("sizes of files", s.Sizes)
	p.counts("clients, sessions, states", s.States)
	p.f("to prepare: %d objects, %d bytes, of which %d with known content; the workload makes %d\n",
		s.Prepared, s.PreparedBytes, s.KnownBytes, s.Created)
	for _, r := range s.Notes {
		p.f("  %6d  %s\n", r.Count, r.Reason)
	}
	p.f("programs: %s\n", numbers(s.Programs))
	p.f("procedures: %s\n", numbers(s.Procedures))
	p.f("roles: %s\n", numbers(s.Roles))
	p.f("dependencies: %s\n", numbers(s.Edges))
	p.f("%d may change the server; %d bytes read, %d written, data %s\n", s.Modifying, s.ReadBytes, s.WriteBytes, h.Payload)
	for _, l := range s.Limits {
		p.f("limit reached: %s\n", l)
	}
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) counts(what string, n Counts) {
	if n == (Counts{}) {
		return
	}
	p.f("%s: %d exact, %d inferred, %d synthesised, %d impossible\n", what, n.Exact, n.Inferred, n.Synthesised, n.Impossible)
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func join(list []string) string {
	s := ""
	for i, x := range list {
		if i > 0 {
			s += ", "
		}
		s += x
	}
	return s
}

// numbers lists a map, the largest number first.
func numbers[K ~string](m map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
	s := ""
	for i, k := range keys {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%d %s", m[k], string(k))
	}
	if s == "" {
		return "none"
	}
	return s
}
