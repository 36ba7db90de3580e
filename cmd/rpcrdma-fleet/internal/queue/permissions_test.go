package queue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/natstest"
)

// The configuration in docs allows each role what it needs, and nothing else.
func TestPermissions(t *testing.T) {
	url := natstest.Documented(t, "../../../..")
	dial := func(role string) *nats.Conn {
		nc, err := Dial(Address{Servers: url, User: role, Pass: "secret-" + role}, role, role, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	if _, err := Dial(Address{Servers: url, User: "worker", Pass: "guessed"}, RoleWorker, "x", t.Logf); err == nil || strings.Contains(err.Error(), "guessed") {
		t.Errorf("wrong password: %v", err)
	}

	// What they have to do, works.
	q, err := Create(t.Context(), dial("submitter"), Setup{AckWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, q: q}
	u := r.put(0)
	worker := dial("worker")
	wq, err := Open(t.Context(), worker)
	if err != nil {
		t.Fatal(err)
	}
	w := &Worker{Name: NewName(), Exec: newMemory(nil), Note: t.Logf}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { done <- w.Run(ctx, wq) }()
	rq, err := Open(t.Context(), dial("reader"))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; pause(t.Context(), 50*time.Millisecond) {
		snap, err := rq.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if rec := snap.Records[u.Key()]; rec != nil && rec.State == Finished && len(snap.Workers) == 1 && len(snap.Queued) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", snap)
		}
	}
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
			if !refused(t, nc, func() error { return nc.Publish(s, nil) }) {
				t.Errorf("%s may publish to %s", x.role, s)
			}
		}
		for _, s := range x.subscribe {
			if !refused(t, nc, func() error { _, err := nc.SubscribeSync(s); return err }) {
				t.Errorf("%s may subscribe to %s", x.role, s)
			}
		}
	}
	if refused(t, worker, func() error { return worker.Publish(key+WorkerBucket+".x", nil) }) {
		t.Error("the test takes what is allowed for refused")
	}
	// The queue is still there.
	if _, err := q.js.Stream(t.Context(), Stream); err != nil {
		t.Error(err)
	}
}

// refused reports whether the server refuses what is done.
func refused(t *testing.T, nc *nats.Conn, do func() error) bool {
	t.Helper()
	errs := make(chan error, 4)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err })
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// The refusal comes before the answer to Flush, but is handed on by another goroutine.
	select {
	case err := <-errs:
		return errors.Is(err, nats.ErrPermissionViolation)
	case <-time.After(time.Second):
		return false
	}
}
