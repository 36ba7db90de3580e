package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Message is one of the stream.
type Message struct {
	Subject string
	Data    []byte
	Time    time.Time // when NATS stored it, by the clock of this machine
	Last    bool      // it is the last one that was there when Watch began, or when it was sent
	None    bool      // this is not a message: NATS says that none is there yet
}

// errNothingSent says that the stream is not there yet.
var errNothingSent = errors.New("no agent has sent anything yet")

// Watch passes on what was stored in the stream within the latest time since, then what comes, until the
// context ends. If it holds nothing, that is passed on first. It survives that NATS is away.
func Watch(ctx context.Context, nc *nats.Conn, since time.Duration, to chan<- Message, note func(format string, args ...any)) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	said, asked := "", false
	say := func(err error) {
		if err != nil && err.Error() != said {
			said = err.Error()
			note("%v; waiting", err)
		}
	}
	var from time.Time
	for {
		var c jetstream.Consumer
		var there uint64
		var clock clock
		str, err := js.Stream(ctx, StreamName)
		if err == nil {
			clock.here, clock.there = time.Now(), str.CachedInfo().TimeStamp
			if clock.there.IsZero() { // of an old server
				clock.there = clock.here
			}
			if from.IsZero() {
				from = clock.there.Add(-since)
			}
			c, err = str.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
				DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &from, InactiveThreshold: 5 * time.Minute,
			})
		}
		if err == nil {
			there = c.CachedInfo().NumPending
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = errNothingSent
			say(err) // before somebody is told who leaves then
		}
		if !asked && (err == nil || errors.Is(err, errNothingSent)) {
			if asked = true; there == 0 {
				select {
				case to <- Message{None: true}:
				case <-ctx.Done():
					return nil
				}
			}
		}
		if err == nil {
			err = pass(ctx, c, clock, there, to)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end that the caller wanted
		}
		if err != nil && !errors.Is(err, errNothingSent) && !passing(err) {
			return err
		}
		say(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryWait):
		}
	}
}

// clock is a time by the clock of this machine, and by that of NATS, which may be another one.
type clock struct{ here, there time.Time }

// local is a time of NATS by the clock of this machine.
func (c *clock) local(t time.Time) time.Time { return c.here.Add(t.Sub(c.there)) }

// pass passes on messages, and says how many were there before.
func pass(ctx context.Context, c jetstream.Consumer, clock clock, there uint64, to chan<- Message) error {
	list, err := c.Messages(jetstream.PullMaxMessages(256))
	if err != nil {
		return err
	}
	defer list.Stop()
	stop := context.AfterFunc(ctx, list.Stop)
	defer stop()
	for n := uint64(1); ; n++ {
		m, err := list.Next()
		if err != nil {
			return fmt.Errorf("stream %s: %w", StreamName, err)
		}
		x := Message{Subject: m.Subject(), Data: m.Data(), Time: time.Now()}
		if meta, err := m.Metadata(); err == nil {
			x.Time, x.Last = clock.local(meta.Timestamp), meta.NumPending == 0 || n == there
		}
		select {
		case to <- x:
		case <-ctx.Done():
			return nil
		}
	}
}
