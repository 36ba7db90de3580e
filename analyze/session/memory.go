package session

import (
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// DefaultMemory is how many bytes a Recorder holds at most, if Limit does not tell it otherwise.
const DefaultMemory = 24 << 20

// Limit makes the Recorder hold less, or more, memory: the bytes of sessions, clients, their connections and
// slots, of open calls, and of layouts. What exceeds it is counted, as what exceeds any other limit is; a
// live Recorder drops what was idle longest instead. Call it before anything else.
func (r *Recorder) Limit(bytes int) { r.limit = max(bytes, 0) }

// Held is how many bytes the Recorder holds.
func (r *Recorder) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// What things take, in bytes, with their entries of maps and lists.
const (
	intervalsSize = maxIntervals*int(unsafe.Sizeof(Interval{})) + maxPast*8
	sessionSize   = int(unsafe.Sizeof(session{})) + int(unsafe.Sizeof(sessionKey{})) + 2*8 + 8 + memory.MapEntry + intervalsSize
	clientSize    = int(unsafe.Sizeof(client{})) + int(unsafe.Sizeof(clientKey{})) + 2*8 + 8 + memory.MapEntry + maxPast*8
	connSize      = int(unsafe.Sizeof(conn{})+unsafe.Sizeof(rdma.Connection{})) + 8 + 2*8 + 8 + memory.MapEntry
	openSize      = int(unsafe.Sizeof(openCall{})) + int(unsafe.Sizeof((*transaction.Transaction)(nil))) + memory.MapEntry
	ownerSize     = int(unsafe.Sizeof(owner{})) + 3*2*maxText + 8 + memory.MapEntry
	greetingSize  = 2*(int(unsafe.Sizeof(greeting{}))+5*2*maxText) + 8 + memory.MapEntry
	statusSize    = 16 + 8 + 32 + memory.MapEntry
	layoutSize    = int(unsafe.Sizeof(layout{})) + 16 + 2*8 + 8 + memory.MapEntry + maxOfLayout*(16+8+int(unsafe.Sizeof(DataIO{}))+64)
	dataSize      = 16 + 8 + memory.MapEntry
	deviceSize    = int(unsafe.Sizeof(Device{})) + 32 + 16 + 2*8 + 8 + memory.MapEntry + maxOfLayout*(16+64)
)

// room reports whether that many more bytes are within the limit.
func (r *Recorder) room(n int) bool { return n <= r.limit-r.held }

// take counts bytes, and reports false if there is no room for them.
func (r *Recorder) take(held *int, n int) bool {
	if !r.room(n) {
		return false
	}
	*held += n
	r.held += n
	return true
}

// drop counts off the bytes of a session or client.
func (r *Recorder) drop(l *conns) {
	r.held -= l.held
	l.held, l.gone = 0, true
}
