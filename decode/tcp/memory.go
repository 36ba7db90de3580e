package tcp

import "unsafe"

const waitingSize = int(unsafe.Sizeof(waiting{})) + 2*2 // with its indexes

const printSize = int(unsafe.Sizeof(print{}))

// Memory is what the stream holds because of a gap and to recognise repetitions, in bytes.
func (s *Stream) Memory() int {
	n := cap(s.prints)*printSize + cap(s.oddFirst)
	if s.queue == nil {
		return n
	}
	return n + s.queue.bytes + s.queue.owned()
}

// owned is the memory of an empty queue.
func (q *queue) owned() int { return cap(q.slots) * waitingSize }

// Idle is what the pool keeps for streams to come, in bytes.
func (p *Pool) Idle() int { return p.idle + p.idleQueues }

// Drop gives up what the pool keeps.
func (p *Pool) Drop() {
	for i := range p.free {
		p.free[i] = nil
	}
	p.queues, p.idle, p.idleQueues = nil, 0, 0
}
