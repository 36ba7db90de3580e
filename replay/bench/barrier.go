package bench

import "sync"

// barrier lets clients begin and end each part of a job together.
type barrier struct {
	mu      sync.Mutex
	passed  sync.Cond
	clients int
	waiting int
	round   int
}

func newBarrier(clients int) *barrier {
	b := &barrier{clients: clients}
	b.passed.L = &b.mu
	return b
}

// wait returns when all clients that have not left wait.
func (b *barrier) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	round := b.round
	b.waiting++
	b.pass()
	for round == b.round {
		b.passed.Wait()
	}
}

// leave makes the others not wait for a client any more.
func (b *barrier) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clients--
	b.pass()
}

// pass lets all go if all are there. mu is held.
func (b *barrier) pass() {
	if b.waiting > 0 && b.waiting >= b.clients {
		b.waiting = 0
		b.round++
		b.passed.Broadcast()
	}
}
