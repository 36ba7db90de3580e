package fabric

import "github.com/rpcrdma/toolkit/decode/rdma"

const (
	trailStart = 4
	// trailUnknown is how many packets are remembered before the first
	// acknowledgement.
	trailUnknown = 31
	trailMost    = 2048    // packets of one direction
	maxTrails    = 1 << 18 // the same, of all together
)

// sightings has the times when the last packets of a direction were seen, by PSN.
type sightings []rdma.Step

// sent are the sightings of the requests.
func (d *direction) sent() *sightings { return (*sightings)(&d.Steps) }

// note is put, which most of the time has nothing to make room for.
func (t *sightings) note(r *Recorder, psn uint32, ref rdma.Ref, span int32) {
	list := *t
	if uint32(span) >= uint32(len(list)) {
		t.put(r, psn, ref, span)
		return
	}
	x := &list[psn&uint32(len(list)-1)]
	x.PSN, x.Ref = psn, ref
}

// put notes a packet; span is how many PSNs should be remembered.
func (t *sightings) put(r *Recorder, psn uint32, ref rdma.Ref, span int32) {
	if n := len(*t); n == 0 || int(span) >= n && n < trailMost {
		size := max(2*n, trailStart)
		if n == 0 || r.steps+size-n <= maxTrails/16*r.scale {
			r.steps += size - n
			old := *t
			*t = make(sightings, size)
			for _, s := range old {
				if s.Ref.Seen() {
					(*t)[s.PSN&uint32(size-1)] = s
				}
			}
		}
	}
	(*t)[psn&uint32(len(*t)-1)] = rdma.Step{PSN: psn, Ref: ref}
}

// get is when a PSN was last seen; the zero Ref if that is not remembered.
func (t *sightings) get(psn uint32) rdma.Ref {
	if len(*t) == 0 {
		return rdma.Ref{}
	}
	if s := &(*t)[psn&uint32(len(*t)-1)]; s.PSN == psn {
		return s.Ref
	}
	return rdma.Ref{}
}

// after is the first packet behind psn of the next few that was seen since at.
func (t *sightings) after(psn uint32, at rdma.Ref) (first rdma.Ref) {
	for i := uint32(1); i <= 16; i++ {
		if ref := t.get(rdma.PSNAdd(psn, i)); ref.Seen() && ref.Number >= at.Number && (!first.Seen() || ref.Number < first.Number) {
			first = ref
		}
	}
	return first
}

func (t *sightings) reset(r *Recorder) {
	r.steps -= len(*t)
	*t = nil
}

// hole is a range of PSNs, or bytes of a stream, that have not been seen, although later ones
// have.
type hole struct {
	start uint64
	count uint64
	ref   rdma.Ref // the packet behind it
	value uint32   // iWARP: timestamp of that packet
	used  bool     // an episode names it
}

// maxHoles is how many holes of a direction are remembered.
const maxHoles = 16

// holes are in the order of the capture.
type holes struct{ list []hole }

func (h *holes) add(x hole) {
	if len(h.list) == maxHoles {
		h.list = h.list[:copy(h.list, h.list[1:])]
	}
	h.list = append(h.list, x)
}

// find returns the hole that a PSN is in.
func (h *holes) find(psn uint32) *hole {
	for i := len(h.list) - 1; i >= 0; i-- {
		if d := rdma.PSNDiff(psn, uint32(h.list[i].start)); d >= 0 && uint64(d) < h.list[i].count {
			return &h.list[i]
		}
	}
	return nil
}

// take removes a PSN from its hole, unless an episode names the hole.
func (h *holes) take(psn uint32) {
	g := h.find(psn)
	if g == nil || g.used {
		return
	}
	n := uint64(rdma.PSNDiff(psn, uint32(g.start)))
	rest := hole{start: uint64(rdma.PSNAdd(psn, 1)), count: g.count - n - 1, ref: g.ref}
	switch {
	case n == 0:
		g.start, g.count = rest.start, rest.count
	case rest.count > 0 && len(h.list) < maxHoles:
		g.count = n
		h.list = append(h.list, rest)
	default:
		g.count = n
	}
	kept := h.list[:0]
	for _, x := range h.list {
		if x.count > 0 {
			kept = append(kept, x)
		}
	}
	h.list = kept
}

// before forgets the holes up to a PSN, and returns how many packets were in those
// that no episode names.
func (h *holes) before(psn uint32) (n uint64) {
	kept := h.list[:0]
	for _, x := range h.list {
		if rdma.PSNDiff(uint32(x.start+x.count-1)&(1<<24-1), psn) > 0 {
			kept = append(kept, x)
		} else if !x.used {
			n += x.count
		}
	}
	h.list = kept
	return n
}
