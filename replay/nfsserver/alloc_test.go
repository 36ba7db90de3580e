//go:build !race

package nfsserver_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// With the race detector a sync.Pool forgets what it has at random.

func TestCallsAllocateNothing(t *testing.T) {
	f := newFixture(nfsserver.Options{})
	cl := f.client(nil)
	x := &bare{call: transport.Message{Stream: inline("hello").Append(cl.Header(echo))}}
	if n := testing.AllocsPerRun(100, func() { f.ServeRPC(x) }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}
