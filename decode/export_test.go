package decode

import "github.com/rpcrdma/toolkit/capture"

// EvictAll gives up one thing of each part.
func (d *Decoder) EvictAll() bool {
	m := &d.memory
	a, b, c := m.transactions.Evict(), m.connections.Evict(), m.fragments.Evict()
	return a || b || c
}

// Remembered is how many connections of RoCE are remembered.
func (d *Decoder) Remembered() int { return d.roce.Connections() }

// Lap, if set, is called by RunInTurn before a batch, without a name, and after each stage of it.
var Lap func(stage string)

// RunInTurn is Run with trackers side by side, of which each takes its turn on the calling goroutine. It returns the
// most that all groups together held between two batches. limit replaces the memory below which groups are not used.
func (d *Decoder) RunInTurn(r capture.Reader, trackers, limit int) (peak int) {
	before := leastGrouped
	leastGrouped = limit
	defer func() { leastGrouped = before }()
	n := min(trackers, d.Trackers())
	if n == 0 {
		panic("a single tracker")
	}
	d.begin(n)
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = newWorker(d, i)
	}
	jobs := make([]*grouped, len(d.groups.settled))
	m := newMerger(d)
	lap := func(stage string) {
		if Lap != nil {
			Lap(stage)
		}
	}
	for i := 0; ; i++ {
		j := jobs[i%len(jobs)]
		if j == nil {
			j = newJob(n)
			j.load = new(load)
			jobs[i%len(jobs)] = j
		}
		lap("")
		j.err = r.Read(&j.batch)
		lap("read")
		d.sort(j)
		lap("sort")
		for _, w := range workers {
			w.batch(j)
		}
		lap("track")
		m.batch(j)
		lap("merge")
		used := 0
		for _, u := range j.used {
			used += u
		}
		peak = max(peak, used)
		if j.last {
			return peak
		}
	}
}
