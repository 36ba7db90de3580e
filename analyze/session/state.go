package session

import (
	"encoding/json"
	"fmt"

	"github.com/rpcrdma/toolkit/analyze/state"
)

// SectionKind is the kind of the section of a Report in a saved state, SectionVersion the version of its encoding.
const (
	SectionKind    = "sessions"
	SectionVersion = 1
)

// Section encodes a Report. It is shown as it is, and not merged.
func (r *Report) Section() (state.Section, error) {
	b, err := json.Marshal(r)
	return state.Section{Kind: SectionKind, Version: SectionVersion, Body: b}, err
}

// FromUnits is the Report of the only unit; nil if it has none. If there are several units, note says that their
// sessions are not shown.
func FromUnits(units []*state.Unit) (rep *Report, note string, err error) {
	n := 0
	for _, u := range units {
		s := u.Section(SectionKind)
		if s == nil {
			continue
		}
		if s.Version != SectionVersion {
			return nil, "", fmt.Errorf("%w: encoding %d of sessions", state.ErrVersion, s.Version)
		}
		n++
		rep = &Report{}
		if err := json.Unmarshal(s.Body, rep); err != nil {
			return nil, "", fmt.Errorf("%w: sessions: %w", state.ErrDamaged, err)
		}
	}
	if len(units) == 1 || n == 0 {
		return rep, "", nil
	}
	return nil, fmt.Sprintf("%d of the taps saw sessions worth a table: sessions are not merged, a report of each state shows them", n), nil
}
