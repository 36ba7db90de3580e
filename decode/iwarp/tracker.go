package iwarp

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// Options of a Tracker. The zero value is ready for use.
type Options struct {
	// MaxSend is how many bytes of one Send are kept; the rest is only counted. 0 means 1 MiB. A Send in one
	// FPDU is never cut.
	MaxSend int
	// Ports are TCP ports on which iWARP is expected if a connection's setup was not captured: there the
	// search for the first FPDU is more thorough. nil means 20049, NFS over RDMA.
	Ports []uint16
	// NoCRC leaves CRCs unchecked.
	NoCRC bool
	// Live has an acknowledgement of TCP reported at once, without waiting for a Terminate message that refuses what it acknowledged.
	Live bool
	// Hooks are called besides the Handler.
	Hooks rdma.Hooks
	// Pool buffers what TCP delivers out of order, for Conn.Segment. nil means the Tracker's own pool.
	Pool *tcp.Pool
}

// Limits that need no option.
const (
	defaultMaxSend = 1 << 20
	maxExtents     = 4096 // FPDUs of one direction remembered for retransmissions
	maxSends       = 1024
	maxWrites      = 256
	maxReads       = 1024 // outstanding RDMA Reads; Linux allows 128
	maxPending     = 32   // retransmissions of bytes that are not decoded yet
	maxSpare       = 32   // free buffers kept
	maxSpareSize   = 256 << 10
)

// Tracker is what the iWARP connections of one decoder share: the Handler, the limits and spare buffers. It
// is not safe for concurrent use.
type Tracker struct {
	handler rdma.Handler
	tracer  rdma.Tracer                           // of Options.Hooks
	watcher rdma.Watcher                          // the same
	shown   func(*rdma.Connection, *rdma.Segment) // the same
	o       Options
	spare   [][]byte

	// BadCRC counts the FPDUs that were decoded although their CRC is wrong.
	BadCRC uint64
	// Misframed counts the FPDUs that were given up because of their length or their header.
	Misframed rdma.Given
	// Displaced counts the directions of connections in which bytes came too late to be decoded.
	Displaced rdma.Given

	spareBytes int    // in spare
	scratch    []byte // an FPDU without its markers

	// Arguments of the Handler are stored here: behind an interface they would escape to the heap on every
	// call.
	send     rdma.Send
	fragment rdma.Fragment
	work     rdma.Work
	saw      rdma.Sighting
	segment  rdma.Segment
}

// NewTracker makes a Tracker that reports to h.
func NewTracker(h rdma.Handler, o Options) *Tracker {
	if o.MaxSend <= 0 {
		o.MaxSend = defaultMaxSend
	}
	if o.Pool == nil {
		o.Pool = tcp.NewPool(tcp.Options{})
	}
	if o.Ports == nil {
		o.Ports = []uint16{20049}
	}
	return &Tracker{handler: h, tracer: o.Hooks.Tracer, watcher: o.Hooks.Watcher, shown: o.Hooks.Segment, o: o}
}

// misplaced counts a segment of an untagged message that stands at a wrong place of it, or of a message that has not begun.
func (t *Tracker) misplaced(start uint64, length int, from *span) {
	t.Misframed.Add(rdma.Given{Count: 1, Bytes: uint64(length), First: from.first.Number, Offset: start})
}

// buffer returns an empty buffer.
func (t *Tracker) buffer() []byte {
	if n := len(t.spare); n > 0 {
		b := t.spare[n-1]
		t.spare[n-1] = nil
		t.spare = t.spare[:n-1]
		t.spareBytes -= cap(b)
		return b[:0]
	}
	return make([]byte, 0, 4096)
}

// release takes back a buffer, which may be nil.
func (t *Tracker) release(b []byte) {
	if cap(b) > 0 && cap(b) <= maxSpareSize && len(t.spare) < maxSpare {
		t.spare = append(t.spare, b)
		t.spareBytes += cap(b)
	}
}

// expected reports whether a port is one of Options.Ports.
func (t *Tracker) expected(port uint16) bool { return slices.Contains(t.o.Ports, port) }
