package fabric_test

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestTimerTwice: the last segment is lost behind the capture point, and so is its first repetition. The episode begins
// with the segment, and has two timeouts (RFC 6298, section 5.5).
func TestTimerTwice(t *testing.T) {
	var list []fabric.Episode
	rec := fabric.New(fabric.Options{Episode: func(e *fabric.Episode) { list = append(list, *e) }})
	c := &rdma.Connection{ID: 1, Fabric: rdma.IWARP}
	const base = int64(1e18)
	n := uint64(0)
	see := func(ms int64, from rdma.Side, start, end, acked uint64) {
		n++
		rec.Saw(c, &rdma.Sighting{
			Ref: rdma.Ref{Time: base + ms*1e6, Number: n}, From: from, Class: rdma.ClassSegment, Placed: true, HasAck: true,
			Start: start, End: end, Acked: acked, Bytes: uint32(end - start), Window: 1000, WindowScale: 10,
		})
	}
	see(0, 0, 0, 1000, 0)
	see(1, 1, 0, 0, 1000)
	see(2, 0, 1000, 2000, 0)
	see(202, 0, 1000, 2000, 0)
	see(602, 0, 1000, 2000, 0)
	see(603, 1, 0, 0, 2000)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	e := &list[0]
	if d, ok := e.Duration(); !ok || d != 601*time.Millisecond || e.Timeouts != 2 || e.Notice != fabric.ByTimer || e.Waited != 200*time.Millisecond {
		t.Errorf("%v %+v", d, e)
	}
}
