package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/testtools/natstest"
)

// The configuration in docs allows each role what it needs, and nothing else, in whatever way roles show who they are.
func TestPermissions(t *testing.T) {
	for _, kind := range natstest.Kinds {
		t.Run(string(kind), func(t *testing.T) { testPermissions(t, kind) })
	}
}

func testPermissions(t *testing.T, kind natstest.Kind) {
	s := natstest.Documented(t, "../../../..", kind)
	dial := func(role string) *nats.Conn {
		a, err := Address{}.Resolve(func(k string) string { return s.Login(role)[k] })
		if err != nil {
			t.Fatal(err)
		}
		nc, err := Dial(a, role, role, natstest.Log(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}

	// What they have to do, works.
	r := &rig{T: t}
	q, err := Create(r.soon(), dial("submitter"), Setup{AckWait: longWait})
	if err != nil {
		t.Fatal(err)
	}
	r.q = q
	u := r.put(0)
	worker := dial("worker")
	wq, err := Open(r.soon(), worker)
	if err != nil {
		t.Fatal(err)
	}
	w := &Worker{Name: NewName(), Exec: newMemory(nil), Note: t.Logf}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { done <- w.Run(ctx, wq) }()
	rq, err := Open(r.soon(), dial("reader"))
	if err != nil {
		t.Fatal(err)
	}
	r.until("a reader sees the unit done", func() bool {
		snap, err := rq.Look(r.soon())
		if err != nil {
			t.Fatal(err)
		}
		rec := snap.Records[u.Key()]
		return rec != nil && rec.State == Finished && len(snap.Workers) == 1 && len(snap.Queued) == 0
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}

	// What they must not do, does not.
	const stream, key = "$JS.API.STREAM.", "$KV."
	for _, x := range []struct {
		role      string
		publish   []string
		subscribe []string
	}{
		{"submitter", []string{stream + "DELETE." + Stream, stream + "PURGE." + Stream, "$JS.ACK." + Stream + ".workers.1.1.1.1.1", "$JS.API.CONSUMER.MSG.NEXT." + Stream + ".workers", key + WorkerBucket + ".x"},
			[]string{"rpcrdma.unit.*", "_INBOX_rpcrdma_worker.>", ">"}},
		{"worker", []string{subject(u), stream + "CREATE.X", stream + "DELETE." + Stream, stream + "PURGE." + Stream, "$JS.API.CONSUMER.DELETE." + Stream + ".workers", "rpcrdma.live.x"},
			[]string{"rpcrdma.>", "_INBOX_rpcrdma_submitter.>", key + ">"}},
		{"reader", []string{subject(u), key + UnitBucket + ".x", key + WorkerBucket + ".x", "$JS.API.CONSUMER.MSG.NEXT." + Stream + ".workers", "$JS.API.CONSUMER.CREATE." + Stream + ".x", "$JS.ACK." + Stream + ".workers.1.1.1.1.1"},
			[]string{"rpcrdma.>", "_INBOX_rpcrdma_worker.>"}},
		{"agent", []string{subject(u), key + UnitBucket + ".x", stream + "INFO." + Stream, stream + "NAMES"}, []string{"rpcrdma.live.>", "_INBOX_rpcrdma_reader.>"}},
	} {
		nc := dial(x.role)
		for _, s := range x.publish {
			if err := refused(t, nc, func() error { return nc.Publish(s, nil) }); !strings.Contains(err.Error(), fmt.Sprintf("%q", s)) {
				t.Errorf("%s may publish to %s: %v", x.role, s, err)
			}
		}
		for _, s := range x.subscribe {
			if err := refused(t, nc, func() error { _, err := nc.SubscribeSync(s); return err }); !strings.Contains(err.Error(), fmt.Sprintf("%q", s)) {
				t.Errorf("%s may subscribe to %s: %v", x.role, s, err)
			}
		}
	}
	if err := refused(t, worker, func() error { return worker.Publish(key+WorkerBucket+".x", nil) }); !strings.Contains(err.Error(), nowhere) {
		t.Errorf("the test takes what is allowed for refused: %v", err)
	}
	// The queue is still there.
	if _, err := q.js.Stream(r.soon(), Stream); err != nil {
		t.Error(err)
	}
}

// nowhere is a subject that nobody may publish to.
const nowhere = "nowhere"

// refused returns what the server refuses first: what is done, or else what comes after it, which goes nowhere.
func refused(t *testing.T, nc *nats.Conn, do func() error) error {
	t.Helper()
	errs := make(chan error, 4)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err })
	if err := errors.Join(do(), nc.Publish(nowhere, nil)); err != nil {
		t.Fatal(err)
	}
	var first error
	for {
		select {
		case err := <-errs:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Fatal(err)
			}
			first = cmp.Or(first, err)
			if strings.Contains(err.Error(), nowhere) { // nothing of this is left for the next one
				return first
			}
		case <-time.After(patience):
			t.Fatalf("a refusal does not come, after %v", first)
		}
	}
}
