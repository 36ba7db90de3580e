package duplicates

import (
	"cmp"
	"os"
	"sync"

	"github.com/rpcrdma/toolkit/capture"
)

// Found is a tap whose packets came more than once.
type Found struct {
	Tap    capture.Tap
	Delay  Delay
	Copies uint64 // IP packets that were copies
	Single uint64 // all other IP packets
}

// Reader is a capture.Reader, a capture.Tapper, a capture.Progresser and, as long as it has found nothing, a capture.Placer.
type Reader struct {
	capture.Reader
	look    func(capture.Tap) (Delay, bool)
	printer printer
	inner   []inner // by tap of Reader
	shifted bool    // taps have other numbers than in Reader

	mu   sync.Mutex
	list []capture.Tap
}

// inner is a tap of the Reader within.
type inner struct {
	tap, copies uint16 // as passed on; copies only with point
	point       *point
	found       Found
}

// lookWindow bounds the window of zstd while a file is looked at, since the same file is open for decoding. It is the window of zstd
// without --long. Files with a larger one are not looked at.
const lookWindow = 8 << 20

// Open is capture.Open. It looks at the beginning of each file when its turn comes, but not at standard input and pipes, which cannot
// be read twice. Files that begin with the same packets are of different capture points, even if one begins when the other has ended.
func Open(names []string, opts capture.Options) (capture.Reader, error) {
	var few capture.Options
	files := map[string]*looked{}
	look := func(name string) *looked {
		x := files[name]
		if x == nil {
			x = lookAt(name, few, len(names) > 1)
			files[name] = x
		}
		return x
	}
	opts.Same = func(a, b string) bool { return same(look(a).sums, look(b).sums) }
	r, err := capture.Open(names, opts)
	if err != nil {
		return nil, err
	}
	few = opts
	few.First, few.Window, few.Same = 0, min(cmp.Or(opts.Window, lookWindow), lookWindow), nil
	return New(r, func(tap capture.Tap) (Delay, bool) {
		d, ok := look(tap.File).found[uint16(tap.Interface)]
		return d, ok
	}), nil
}

// looked is what the beginning of a file shows.
type looked struct {
	found map[uint16]Delay // by interface
	sums  map[uint64]bool  // of its packets, if there are other files
}

// lookAt looks at a file. What cannot be opened or read has an error where it is decoded.
func lookAt(name string, opts capture.Options, several bool) *looked {
	x := &looked{found: map[uint16]Delay{}, sums: map[uint64]bool{}}
	st, err := os.Stat(name)
	if name == "-" || err != nil || !st.Mode().IsRegular() {
		return x
	}
	r, err := capture.Open([]string{name}, opts)
	if err != nil {
		return x
	}
	defer r.Close()
	taps, err := beginning(r, st.Size())
	if err != nil {
		return x
	}
	for tap, t := range taps {
		if d, ok := t.delay(); ok {
			x.found[tap] = d
		}
		if !several {
			continue
		}
		for sum := range t.at {
			x.sums[sum] = true
		}
	}
	return x
}

// New makes a Reader that asks look of each new tap of r, which is a capture.Tapper, whether its packets come more than once.
func New(r capture.Reader, look func(capture.Tap) (Delay, bool)) *Reader {
	return &Reader{Reader: r, look: look}
}

// Read implements capture.Reader.
func (r *Reader) Read(b *capture.Batch) error {
	if err := r.Reader.Read(b); err != nil {
		return err
	}
	r.learn()
	if r.shifted {
		for i := range b.Packets {
			r.assign(&b.Packets[i])
		}
	}
	return nil
}

// learn numbers new taps.
func (r *Reader) learn() {
	t, ok := r.Reader.(capture.Tapper)
	if !ok {
		return
	}
	list := t.Taps()
	if len(list) == len(r.inner) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.inner); i < len(list); i++ {
		x := inner{tap: r.number(list[i])}
		r.shifted = r.shifted || int(x.tap) != i
		if d, ok := r.look(list[i]); ok && len(r.list) < maxTaps {
			x.point, x.found = newPoint(d), Found{Tap: list[i], Delay: d}
			x.copies = r.number(list[i])
			r.shifted = true
		}
		r.inner = append(r.inner, x)
	}
}

// maxTaps is how many numbers of taps there are.
const maxTaps = 1 << 16

// number takes the next number; all beyond the last one share it.
func (r *Reader) number(tap capture.Tap) uint16 {
	if len(r.list) < maxTaps {
		r.list = append(r.list, tap)
	}
	return uint16(len(r.list) - 1)
}

// assign sets the tap of a packet.
func (r *Reader) assign(p *capture.Packet) {
	if int(p.Tap) >= len(r.inner) {
		return
	}
	x := &r.inner[p.Tap]
	p.Tap = x.tap
	if x.point == nil {
		return
	}
	f, ok := r.printer.of(p)
	switch {
	case !ok:
	case x.point.copied(f.sum, p.Time):
		p.Tap = x.copies
		x.found.Copies++
	default:
		x.found.Single++
	}
}

// Found lists the taps whose packets come more than once, as far as has been read. It must not be called during a Read.
func (r *Reader) Found() []Found {
	var list []Found
	for i := range r.inner {
		if x := &r.inner[i]; x.point != nil {
			list = append(list, x.found)
		}
	}
	return list
}

// Taps implements capture.Tapper. A tap whose packets come more than once is there twice: the second one has all copies.
func (r *Reader) Taps() []capture.Tap {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list[:len(r.list):len(r.list)] // taps are only ever appended
}

// Progress implements capture.Progresser.
func (r *Reader) Progress() (done, total int64) {
	if p, ok := r.Reader.(capture.Progresser); ok {
		return p.Progress()
	}
	return 0, 0
}

// Place implements capture.Placer. Where packets come more than once, what follows depends on what came before.
func (r *Reader) Place() (capture.Place, bool) {
	if p, ok := r.Reader.(capture.Placer); ok && !r.shifted {
		return p.Place()
	}
	return capture.Place{}, false
}
