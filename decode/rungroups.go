package decode

import (
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/rpcrdma/toolkit/capture"
)

// groupedJobs is how many batches are under way at once with groups: no more than what they bring can exceed the
// memory by much before the groups are told. It does not depend on the number of trackers, since a group gets back its
// memory so many batches later.
func (d *Decoder) groupedJobs() int { return min(max(d.memory.budget.Limit()>>23, 2), 16) }

// begin prepares for trackers side by side. A quarter of the memory is set aside for what comes before groups are told that they
// hold too much.
func (d *Decoder) begin() {
	limit := d.memory.budget.Limit()
	d.groups = &groups{of: make(map[hostPair]uint16), limit: limit - limit/4}
}

// newJob makes the place of a batch.
func (d *Decoder) newJob(workers int) *grouped {
	j := &grouped{dissected: make(chan struct{}, 1), parts: make([]part, workers), done: make(chan struct{}, 1)}
	for i := range j.worker {
		j.worker[i] = uint8(i % workers)
	}
	j.set(d.opt)
	return j
}

// runGroups is Run with several trackers: one goroutine reads, several dissect, one routes, several track, and
// the caller's merges and emits.
func (d *Decoder) runGroups(r capture.Reader, workers int) error {
	d.begin()
	jobs := d.groupedJobs()
	free := make(chan *grouped, jobs)
	order := make(chan *grouped, jobs)
	work := make(chan *grouped, jobs)
	tracked := make(chan *grouped, jobs)
	stop := make(chan struct{})
	for range jobs {
		free <- d.newJob(workers)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(work)
		defer close(order)
		for {
			var j *grouped
			select {
			case j = <-free:
			case <-stop:
				return
			}
			j.err = r.Read(&j.batch)
			if j.err != nil {
				j.dissected <- struct{}{}
				order <- j
				return
			}
			work <- j
			order <- j
		}
	})
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		wg.Go(func() {
			for j := range work {
				j.dissection.batch(&j.batch)
				j.dissected <- struct{}{}
			}
		})
	}
	in := make([]chan *grouped, workers)
	for i := range in {
		in[i] = make(chan *grouped, jobs)
		w := &worker{d: d, index: i}
		wg.Go(func() {
			for j := range in[w.index] {
				w.batch(j)
				if j.left.Add(-1) == 0 {
					j.done <- struct{}{}
				}
			}
		})
	}
	wg.Go(func() {
		defer close(tracked)
		for _, c := range in {
			defer close(c)
		}
		for j := range order {
			<-j.dissected
			d.route(j)
			j.left.Store(int32(workers))
			for _, c := range in {
				c <- j
			}
			tracked <- j
			if j.last {
				break
			}
		}
		for range order { //nolint:revive // lets the reader end
		}
	})
	var err error
	m := newMerger(d)
	for j := range tracked {
		<-j.done
		m.batch(j)
		if j.last {
			err = j.err
			close(stop)
			continue
		}
		free <- j
	}
	wg.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
