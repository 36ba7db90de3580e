package decode

import (
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/rpcrdma/toolkit/capture"
)

// begin prepares for trackers side by side. A quarter of the memory is set aside for what comes before groups are told that they
// hold too much: a number of batches that is enough. Their number does not depend on that of the trackers.
func (d *Decoder) begin(workers int) {
	limit := d.memory.budget.Limit()
	d.groups = &groups{of: make(map[hostPair]uint16), limit: limit - limit/4}
	for range min(max(limit>>23, 2), mostTracked) {
		d.groups.settled = append(d.groups.settled, settled{back: make([][]ending, workers)})
	}
}

// newJob makes the place of a batch.
func newJob(workers int) *grouped { return &grouped{parts: make([]part, workers)} }

// team is a run with several trackers, each with a goroutine of its own. What is done in the order of the capture is done by whoever has
// time: a tracker that has nothing to track sorts and merges. It does not read, since that may have to wait for input: other
// goroutines do, the helpers, and all the rest if a processor is idle.
type team struct {
	d      *Decoder
	r      capture.Reader
	m      *merger
	procs  int
	enough uint64     // batches for each tracker
	jobs   []*grouped // batch n has place n modulo their number
	loads  []*load    // not in use

	mu     sync.Mutex
	help   sync.Cond // something is due
	atWork int       // goroutines that do something

	// Batches that were read, sorted and merged.
	read, sorted, merged uint64
	reading, sorting     bool
	merging              bool
	ended                bool // nothing more is to be read
	last                 bool // nor to be sorted
	over                 bool // nor to be done
	members              []member
}

// member is a tracker of a team.
type member struct {
	w       *worker
	next    uint64 // batch
	waiting bool
	come    sync.Cond // the batch has
}

// Batches that each tracker should have before it, if there is memory: enough that processors seldom sleep. A single processor has no use
// for more than one, which stays in its cache.
const (
	enoughAlone  = 1
	enoughBeside = 8
)

// mostTracked is how many batches are tracked, or begun, before the first of them is merged.
const mostTracked = 8

func newTeam(d *Decoder, r capture.Reader, workers int) *team {
	d.begin(workers)
	t := &team{d: d, r: r, m: newMerger(d), procs: runtime.GOMAXPROCS(0), members: make([]member, workers)}
	t.enough = uint64(min(enoughBeside, len(d.groups.settled)))
	if t.procs == 1 {
		t.enough = enoughAlone
	}
	t.help.L = &t.mu
	for range len(d.groups.settled) + int(t.enough) {
		t.jobs = append(t.jobs, newJob(workers))
	}
	for i := range t.members {
		t.members[i].w = newWorker(d, i)
		t.members[i].come.L = &t.mu
	}
	return t
}

// runGroups is Run with several trackers.
func (d *Decoder) runGroups(r capture.Reader, workers int) error {
	t := newTeam(d, r, workers)
	var wg sync.WaitGroup
	t.atWork = workers + t.procs
	for i := range t.members {
		wg.Go(func() { t.track(&t.members[i]) })
	}
	for range t.procs {
		wg.Go(t.helper)
	}
	wg.Wait()
	d.flushFragments()
	if err := t.at(t.merged - 1).err; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// at is the place of a batch.
func (t *team) at(n uint64) *grouped { return t.jobs[n%uint64(len(t.jobs))] }

// track tracks all batches, as one of the team.
func (t *team) track(m *member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for !t.canTrack(m) {
			if t.ordered() {
				continue
			}
			m.waiting = true
			t.rest()
			m.come.Wait()
			t.atWork++
		}
		m.waiting = false
		j := t.at(m.next)
		t.mu.Unlock()
		m.w.batch(j)
		last := j.last
		t.mu.Lock()
		m.next++
		if j.left--; j.left == 0 {
			t.loads, j.load = append(t.loads, j.load), nil
			t.call()
		}
		if last {
			t.rest()
			return
		}
	}
}

// rest has a goroutine do nothing for now, so that a helper can do what is due.
func (t *team) rest() {
	t.atWork--
	t.call()
}

// call wakes a helper, if something is due and a processor is idle.
func (t *team) call() {
	if t.atWork < t.procs && t.due() {
		t.help.Signal()
	}
}

// helper reads, sorts and merges until all is over.
func (t *team) helper() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.over {
		if t.atWork <= t.procs && t.something() {
			continue
		}
		t.rest()
		t.help.Wait()
		t.atWork++
	}
	t.atWork--
}

// due reports whether there is something that a helper can do.
func (t *team) due() bool { return t.canRead() || t.canSort() || t.canMerge() }

func (t *team) canRead() bool {
	return !t.reading && !t.ended && t.read-t.merged < uint64(len(t.jobs)) && t.short()
}

func (t *team) canSort() bool { return !t.sorting && !t.last && t.sorted < t.read }

func (t *team) canMerge() bool {
	return !t.merging && t.merged < t.sorted && t.at(t.merged).left == 0
}

// short reports whether a tracker has too few batches left.
func (t *team) short() bool {
	for i := range t.members {
		if t.read-t.members[i].next < t.enough {
			return true
		}
	}
	return false
}

// something does what is due. It returns false if nothing is.
func (t *team) something() bool {
	if !t.canSort() && t.canRead() {
		t.readNext()
		return true
	}
	return t.ordered()
}

// ordered does what is due besides reading.
func (t *team) ordered() bool {
	switch {
	case t.canSort():
		t.sort()
	case t.canMerge():
		t.merge()
	default:
		return false
	}
	return true
}

func (t *team) readNext() {
	j := t.at(t.read)
	if n := len(t.loads); n > 0 {
		j.load, t.loads = t.loads[n-1], t.loads[:n-1]
	} else {
		j.load = new(load)
	}
	t.reading = true
	t.call() // somebody else may do something else
	t.mu.Unlock()
	err := t.r.Read(&j.batch)
	t.mu.Lock()
	j.err = err
	t.reading, t.ended = false, err != nil
	t.read++
}

func (t *team) sort() {
	j := t.at(t.sorted)
	t.sorting = true
	t.call()
	t.mu.Unlock()
	t.d.sort(j)
	t.mu.Lock()
	j.left = len(t.members)
	t.sorting = false
	t.sorted++
	if j.last { // what else was read is not wanted
		t.ended, t.last = true, true
	}
	t.wake()
}

// canTrack reports whether there is a batch for a tracker, and what it begins with.
func (t *team) canTrack(m *member) bool {
	return m.next < t.sorted && m.next < t.merged+uint64(len(t.d.groups.settled))
}

// wake wakes the trackers that have waited for a batch.
func (t *team) wake() {
	for i := range t.members {
		if m := &t.members[i]; m.waiting && t.canTrack(m) {
			m.waiting = false
			m.come.Signal()
		}
	}
}

func (t *team) merge() {
	j := t.at(t.merged)
	t.merging = true
	t.call()
	t.mu.Unlock()
	t.m.batch(j)
	t.mu.Lock()
	t.merging = false
	t.merged++
	t.wake()
	if j.last {
		t.over = true
		t.help.Broadcast()
	}
}
