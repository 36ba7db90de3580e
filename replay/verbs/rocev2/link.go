package rocev2

import (
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

const (
	// frameOverhead is what Ethernet, IP and UDP add to a packet on the wire:
	// preamble 8, header 14, frame check 4, gap 12, IPv4 20, UDP 8.
	frameOverhead = 66
	linkLimit     = 4 << 20 // bytes that may wait for their turn
)

// linkModel delays packets as a network with a delay and a bandwidth would.
type linkModel struct {
	model verbs.Link
	udp   *udp
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}

	mu     sync.Mutex
	queue  []delayed
	head   int
	queued int       // bytes
	busy   time.Time // until when the wire is busy
	spare  [][]byte
}

type delayed struct {
	due    time.Time
	packet []byte
	dst    netip.AddrPort
}

func newLinkModel(model verbs.Link, u *udp) *linkModel {
	l := &linkModel{model: model, udp: u, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *linkModel) close() {
	close(l.stop)
	<-l.done
}

// full reports that nothing more should be sent for now.
func (l *linkModel) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued > linkLimit
}

func (l *linkModel) send(packet []byte, dst netip.AddrPort) {
	now := time.Now()
	l.mu.Lock()
	if l.busy.Before(now) {
		l.busy = now
	}
	if l.model.Bandwidth > 0 {
		bits := int64(len(packet)+frameOverhead) * 8
		l.busy = l.busy.Add(time.Duration(float64(bits) * float64(time.Second) / float64(l.model.Bandwidth)))
	}
	var b []byte
	if n := len(l.spare); n > 0 {
		b, l.spare = l.spare[n-1], l.spare[:n-1]
	}
	l.queue = append(l.queue, delayed{l.busy.Add(l.model.Delay), append(b[:0], packet...), dst})
	l.queued += len(packet)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *linkModel) run() {
	defer close(l.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := time.Hour
		for {
			l.mu.Lock()
			if l.head == len(l.queue) {
				l.queue, l.head = l.queue[:0], 0
				l.mu.Unlock()
				break
			}
			d := l.queue[l.head]
			if wait = time.Until(d.due); wait > 0 {
				l.mu.Unlock()
				break
			}
			wait = time.Hour
			l.queue[l.head] = delayed{}
			if l.head++; l.head > 1024 && l.head*2 > len(l.queue) {
				n := copy(l.queue, l.queue[l.head:])
				clear(l.queue[n:])
				l.queue, l.head = l.queue[:n], 0
			}
			l.queued -= len(d.packet)
			l.mu.Unlock()
			l.udp.sendOne(d.packet, d.dst) //nolint:errcheck // lost, as in a network
			l.mu.Lock()
			if len(l.spare) < 64 {
				l.spare = append(l.spare, d.packet)
			}
			l.mu.Unlock()
		}
		if wait < time.Millisecond && wait > 0 {
			// Timers are not that fine when all else sleeps.
			nap(wait)
			select {
			case <-l.stop:
				return
			default:
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-l.stop:
			return
		case <-l.wake:
		case <-timer.C:
		}
	}
}
