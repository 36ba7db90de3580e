package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Queue is the stream and the buckets.
type Queue struct {
	nc             *nats.Conn
	js             jetstream.JetStream
	stream         jetstream.Stream
	units, workers jetstream.KeyValue
	ackWait        time.Duration
}

// Setup says how the stream and the buckets are to be made.
type Setup struct {
	Replicas int           // 0: 3 where there is a cluster, otherwise 1
	AckWait  time.Duration // 0: DefaultAckWait
}

// errNotClustered is the server's answer to a wish for replicas that a single server cannot have.
const errNotClustered = jetstream.ErrorCode(10074)

// Create makes what is missing of the stream and the buckets, and opens them. What is there stays as it is.
func Create(ctx context.Context, nc *nats.Conn, s Setup) (*Queue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if s.AckWait == 0 {
		s.AckWait = DefaultAckWait
	}
	make := func(replicas int) error {
		s.Replicas = replicas
		return persist(ctx, persistence, nil, func() error {
			err := create(ctx, js, s)
			if errors.Is(err, nats.ErrNoResponders) {
				return errors.New("this NATS server has no JetStream")
			}
			return err
		})
	}
	switch {
	case s.Replicas > 0:
		err = make(s.Replicas)
	case nc.ConnectedClusterName() == "":
		err = make(1)
	default:
		var api *jetstream.APIError
		if err = make(3); errors.As(err, &api) && api.ErrorCode == errNotClustered {
			err = make(1)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the queue cannot be made: %w", err)
	}
	return Open(ctx, nc)
}

func create(ctx context.Context, js jetstream.JetStream, s Setup) error {
	_, err := js.Stream(ctx, Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: Stream, Description: "units to be decoded", Subjects: []string{subjectPrefix + "*"},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: s.Replicas,
			// A unit is queued once: the server refuses a second message of the same subject, however late it comes.
			MaxMsgsPerSubject: 1, DiscardNewPerSubject: true, Discard: jetstream.DiscardNew,
			MaxMsgSize: maxMessage,
		})
	}
	if err != nil {
		return err
	}
	_, err = js.Consumer(ctx, Stream, Consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = js.CreateConsumer(ctx, Stream, jetstream.ConsumerConfig{
			Durable: Consumer, Description: "all workers", AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: s.AckWait, MaxDeliver: maxDeliver, MaxAckPending: 65536, MaxRequestBatch: 1,
		})
	}
	if err != nil {
		return err
	}
	for _, c := range []jetstream.KeyValueConfig{
		{Bucket: UnitBucket, Description: "who decodes which unit", MaxValueSize: maxRecord, History: 1, TTL: unitTTL, Replicas: s.Replicas},
		{Bucket: WorkerBucket, Description: "signs of life", MaxValueSize: maxRecord, History: 1, TTL: s.AckWait, Replicas: s.Replicas},
	} {
		_, err := js.KeyValue(ctx, c.Bucket)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			_, err = js.CreateKeyValue(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrNoQueue says that nothing was ever submitted there.
var ErrNoQueue = errors.New("there is no queue: nothing was submitted to this NATS server yet")

// Open opens what somebody created.
func Open(ctx context.Context, nc *nats.Conn) (*Queue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	q := &Queue{nc: nc, js: js}
	if q.stream, err = js.Stream(ctx, Stream); err != nil {
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, ErrNoQueue
		}
		return nil, fmt.Errorf("stream %s: %w", Stream, err)
	}
	if q.units, err = js.KeyValue(ctx, UnitBucket); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", UnitBucket, err)
	}
	if q.workers, err = js.KeyValue(ctx, WorkerBucket); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", WorkerBucket, err)
	}
	return q, nil
}

// conflict reports whether an error says that somebody else changed a record meanwhile.
func conflict(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return errors.Is(err, jetstream.ErrKeyExists)
	}
	return api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// record reads what is known of a unit: an empty Record if nothing is, or nothing that makes sense. The revision is
// for update.
func (q *Queue) record(ctx context.Context, key string) (*Record, uint64, error) {
	e, err := q.units.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return &Record{}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	r, err := decodeRecord(e.Value())
	if err != nil {
		return &Record{}, e.Revision(), nil //nolint:nilerr // a forged record is worth as much as none
	}
	return r, e.Revision(), nil
}

// update writes a record unless somebody else did since it was read.
func (q *Queue) update(ctx context.Context, key string, r *Record, revision uint64) (uint64, error) {
	b, err := r.encode()
	if err != nil {
		return 0, err
	}
	if revision == 0 {
		return q.units.Create(ctx, key, b)
	}
	return q.units.Update(ctx, key, b, revision)
}

// Await opens the queue as soon as somebody creates it: workers may be there before the first work is.
func Await(ctx context.Context, nc *nats.Conn, note func(format string, args ...any)) (*Queue, error) {
	told := false
	for {
		q, err := Open(ctx, nc)
		if err == nil || ctx.Err() != nil {
			return q, err
		}
		var api *jetstream.APIError
		switch {
		case errors.Is(err, nats.ErrPermissionViolation), errors.As(err, &api) && !errors.Is(err, ErrNoQueue) && api.Code < 500:
			return nil, err
		case !told:
			note("waiting for a queue: %v", err)
			told = true
		}
		pause(ctx, 2*time.Second)
	}
}
