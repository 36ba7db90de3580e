package planner

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// count fills the summary with what is in the tables.
func (b *Builder) count() {
	s := b.summary
	s.Reasons, s.NotReplayed = sorted(b.reasons), sorted(b.notReplay)
	for i := range b.t.Servers {
		if calls := func(c plan.Connection) bool { return c.Server == i+1 && c.Ops > 0 }; i < maxCompared && slices.ContainsFunc(b.t.Connections, calls) {
			s.Servers = append(s.Servers, b.t.Servers[i].Addr)
		}
		s.Same = append(s.Same, b.t.Servers[i].Same...)
	}
	notes := map[plan.Reason]int{}
	for o := range b.space.all() {
		s.Objects.Add(o.NameClass)
		for _, n := range o.Notes {
			notes[plan.Reason{Class: plan.Inferred, Reason: n.String()}]++
		}
		switch o.Origin {
		case plan.Created:
			s.Created++
		case plan.Before:
			s.Prepared++
			if o.Type == "file" {
				s.Sizes.Add(o.SizeClass)
				s.PreparedBytes += o.Size
			}
			for _, e := range o.Content {
				s.KnownBytes += e.Length
			}
		}
	}
	s.Notes = sorted(notes)
	for i := range b.t.Clients {
		s.States.Add(b.t.Clients[i].Class)
	}
	for i := range b.t.Sessions {
		s.States.Add(b.t.Sessions[i].Class)
	}
	for i := range b.t.States {
		s.States.Add(b.t.States[i].Class)
	}
	for l := range b.limits {
		s.Limits = append(s.Limits, l)
	}
	slices.Sort(s.Limits)
}

func sorted(m map[plan.Reason]int) []plan.Reason {
	list := make([]plan.Reason, 0, len(m))
	for r, n := range m {
		r.Count = n
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b plan.Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// count adds one to the number of a thing that the capture has named.
func count[K ~string](m map[K]int, k K) {
	if _, ok := m[k]; !ok && len(m) >= maxCounted {
		k = otherName
	}
	m[k]++
}

// countReason is count for reasons.
func countReason(m map[plan.Reason]int, r plan.Reason) {
	if _, ok := m[r]; !ok && len(m) >= maxCounted {
		r.Reason = otherName
	}
	m[r]++
}

// maxCounted is how many different names of a kind the summary counts separately.
const maxCounted = 256

// otherName stands for the rest.
const otherName = "other"
