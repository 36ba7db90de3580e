package decode

import (
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/rpcrdma/toolkit/capture"
)

// job is a batch on its way through the pipeline.
type job struct {
	batch capture.Batch
	dissection
	ready chan struct{}
	err   error
}

// Batches under way at once: one that is read, one that is tracked, and one for each goroutine that dissects. More would
// not fit into the caches.
const (
	minJobs = 4
	maxJobs = 8
)

// Run decodes all packets of r. Reading, dissecting and tracking run in parallel; the results do not depend
// on that. It returns the error that ended the reading, nil at the end of the input.
func (d *Decoder) Run(r capture.Reader) error {
	if n := d.Trackers(); n > 0 {
		return d.runGroups(r, n)
	}
	return d.decode(r, true)
}

// decode is Run, or Feed without the flush at the end.
func (d *Decoder) decode(r capture.Reader, flush bool) error {
	if d.opt.Concurrent {
		d.handover = newHandover(d.emit, d.tx.Recycle, d.memory.transactions)
	}
	jobs := d.jobs()
	free := make(chan *job, jobs)
	order := make(chan *job, jobs)
	work := make(chan *job, jobs)
	stop := make(chan struct{})
	for range jobs {
		j := &job{ready: make(chan struct{}, 1)}
		j.set(d.opt)
		free <- j
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer close(work)
		defer close(order)
		for {
			var j *job
			select {
			case j = <-free:
			case <-stop:
				return
			}
			j.err = r.Read(&j.batch)
			if j.err != nil {
				j.ready <- struct{}{}
				order <- j
				return
			}
			work <- j
			order <- j
		}
	}()
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range work {
				j.dissection.batch(&j.batch)
				j.ready <- struct{}{}
			}
		}()
	}
	var err error
	for j := range order {
		<-j.ready
		if j.err != nil {
			err = j.err
			break
		}
		d.track(&j.batch, &j.dissection)
		if d.handover != nil {
			d.handover.send() // a live input must not wait for the next batch
		}
		if d.stop.Load() {
			break
		}
		free <- j
	}
	close(stop)
	for range order { //nolint:revive // lets the reader end
	}
	wg.Wait()
	if flush {
		d.Flush()
	}
	if d.handover != nil {
		d.handover.finish()
		d.handover = nil
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
