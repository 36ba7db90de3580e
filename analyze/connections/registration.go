package connections

import (
	"fmt"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/units"
)

// RegistrationMode is how a requester seems to open memory to the responder (the modes of Talpey 2008): a guess from the handles and
// segments that its calls offer.
type RegistrationMode uint8

// Modes.
const (
	RegistrationUnknown     RegistrationMode = iota // too few segments, or none of the patterns below
	RegistrationInline                              // no call offers memory
	RegistrationFRWR                                // the low byte of a handle counts with each use
	RegistrationAllPhysical                         // one handle, segments that are pages apart
	RegistrationPersistent                          // the same few handles again and again
	RegistrationPages                               // a handle for each page
	RegistrationPerCall                             // handles that do not come back: regions or windows of a call
	registrationModes
)

var registrationNames = [registrationModes]string{"unknown", "inline", "frwr", "all_physical", "persistent", "pages", "per_call"}

// String is the word of JSON.
func (m RegistrationMode) String() string { return registrationNames[m] }

// Registration is the guess, and what it rests on.
type Registration struct {
	Mode     RegistrationMode
	Calls    uint64 // that an end has sent with a transport header
	Offers   uint64 // those that offer memory
	Segments uint64
	Handles  uint64 // different ones, at most maxHandles
	Counted  uint64 // segments whose handle differs from its last use only in the low byte, by one
	Again    uint64 // segments whose handle differs from its last use at most in the low byte
	Pages    uint64 // segments of at most a page
}

const (
	pageSize     = 4096
	maxHandles   = 1 << 10
	fewSegments  = 8  // fewer say nothing
	manySegments = 64 // a requester with a pool of regions has used some again by then
	inlineCalls  = 64 // this many calls without memory make the mode inline
	manyUses     = 4  // a handle that is used so often, on average, is persistent
	keyBits      = 8  // of a handle that the consumer of a region may choose
	mostCounting = 10 // nine of ten
)

// handles is what is remembered of the memory that an end offers.
type handles struct {
	r    Registration
	last map[uint32]uint32 // by the upper bits of a handle: the handle as last used
	seen map[uint32]struct{}
	long bool // a chunk has several segments that are not next to each other under one handle
	room *int // how many more entries last and seen may have, with those of other ends
	full bool // there was none for one more
}

// takes reports whether there is room for one more entry, and takes it.
func (h *handles) takes() bool {
	if *h.room == 0 {
		h.full = true
		return false
	}
	*h.room--
	return true
}

// call counts the memory that a call offers.
func (h *handles) call(x *rpcrdma.Header) {
	h.r.Calls++
	n := h.r.Segments
	for i := range x.Reads {
		h.segment(&x.Reads[i].Segment)
	}
	for i := range x.Call {
		h.segment(&x.Call[i].Segment)
	}
	for _, c := range x.Writes {
		h.chunk(c)
	}
	h.chunk(x.Reply)
	if h.r.Segments > n {
		h.r.Offers++
	}
}

func (h *handles) chunk(c rpcrdma.WriteChunk) {
	for i := range c {
		h.segment(&c[i])
		if i > 0 && c[i].Handle == c[i-1].Handle && c[i].Offset != c[i-1].Offset+uint64(c[i-1].Length) {
			h.long = true
		}
	}
}

func (h *handles) segment(s *rpcrdma.Segment) {
	if h.seen == nil {
		h.seen, h.last = make(map[uint32]struct{}), make(map[uint32]uint32)
	}
	h.r.Segments++
	if s.Length <= pageSize {
		h.r.Pages++
	}
	if _, ok := h.seen[s.Handle]; !ok && len(h.seen) < maxHandles && h.takes() {
		h.seen[s.Handle] = struct{}{}
		h.r.Handles++
	}
	index := s.Handle >> keyBits
	before, ok := h.last[index]
	if ok {
		h.r.Again++
		if byte(s.Handle) == byte(before)+1 {
			h.r.Counted++
		}
	}
	if ok || len(h.last) < maxHandles && h.takes() {
		h.last[index] = s.Handle
	}
}

// guess names the mode.
func (h *handles) guess() Registration {
	r := h.r
	switch {
	case r.Segments == 0 && r.Calls >= inlineCalls:
		r.Mode = RegistrationInline
	case r.Segments < fewSegments, h.full:
	case r.Handles == 1 && h.long:
		r.Mode = RegistrationAllPhysical
	case r.Handles*manyUses <= r.Segments && r.Handles < maxHandles:
		r.Mode = RegistrationPersistent
	case r.Again*2 >= r.Segments && r.Counted*mostCounting >= r.Again*(mostCounting-1):
		r.Mode = RegistrationFRWR
	case r.Segments >= 2*r.Offers && r.Pages == r.Segments:
		r.Mode = RegistrationPages
	case r.Segments >= manySegments && r.Again*mostCounting < r.Segments:
		r.Mode = RegistrationPerCall
	}
	return r
}

// reason is why the mode was chosen; empty if nothing is known.
func (r *Registration) reason() string {
	switch r.Mode {
	case RegistrationInline:
		return fmt.Sprintf("none of %s offers memory", units.Plural(r.Calls, "call"))
	case RegistrationFRWR:
		return fmt.Sprintf("the low byte of a handle counts up with each use, in %d of %d", r.Counted, r.Again)
	case RegistrationAllPhysical:
		return fmt.Sprintf("one handle for %s, which are not next to each other", units.Plural(r.Segments, "segment"))
	case RegistrationPersistent:
		return fmt.Sprintf("%s for %s: the same memory stays open", units.Plural(r.Handles, "handle"), units.Plural(r.Segments, "segment"))
	case RegistrationPages:
		return fmt.Sprintf("each of %s is at most a page long, in %s", units.Plural(r.Segments, "segment"), units.Plural(r.Offers, "call"))
	case RegistrationPerCall:
		return fmt.Sprintf("%s for %s, hardly any twice (regions, or memory windows)", units.Plural(r.Handles, "handle"), units.Plural(r.Segments, "segment"))
	}
	return ""
}

// text is the guess for people; empty if there is none.
func (r *Registration) text() string {
	name := [registrationModes]string{
		"", "none, pure inline (mode 0)", "fast registration (FRWR), or memory windows of type 2", "all of physical memory (mode 5)", "persistent", "page by page (old modes)", "for each call",
	}[r.Mode]
	if name == "" {
		return ""
	}
	return fmt.Sprintf("registers memory: probably %s: %s", name, r.reason())
}

func (r *Registration) code(k *state.Coder) {
	state.Enum(k, &r.Mode, int(registrationModes))
	for _, v := range [...]*uint64{&r.Calls, &r.Offers, &r.Segments, &r.Handles, &r.Counted, &r.Again, &r.Pages} {
		state.Number(k, v)
	}
}
