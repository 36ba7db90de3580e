package iwarp

import (
	"runtime"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// TestGiveWay: a user who has waited goes first, until it waits again, but not for long.
func TestGiveWay(t *testing.T) {
	c := new(conn)
	q := &c.completions
	q.init(4)
	x := &receiver{c: c}
	x.completed(verbs.StatusSuccess)
	if x.deliver() {
		t.Error("nobody has waited")
	}
	polled := func() bool {
		var out [4]verbs.Completion
		n, recvs := q.poll(out[:])
		return n == 1 && recvs == 1 && out[0].Op == verbs.OpRecv && !out[0].Time.IsZero()
	}
	if !polled() {
		t.Error("no completion")
	}

	woken, again := make(chan struct{}), make(chan bool)
	go func() {
		q.wait()
		close(woken)
		again <- polled() && q.wait()
	}()
	for !q.waiting.Load() {
		runtime.Gosched()
	}
	x.completed(verbs.StatusSuccess)
	if !x.deliver() {
		t.Error("somebody has waited")
	}
	<-woken
	for !q.waiting.Load() {
		x.giveWay()
	}
	x.completed(verbs.StatusSuccess)
	if !x.deliver() || !<-again {
		t.Error("it does not wait again")
	}

	begun := time.Now() // nobody waits any more
	if x.giveWay(); time.Since(begun) < turn {
		t.Errorf("%v for whoever works", time.Since(begun))
	}
}
