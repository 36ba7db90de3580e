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
	Last    bool      // there was no other when it was sent
}

// Watch passes on what the stream holds of the time since, then what comes, until the
// context ends. It survives that NATS is away.
func Watch(ctx context.Context, nc *nats.Conn, since time.Time, to chan<- Message, note func(format string, args ...any)) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	said := ""
	for {
		c, err := js.OrderedConsumer(ctx, StreamName, jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since, InactiveThreshold: 5 * time.Minute,
		})
		if err == nil {
			err = pass(ctx, c, to)
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

func pass(ctx context.Context, c jetstream.Consumer, to chan<- Message) error {
	list, err := c.Messages(jetstream.PullMaxMessages(256))
	if err != nil {
		return err
	}
	defer list.Stop()
	stop := context.AfterFunc(ctx, list.Stop)
	defer stop()
	for {
		m, err := list.Next()
		if err != nil {
			return fmt.Errorf("stream %s: %w", StreamName, err)
		}
		x := Message{Subject: m.Subject(), Data: m.Data(), Time: time.Now()}
		if meta, err := m.Metadata(); err == nil {
			x.Time, x.Last = meta.Timestamp, meta.NumPending == 0
		}
		select {
		case to <- x:
		case <-ctx.Done():
			return nil
		}
	}
}
