package roce

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// NewRoute makes a Route as a FastDecoder would: the tracker finds no flow by one without its hash.
func NewRoute(src, dst netip.Addr) *Route { return newRoute(src, dst) }

// State describes what the tracker knows of each flow, for comparison.
func (t *Tracker) State() (lines []string) {
	var flows []*flow
	for _, fl := range t.flows.byKey {
		flows = append(flows, fl)
	}
	slices.SortFunc(flows, func(x, y *flow) int {
		return cmp.Or(x.key.src.Compare(y.key.src), cmp.Compare(x.key.qpn, y.key.qpn))
	})
	for _, fl := range flows {
		f := *fl
		f.plain = plainness{} // the short way's own
		f.route, f.c, f.older, f.newer, f.suspect, f.instead = nil, nil, nil, nil, nil, nil
		f.sends = nil // reported when they end
		lines = append(lines, fmt.Sprintf("%+v used %v closed %v at %d", f, fl.c.used, fl.c.closed, fl.c.closedAt))
	}
	return lines
}

// Epoch changes with each packet that is not plain.
func (t *Tracker) Epoch() uint64 { return t.epoch }
