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
func FromUnits(src state.Source) (rep *Report, note string, err error) {
	n, units := 0, 0
	err = src.Each(func(u *state.Unit) error {
		units++
		s := u.Section(SectionKind)
		if s == nil {
			return nil
		}
		if s.Version != SectionVersion {
			return fmt.Errorf("%w: encoding %d of sessions", state.ErrVersion, s.Version)
		}
		if n++; n > 1 || units > 1 {
			rep = nil
			return nil
		}
		rep = &Report{}
		if err := json.Unmarshal(s.Body, rep); err != nil {
			return fmt.Errorf("%w: sessions: %w", state.ErrDamaged, err)
		}
		return nil
	})
	if err != nil || units == 1 || n == 0 {
		return rep, "", err
	}
	return nil, NotMerged(n), nil
}

// NotMerged is the note of a result of several taps of which n have a Report.
func NotMerged(n int) string {
	return fmt.Sprintf("%d of the taps saw sessions worth a table: sessions are not merged, a report of each state shows them", n)
}
