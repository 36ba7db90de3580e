package decode

import (
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// job is a batch on its way through the pipeline.
type job struct {
	batch capture.Batch
	dissection
	stage stage
	err   error
}

type stage uint8

const (
	toDissect stage = iota
	dissecting
	toTrack // or there is an error
)

// pipeline is a run with one tracker. The goroutine of Run tracks. Other ones, the helpers, do what comes before and
// after: they read, dissect and consume, whatever is due. If they do not keep up, the tracking goroutine dissects and
// consumes, too, so that no processor is idle while another one has too much to do. It does not read, since that may have to
// wait for input.
type pipeline struct {
	d     *Decoder
	r     capture.Reader
	procs int
	jobs  int // batches

	mu      sync.Mutex
	help    sync.Cond // something is due
	track   sync.Cond // what tracker waits for has come
	tracker tracking
	helpers int // that do something

	free    []*job
	order   queue[*job] // under way, in the order in which they were read
	reading bool        // a helper reads
	ended   bool        // nothing more is to be read
	lists   queue[parcel]
	busy    bool     // somebody consumes
	back    []parcel // consumed
	over    bool     // nothing more is to be done
}

// tracking is what the tracking goroutine does.
type tracking uint8

const (
	tracks tracking = iota
	waitsForBatch
	waitsForConsumer
)

const (
	// Batches under way at once: enough for a helper to consume for a while, or to sleep and be woken, before the
	// tracker has none left. With one processor more of them would only fill its cache.
	jobsAlone  = 2
	jobsBeside = 16
	// memoryPerJob is how much Options.Memory has to be for each batch, which it does not count.
	memoryPerJob = 2 << 20
	// fewBatches is how many batches under way are so few that the tracking goroutine will soon wait for the next one: it
	// is read first then, and who dissects is seen later.
	fewBatches = 2
	// What a helper prefers to reading, if there are batches: so that there is room when it does read.
	someLists = 3
)

func newPipeline(d *Decoder, r capture.Reader) *pipeline {
	p := &pipeline{d: d, r: r, procs: runtime.GOMAXPROCS(0), jobs: jobsBeside}
	if p.procs == 1 {
		p.jobs = jobsAlone
	}
	p.jobs = min(p.jobs, max(d.memory.budget.Limit()/memoryPerJob, 2))
	p.help.L, p.track.L = &p.mu, &p.mu
	for range p.jobs {
		j := new(job)
		j.set(&d.opt, &d.observer)
		p.free = append(p.free, j)
	}
	return p
}

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
	p := newPipeline(d, r)
	if d.opt.Concurrent && p.procs > 1 && d.memory.budget.Limit() >= leastHandover {
		d.handover = newHandover(p, d.memory.transactions)
	}
	var helpers sync.WaitGroup
	p.helpers = p.procs
	for range p.procs {
		helpers.Go(p.helper)
	}
	err := p.run()
	if flush {
		d.Flush()
	}
	if d.handover != nil {
		d.handover.finish()
		d.handover = nil
	}
	p.mu.Lock()
	p.over = true
	p.help.Broadcast()
	p.mu.Unlock()
	helpers.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// run tracks until the input ends, or the Decoder is stopped.
func (p *pipeline) run() error {
	d, h := p.d, p.d.handover
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		next := toDissect // what the first batch needs
		if p.order.len() > 0 {
			next = p.order.first().stage
		}
		switch {
		case next == toTrack:
			j := p.order.take()
			if j.err != nil {
				return j.err
			}
			p.mu.Unlock()
			d.track(&j.batch, &j.dissection)
			p.mu.Lock()
			if d.stop.Load() {
				p.ended = true
				return nil
			}
			p.free = append(p.free, j)
			if p.lists.len() == 0 {
				h.send() // what there is should not wait for the list to be full
			}
			p.call()
		case next == toDissect && p.order.len() > 0:
			p.dissect(p.order.first())
		case h.send(): // before it waits
		case p.consume():
		default:
			p.wait(waitsForBatch)
		}
	}
}

// wait lets the tracking goroutine wait.
func (p *pipeline) wait(what tracking) {
	p.tracker = what
	p.call()
	p.track.Wait()
	p.tracker = tracks
}

// call wakes a helper, if something is due and a processor is idle. While the tracker is at work one is woken only when
// there is much to do: to sleep and to wake take as long as dozens of transactions.
func (p *pipeline) call() {
	little := p.tracker == tracks && p.helpers == 0 && p.order.len() > p.jobs/2 && p.lists.len() < someLists
	if !little && p.working() < p.procs && p.due() {
		p.helpers++
		p.help.Signal()
	}
}

// working is how many goroutines do something.
func (p *pipeline) working() int {
	if p.tracker == tracks {
		return p.helpers + 1
	}
	return p.helpers
}

// due reports whether there is something that a helper can do.
func (p *pipeline) due() bool {
	return len(p.free) > 0 && !p.reading && !p.ended || p.lists.len() > 0 && !p.busy
}

// helper reads, dissects and consumes until all is over.
func (p *pipeline) helper() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.over {
		enough := p.order.len() >= fewBatches // for the tracker
		switch {
		case p.helpers > 1 && p.working() > p.procs: // the tracker waited when this one was woken
		case enough && p.lists.len() >= someLists && p.consume(),
			p.order.len() > fewBatches && p.dissectNext(),
			p.read(), p.dissectNext(), p.consume():
			continue
		}
		p.helpers--
		p.help.Wait()
	}
}

// read reads a batch. It dissects it as well, while its bytes are in the cache of this processor, unless the next one should
// be read first. It returns false if nothing is to be read.
func (p *pipeline) read() bool {
	last := len(p.free) - 1
	if last < 0 || p.reading || p.ended {
		return false
	}
	j := p.free[last]
	p.free = p.free[:last]
	p.reading, j.stage = true, toDissect
	p.mu.Unlock()
	j.err = p.r.Read(&j.batch)
	p.mu.Lock()
	p.reading = false
	p.order.add(j)
	switch {
	case j.err != nil:
		p.ended = true
		j.stage = toTrack
		p.came(j)
	case p.procs > 1 && p.order.len() <= fewBatches && len(p.free) > 0:
		p.came(j)
	default:
		p.call() // the next one can be read
		p.dissect(j)
	}
	return true
}

// dissectNext dissects the first batch that nobody dissects. It returns false if there is none.
func (p *pipeline) dissectNext() bool {
	for _, j := range p.order.all() {
		if j.stage == toDissect {
			p.dissect(j)
			return true
		}
	}
	return false
}

func (p *pipeline) dissect(j *job) {
	j.stage = dissecting
	p.mu.Unlock()
	if p.procs > 1 {
		j.dissection.batch(&j.batch)
	} else {
		j.begin() // track does the rest
	}
	p.mu.Lock()
	j.stage = toTrack
	p.came(j)
}

// came tells the tracking goroutine of a batch, if it waits for that one.
func (p *pipeline) came(j *job) {
	if p.tracker == waitsForBatch && p.order.first() == j {
		p.track.Signal()
	}
}

// consume has the consumer look at a list of transactions. It returns false if there is none, or if somebody else does that.
func (p *pipeline) consume() bool {
	if p.busy || p.lists.len() == 0 {
		return false
	}
	x := p.lists.take()
	p.busy = true
	p.mu.Unlock()
	for i, tx := range x.list {
		transaction.Prefetch(x.list[i:]) // another processor may have made them
		p.d.emit(tx)
		tx.Release()
	}
	p.mu.Lock()
	p.busy = false
	p.back = append(p.back, x)
	if p.tracker == waitsForConsumer {
		p.track.Signal()
	}
	return true
}
