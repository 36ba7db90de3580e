package main

import (
	"slices"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/analyze/annotate"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// ticks is how many times in a delay packets are released: a packet waits longer by at most the delay divided by ticks.
const ticks = 8

// A releaser writes packets of an Annotator after a while, also while no new ones come. It goes by when packets
// were read, not by their times: the clock of a remote host may be wrong.
type releaser struct {
	mu   sync.Mutex // of the Annotator, and of what follows
	a    *annotate.Annotator
	next [ticks]uint64 // numbers of the packets that came next at the last ticks
	stop chan struct{}
	done sync.WaitGroup
}

// release starts a releaser, which does nothing if there is no delay. It takes over the functions of opt.
func release(a *annotate.Annotator, opt *decode.Options, delay time.Duration) *releaser {
	r := &releaser{a: a, stop: make(chan struct{})}
	if delay <= 0 {
		return r
	}
	opt.Observers = slices.Clone(opt.Observers)
	for i := range opt.Observers {
		if packet := opt.Observers[i].Packet; packet != nil {
			opt.Observers[i].Packet = func(v *decode.PacketView) {
				r.mu.Lock()
				defer r.mu.Unlock()
				packet(v)
			}
		}
	}
	attribute, withdrawn := opt.Transactions.Attribute, opt.Transactions.Withdrawn
	opt.Transactions.Attribute = func(tx *transaction.Transaction, p *transaction.Packet) {
		r.mu.Lock()
		defer r.mu.Unlock()
		attribute(tx, p)
	}
	opt.Transactions.Withdrawn = func(tx *transaction.Transaction) {
		r.mu.Lock()
		defer r.mu.Unlock()
		withdrawn(tx)
	}
	r.done.Go(func() {
		t := time.NewTicker(max(delay/ticks, time.Millisecond))
		defer t.Stop()
		for {
			select {
			case <-t.C:
				r.tick()
			case <-r.stop:
				return
			}
		}
	})
	return r
}

// tick releases what was there a delay ago.
func (r *releaser) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.a.Release(r.next[0])
	copy(r.next[:], r.next[1:])
	r.next[ticks-1] = r.a.Next()
}

// end stops it.
func (r *releaser) end() {
	close(r.stop)
	r.done.Wait()
}
