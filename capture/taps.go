package capture

import (
	"math"
	"slices"
	"sync"
)

// taps numbers the places of capture.
type taps struct {
	mu    sync.Mutex
	list  []Tap
	lanes [][]uint16 // tap by lane and interface
	busy  []bool     // lanes in use
	files [][]string // of each lane, the first ones
}

// mostCompared is how many files of a lane a new one is compared with.
const mostCompared = 4

// take returns the lowest free lane whose files show other packets than the file of that name.
func (t *taps) take(name string, same func(a, b string) bool) int {
	lane := 0
	for ; lane < len(t.busy); lane++ {
		if !t.busy[lane] && (same == nil || !slices.ContainsFunc(t.files[lane], func(f string) bool { return same(f, name) })) {
			break
		}
	}
	if lane == len(t.busy) {
		t.busy, t.files = append(t.busy, false), append(t.files, nil)
	}
	if t.busy[lane] = true; len(t.files[lane]) < mostCompared {
		t.files[lane] = append(t.files[lane], name)
	}
	return lane
}

// free gives a lane back.
func (t *taps) free(lane int) { t.busy[lane] = false }

// note numbers the interfaces of an input up to highest, all of them, so that
// the taps of a single file are the indexes of its interfaces.
func (t *taps) note(in *input, lane, highest int) {
	if lane < len(t.lanes) && highest < len(t.lanes[lane]) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for lane >= len(t.lanes) {
		t.lanes = append(t.lanes, nil)
	}
	known := in.file.dec.ifaces()
	for i := len(t.lanes[lane]); i <= highest; i++ {
		if len(t.list) > math.MaxUint16 { // no numbers left: the last one stands for the rest
			t.lanes[lane] = append(t.lanes[lane], math.MaxUint16)
			continue
		}
		t.lanes[lane] = append(t.lanes[lane], uint16(len(t.list)))
		tap := known[i]
		tap.File, tap.Lane = in.name, lane
		t.list = append(t.list, tap)
	}
}

// of returns the tap of an interface that was noted.
func (t *taps) of(lane int, iface uint16) uint16 { return t.lanes[lane][iface] }

// get is the list so far. Taps are only ever appended, so it is not copied: a writer asks for it with every
// new interface, of which a file may have 65536.
func (t *taps) get() []Tap {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list[:len(t.list):len(t.list)]
}
