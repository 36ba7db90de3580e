package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Spool holds summaries until they are stored in the stream.
type Spool struct {
	limit int
	note  func(format string, args ...any)
	ready chan struct{}

	mu      sync.Mutex
	list    []*Summary
	sizes   []int
	bytes   int
	dropped uint64
	sending bool // list[0] is under way, and stays what it is
	ended   bool
}

// NewSpool makes a spool for the given number of bytes of summaries; at least one is held.
func NewSpool(limit int, note func(format string, args ...any)) *Spool {
	return &Spool{limit: limit, note: note, ready: make(chan struct{}, 1)}
}

// Add adds a summary. If there is no room, the oldest ones are dropped.
func (p *Spool) Add(s *Summary) error {
	b, err := s.Encode()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list, p.sizes, p.bytes = append(p.list, s), append(p.sizes, len(b)), p.bytes+len(b)
	first := 0
	if p.sending {
		first = 1
	}
	for p.bytes > p.limit && len(p.list) > first+1 {
		if p.dropped++; p.dropped == 1 {
			p.note("the spool is full (%d bytes): the oldest summaries are dropped", p.limit)
		}
		p.remove(first)
	}
	p.wake()
	return nil
}

// End says that nothing more will be added.
func (p *Spool) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.wake()
}

// Waiting is how many summaries are held, and Dropped how many were dropped.
func (p *Spool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list)
}

// Dropped is how many summaries were dropped.
func (p *Spool) Dropped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

func (p *Spool) wake() {
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

func (p *Spool) remove(i int) {
	p.bytes -= p.sizes[i]
	copy(p.list[i:], p.list[i+1:])
	p.list[len(p.list)-1] = nil
	p.list, p.sizes = p.list[:len(p.list)-1], append(p.sizes[:i], p.sizes[i+1:]...)
}

// next is the oldest summary, encoded. It is false when all were sent and no more
// will come.
func (p *Spool) next(ctx context.Context) (s *Summary, b []byte, ok bool, err error) {
	for {
		p.mu.Lock()
		if len(p.list) > 0 {
			s = p.list[0]
			s.Dropped = p.dropped
			p.sending = true
			b, err = s.Encode()
			p.mu.Unlock()
			return s, b, true, err
		}
		ended := p.ended
		p.mu.Unlock()
		if ended {
			return nil, nil, false, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, false, ctx.Err()
		case <-p.ready:
		}
	}
}

func (p *Spool) sent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(0)
	p.sending = false
}

// retryWait is the time between attempts while NATS is away.
const retryWait = time.Second

// Send publishes what is in the spool until End and everything is stored, or until the
// context ends. Summaries that are refused for good end it with an error.
func (p *Spool) Send(ctx context.Context, nc *nats.Conn, replicas int) error {
	var js jetstream.JetStream
	if err := p.retry(ctx, func(ctx context.Context) (err error) {
		js, err = stream(ctx, nc, replicas)
		return err
	}); err != nil {
		return err
	}
	last := make(map[string]stored) // message of each subject
	for {
		s, b, ok, err := p.next(ctx)
		if !ok || err != nil {
			return err
		}
		err = p.retry(ctx, func(ctx context.Context) error {
			return publish(ctx, js, last, s, b)
		})
		if err != nil {
			return err
		}
		p.sent()
	}
}

// stored is the last message of a subject.
type stored struct {
	sequence uint64 // in the stream
	number   uint64 // of its summary
}

// publish stores a summary, unless it is stored already.
func publish(ctx context.Context, js jetstream.JetStream, last map[string]stored, s *Summary, b []byte) error {
	to := subject(s.Tap, s.Agent)
	for tries := 0; last[to].number < s.Number; tries++ {
		ack, err := js.Publish(ctx, to, b, jetstream.WithExpectStream(StreamName), jetstream.WithExpectLastSequencePerSubject(last[to].sequence))
		if err == nil {
			last[to] = stored{ack.Sequence, s.Number}
			return nil
		}
		if !wrongLast(err) || tries == 3 {
			return err
		}
		if last[to], err = find(ctx, js, to); err != nil {
			return err
		}
	}
	return nil // the answer to the first attempt was lost
}

// find looks at the last message of a subject.
func find(ctx context.Context, js jetstream.JetStream, subject string) (stored, error) {
	str, err := js.Stream(ctx, StreamName)
	if err != nil {
		return stored{}, err
	}
	m, err := str.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) { // they are older than the stream keeps messages
		return stored{}, nil
	}
	if err != nil {
		return stored{}, err
	}
	s, err := Decode(m.Data)
	if err != nil {
		return stored{}, fmt.Errorf("the last message of %s: %w", subject, err)
	}
	return stored{m.Sequence, s.Number}, nil
}

// retry calls f until it succeeds or cannot succeed.
func (p *Spool) retry(ctx context.Context, f func(context.Context) error) error {
	said := ""
	for {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := f(try)
		cancel()
		switch {
		case err == nil:
			if said != "" {
				p.note("NATS stores summaries again")
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !passing(err):
			return err
		}
		if text := err.Error(); text != said {
			said = text
			p.note("%v; summaries that wait: %d", err, p.Waiting())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryWait):
		}
	}
}
