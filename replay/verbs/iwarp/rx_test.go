package iwarp

import (
	"runtime"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// TestIdle: connections on which nothing happens keep no receive buffer, however much has been received on them.
func TestIdle(t *testing.T) {
	const pairs = 64 // with two receivers each
	p := provider(t, Options{})
	held := func() int {
		runtime.GC()
		runtime.GC() // what is in a pool survives one collection
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := held()
	for range pairs {
		c, s := connect(t, p, p, "127.0.0.1:0", verbs.Params{})
		for _, x := range []verbs.Conn{c, s} {
			if err := x.PostRecv(verbs.RecvRequest{Buffer: make([]byte, 16)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, x := range []verbs.Conn{c, s} {
			do(t, x, verbs.WorkRequest{Op: verbs.OpSend, Local: [][]byte{make([]byte, 16)}})
		}
	}
	var n int
	for range 1000 {
		if n = held() - before; n < 2*pairs*rxBuffer/2 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d connections keep %d bytes", pairs, n)
}
