package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/state"
)

// SectionKind is the kind of the section of a Report in a saved state, SectionVersion the version of its encoding.
const (
	SectionKind    = "sessions"
	SectionVersion = 1
)

// Section encodes a Report.
func (r *Report) Section() (state.Section, error) {
	b, err := json.Marshal(r)
	return state.Section{Kind: SectionKind, Version: SectionVersion, Body: b}, err
}

// Merger makes one Report of what several taps saw. The zero value is empty.
type Merger struct {
	rep  *Report
	taps int
	at   map[string]int // places in the lists of the Report, by list and what names an entry
}

// Limits of a merged Report: sessions, clients, layouts and devices each, and notes.
const (
	mostMerged = 10_000
	mostNotes  = 64
)

// Add adds what a tap saw. numbers has the numbers of its connections in the merged result, 0 or nothing where another tap counts; nil if
// they keep theirs.
func (m *Merger) Add(u *state.Unit, numbers map[int]int) error {
	s := u.Section(SectionKind)
	if s == nil {
		return nil
	}
	if s.Version != SectionVersion {
		return fmt.Errorf("%w: encoding %d of sessions", state.ErrVersion, s.Version)
	}
	rep := &Report{}
	if err := json.Unmarshal(s.Body, rep); err != nil {
		return fmt.Errorf("%w: sessions: %w", state.ErrDamaged, err)
	}
	if !rep.whole() {
		return fmt.Errorf("%w: sessions: a part of them is missing", state.ErrDamaged)
	}
	renumber := func(list []Connection) {
		for i := range list {
			list[i].ID = numbers[list[i].ID]
		}
	}
	if numbers != nil {
		for i := range rep.Sessions {
			renumber(rep.Sessions[i].Connections)
		}
		for i := range rep.Clients {
			renumber(rep.Clients[i].Connections)
		}
		for i, n := range rep.Notes {
			if n != slotNote { // it may name connections
				rep.Notes[i] = u.Tap() + " by itself: " + n
			}
		}
	}
	for i := range rep.Sessions {
		rep.Sessions[i].Tap = u.Input().Tap
	}
	if m.taps++; m.taps == 1 {
		m.at = make(map[string]int)
		m.rep = &Report{Schema: rep.Schema, Inputs: []string{}, Sessions: []Session{}, Clients: []Client{}, Layouts: []Layout{}, Devices: []*Device{}, Notes: []string{}}
	}
	m.add(rep)
	return nil
}

// whole reports that no entry is null which Section never writes as null.
func (r *Report) whole() bool {
	for i := range r.Sessions {
		s := &r.Sessions[i]
		if none := s.Granted == nil; none != (s.Asked == nil) || none != (s.Backward == nil) || s.Callbacks == nil {
			return false
		}
	}
	for i := range r.Layouts {
		if slices.Contains(r.Layouts[i].IO, nil) {
			return false
		}
	}
	return !slices.Contains(r.Devices, nil)
}

// place is where in a list of n entries one is that another tap may have seen, too: at its end if it is new, -1 if there is no room.
func (m *Merger) place(n int, lost *uint64, key ...string) (at int, known bool) {
	k := strings.Join(key, "|")
	if at, known = m.at[k]; known {
		return at, true
	}
	if n >= mostMerged {
		*lost++
		return -1, false
	}
	m.at[k] = n
	return n, false
}

func (m *Merger) add(rep *Report) {
	r := m.rep
	r.Inputs = append(r.Inputs, rep.Inputs...)
	r.Recalls += rep.Recalls
	r.Beyond.add(rep.Beyond)
	for _, s := range rep.Sessions {
		at, known := m.place(len(r.Sessions), &r.Beyond.Sessions, "session", s.ID, s.Client, s.Server, s.Scope)
		if known {
			r.Sessions[at] = join(&r.Sessions[at], &s)
		} else if at >= 0 {
			r.Sessions = append(r.Sessions, s)
		}
	}
	for _, c := range rep.Clients {
		at, known := m.place(len(r.Clients), &r.Beyond.Clients, "client", c.Client, c.Server, c.Version)
		if known {
			r.Clients[at].Connections = union(r.Clients[at].Connections, c.Connections)
		} else if at >= 0 {
			r.Clients = append(r.Clients, c)
		}
	}
	for _, s := range rep.Servers {
		at, known := m.place(len(r.Servers), &r.Beyond.Clients, "server", s.Address, s.Owner, s.Scope, s.Client)
		if known {
			x := &r.Servers[at]
			x.Used, x.SameAs = x.Used || s.Used, cmp.Or(x.SameAs, s.SameAs)
		} else if at >= 0 {
			r.Servers = append(r.Servers, s)
		}
	}
	for _, l := range rep.Layouts {
		at, known := m.place(len(r.Layouts), &r.Beyond.Layouts, "layout", l.Server, l.Type, l.Handle)
		if known && l.Segments > r.Layouts[at].Segments {
			r.Layouts[at] = l
		} else if at >= 0 && !known {
			r.Layouts = append(r.Layouts, l)
		}
	}
	for _, d := range rep.Devices {
		if at, known := m.place(len(r.Devices), &r.Beyond.Layouts, "device", d.Server, d.ID); at >= 0 && !known {
			r.Devices = append(r.Devices, d)
		}
	}
	for _, n := range rep.Notes {
		if !slices.Contains(r.Notes, n) && len(r.Notes) < mostNotes {
			r.Notes = append(r.Notes, n)
		}
	}
}

// join is a session that two taps saw.
func join(a, b *Session) Session {
	if b.Calls > a.Calls {
		a, b = b, a
	}
	n := len(a.Connections)
	a.Connections = union(a.Connections, b.Connections)
	for _, c := range a.Connections[n:] {
		a.Calls += c.Calls
	}
	if len(a.Connections) == n+len(b.Connections) { // nothing was seen twice
		a.Replies += b.Replies
		if a.Callbacks = maps.Clone(a.Callbacks); a.Callbacks == nil {
			a.Callbacks = make(map[string]uint64)
		}
		for name, k := range b.Callbacks {
			a.Callbacks[name] += k
		}
	}
	return *a
}

func (l *Lost) add(o Lost) {
	l.Sessions += o.Sessions
	l.Clients += o.Clients
	l.Connections += o.Connections
	l.Slots += o.Slots
	l.Calls += o.Calls
	l.Layouts += o.Layouts
}

// union adds connections to those of a session or client that another tap has not seen.
func union(list, more []Connection) []Connection {
	list = slices.Clone(list)
	for _, c := range more {
		i := slices.IndexFunc(list, func(x Connection) bool {
			return x.ID == c.ID && c.ID != 0 || x.Fabric == c.Fabric && x.Client == c.Client && x.Server == c.Server && x.ID*c.ID == 0
		})
		if i < 0 {
			list = append(list, c)
		} else if list[i].ID == 0 {
			list[i].ID = c.ID
		}
	}
	var calls, bytes uint64
	for _, c := range list {
		calls += c.Calls
		bytes += c.Read + c.Written
	}
	for i := range list {
		list[i].add(&conn{}, calls, bytes)
	}
	return list
}

// Report is what all taps saw; nil if it tells no more than connections do.
func (m *Merger) Report() *Report {
	if m.taps > 1 {
		slices.Sort(m.rep.Inputs)
		slices.Sort(m.rep.Notes)
		number := func(c Connection) uint { return uint(c.ID) - 1 } // those without one come last
		byNumber := func(a, b Connection) int { return cmp.Compare(number(a), number(b)) }
		first := func(list []Connection) uint {
			if slices.SortStableFunc(list, byNumber); len(list) == 0 {
				return math.MaxUint
			}
			return number(list[0])
		}
		slices.SortStableFunc(m.rep.Sessions, func(a, b Session) int {
			return cmp.Or(cmp.Compare(first(a.Connections), first(b.Connections)), cmp.Compare(a.ID, b.ID))
		})
		slices.SortStableFunc(m.rep.Clients, func(a, b Client) int {
			return cmp.Or(cmp.Compare(first(a.Connections), first(b.Connections)), cmp.Compare(a.Client, b.Client), cmp.Compare(a.Server, b.Server))
		})
		slices.SortStableFunc(m.rep.Servers, func(a, b Server) int {
			return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Client, b.Client))
		})
		slices.SortStableFunc(m.rep.Layouts, func(a, b Layout) int {
			return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Handle, b.Handle))
		})
		slices.SortStableFunc(m.rep.Devices, func(a, b *Device) int { return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.ID, b.ID)) })
	}
	if m.rep == nil {
		return nil
	}
	if m.rep.trunks(); !m.rep.Spread() {
		return nil
	}
	return m.rep
}
