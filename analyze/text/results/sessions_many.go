package results

import (
	"fmt"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/internal/units"
)

// maxListed bounds the sessions, clients, trunks and servers that a report lists, each. Of more, it shows their sum and the unusual
// ones.
const maxListed = 16

// unevenFrom is the load of the busiest connection, in equal shares, from which a session or client is unusual.
const unevenFrom = 2

// sum is the traffic of sessions or clients together.
type sum struct {
	connections          int
	calls, read, written uint64
}

func (s *sum) add(list []session.Connection) {
	s.connections += len(list)
	for i := range list {
		s.calls += list[i].Calls
		s.read += list[i].Read
		s.written += list[i].Written
	}
}

func (s *sum) String() string {
	return fmt.Sprintf("%s, %s, %s read, %s written", units.Plural(s.connections, "connection"), units.Plural(s.calls, "call"),
		units.Size(s.read), units.Size(s.written))
}

func uneven(list []session.Connection) bool {
	calls, bytes, busy := session.Even(list)
	return busy > 1 && max(calls, bytes) >= unevenFrom
}

// unusual reports whether a session has more to show than its traffic.
func unusual(s *session.Session) bool {
	return s.Slots.After > 0 || len(s.Failed) > 0 || len(s.StatusFlags) > 0 || uneven(s.Connections)
}

// listed returns the entries that a report lists: all, or, if there are many, the unusual ones. It prints the sum of many first.
func listed[T any](p *sessionPrinter, list []T, what string, connections func(*T) []session.Connection, unusual func(*T) bool) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	if !p.short || len(list) <= maxListed {
		return all
	}
	var total sum
	var shown []*T
	more := 0
	for _, x := range all {
		total.add(connections(x))
		switch {
		case !unusual(x):
		case len(shown) < maxListed:
			shown = append(shown, x)
		default:
			more++
		}
	}
	p.printf("%s: %s\n", units.Plural(len(list), what), total.String())
	switch {
	case more > 0:
		p.printf("the first %d of %d that are unusual follow; -v shows all\n", len(shown), len(shown)+more)
	case len(shown) > 0:
		p.printf("%d of them %s unusual; -v shows all\n", len(shown), map[bool]string{true: "is", false: "are"}[len(shown) == 1])
	default:
		p.printf("none of them is unusual; -v shows all\n")
	}
	return shown
}

// limited prints lines: in a report at most maxListed different ones, and the number of the others.
func (p *sessionPrinter) limited(lines []string) {
	seen := make(map[string]bool, len(lines))
	for _, l := range lines {
		if p.short && (seen[l] || len(seen) >= maxListed) {
			continue
		}
		seen[l] = true
		p.printf("%s\n", l)
	}
	if n := len(lines) - len(seen); n > 0 && p.short {
		p.printf("%s like these; -v shows all\n", units.Plural(n, "more line"))
	}
}

// trunks prints the lines about trunked sessions.
func (p *sessionPrinter) trunks() {
	var lines []string
	for _, t := range p.rep.Trunks {
		lines = append(lines, fmt.Sprintf("\n%s: client %s, server %s, %s from %s to %s", t.Kind, safe(t.Client), safe(t.Server),
			units.Plural(len(t.Sessions), "session"), strings.Join(t.Clients, ", "), strings.Join(t.Servers, ", ")))
	}
	p.limited(lines)
}
