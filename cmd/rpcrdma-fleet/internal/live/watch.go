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
	Time    time.Time // when NATS stored it
	Last    bool      // it is the last one that was there when Watch began, or when it was sent
	None    bool      // this is no message: NATS says that none is there yet
}

// Watch passes on what the stream holds of the time since, then what comes, until the
// context ends. If it holds nothing, that is passed on first. It survives that NATS is away.
func Watch(ctx context.Context, nc *nats.Conn, since time.Time, to chan<- Message, note func(format string, args ...any)) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	said, asked := "", false
	for {
		c, err := js.OrderedConsumer(ctx, StreamName, jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since, InactiveThreshold: 5 * time.Minute,
		})
		var there uint64
		if err == nil {
			there = c.CachedInfo().NumPending
		}
		if !asked && (err == nil || errors.Is(err, jetstream.ErrStreamNotFound)) {
			if asked = true; there == 0 {
				select {
				case to <- Message{None: true}:
				case <-ctx.Done():
					return nil
				}
			}
		}
		if err == nil {
			err = pass(ctx, c, there, to)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end that the caller wanted
		}
		switch {
		case err != nil && !passing(err):
			return err
		case errors.Is(err, jetstream.ErrStreamNotFound):
			err = errors.New("no agent has sent anything yet")
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			note("%v; waiting", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryWait):
		}
	}
}

// pass passes on messages, of which so many were there before.
func pass(ctx context.Context, c jetstream.Consumer, there uint64, to chan<- Message) error {
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
			x.Time, x.Last = meta.Timestamp, meta.NumPending == 0 || n == there
		}
		select {
		case to <- x:
		case <-ctx.Done():
			return nil
		}
	}
}
