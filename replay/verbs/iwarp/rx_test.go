package iwarp

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// TestIdle: connections on which nothing happens keep no receive buffer, however much has been received on them.
func TestIdle(t *testing.T) {
	const pairs = 64 // with two receivers each
	p := provider(t, Options{})
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
	fallsTo(t, before+2*pairs*rxBuffer/2)
}

// TestIdleTogether: the same if many connections have used buffers at the same time, so that each had its own.
func TestIdleTogether(t *testing.T) {
	const peers = 64
	b := iwarp.AppendFPDU(nil, untagged(iwarp.OpSend, true, 1, 0, make([]byte, 3*rxStranger)...), false)
	var all []*peer
	before := held()
	for range peers {
		recvs := []verbs.RecvRequest{{Buffer: make([]byte, 3*rxStranger)}}
		h, _ := victim(t, Options{CRC: CRCOff}, iwarp.MPAFrame{Revision: 1}, verbs.Params{Recvs: recvs})
		if _, err := h.Write(b[:2*rxStranger]); err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	for i := 0; held()-before < peers*rxBuffer; i++ {
		if i == 1000 {
			t.Fatal("the peers have not begun their FPDUs at the same time")
		}
		time.Sleep(time.Millisecond)
	}
	for _, h := range all {
		if _, err := h.Write(b[2*rxStranger:]); err != nil {
			t.Fatal(err)
		}
	}
	fallsTo(t, before+peers*rxBuffer/2)
}

// held returns how many bytes of the heap are in use.
func held() int {
	runtime.GC()
	runtime.GC() // what is in a pool survives one collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// fallsTo waits until no more than limit bytes of the heap are in use.
func fallsTo(t testing.TB, limit int) {
	t.Helper()
	n := 0
	for range 200 {
		if n = held(); n < limit {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d bytes in use, %d too many", n, n-limit)
}

// TestCharge: the user is told of the receive buffer while there is one, whether the peer has completed an FPDU or not.
func TestCharge(t *testing.T) {
	zero := iwarp.AppendFPDU(nil, tagged(iwarp.OpWrite, true, 0, 0), false) // needs no memory
	long := iwarp.AppendFPDU(nil, untagged(iwarp.OpSend, true, 1, 0, make([]byte, 3*rxStranger)...), false)
	for _, c := range []struct {
		name string
		sent [][]byte
		want int
	}{
		{"nothing", nil, 0},
		{"the begin of a short FPDU", [][]byte{zero[:5]}, 0},
		{"the begin of a long FPDU", [][]byte{long[:2*rxStranger]}, rxBuffer},
		{"an FPDU", [][]byte{zero}, 0},
		{"an FPDU and the begin of another", [][]byte{zero, long[:10]}, rxBuffer},
		{"a long FPDU in parts", [][]byte{long[:2*rxStranger], long[2*rxStranger:]}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var charged atomic.Int64
			params := verbs.Params{
				Recvs:  []verbs.RecvRequest{{Buffer: make([]byte, 3*rxStranger)}},
				Charge: func(n int) { charged.Add(int64(n)) },
			}
			h, conn := victim(t, Options{CRC: CRCOff}, iwarp.MPAFrame{Revision: 1}, params)
			for _, b := range c.sent {
				if _, err := h.Write(b); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Millisecond)
			}
			for i := 0; charged.Load() != int64(c.want); i++ {
				if i == 1000 {
					t.Fatalf("%d bytes, want %d", charged.Load(), c.want)
				}
				time.Sleep(time.Millisecond)
			}
			conn.Close()
			if n := charged.Load(); n != 0 {
				t.Errorf("%d bytes after the end", n)
			}
		})
	}
}
