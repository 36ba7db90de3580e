package diagnosis

import (
	"encoding/json"
	"fmt"

	"github.com/rpcrdma/toolkit/analyze/state"
)

// SectionKind is the kind of the section of a Report in a saved state, SectionVersion the version of its encoding.
const (
	SectionKind    = "diagnosis"
	SectionVersion = 1
)

// Section encodes a Report. It is shown as it is, and not merged.
func (r *Report) Section() (state.Section, error) {
	b, err := json.Marshal(r)
	return state.Section{Kind: SectionKind, Version: SectionVersion, Body: b}, err
}

// FromUnits is the Report of the only unit; nil if it has none, or if there are several units.
func FromUnits(src state.Source) (rep *Report, err error) {
	units := 0
	err = src.Each(func(u *state.Unit) error {
		units++
		s := u.Section(SectionKind)
		if s == nil {
			return nil
		}
		if s.Version != SectionVersion {
			return fmt.Errorf("%w: encoding %d of a diagnosis", state.ErrVersion, s.Version)
		}
		rep = &Report{}
		if err := json.Unmarshal(s.Body, rep); err != nil {
			return fmt.Errorf("%w: diagnosis: %w", state.ErrDamaged, err)
		}
		return nil
	})
	if units != 1 {
		rep = nil
	}
	return rep, err
}
