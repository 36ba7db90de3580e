package tap

import (
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/capture"
)

// Writer is a verbs.Tap that writes a capture. Packets are in the order of the calls,
// and their times never decrease.
type Writer struct {
	mu   sync.Mutex
	w    *capture.Writer
	last int64
	err  error
	n    uint64
}

// NewWriter returns a Writer to w. Nobody else may use w before Flush.
func NewWriter(w *capture.Writer) *Writer { return &Writer{w: w} }

// Packet implements verbs.Tap.
func (w *Writer) Packet(t time.Time, ip []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	at := max(t.UnixNano(), w.last)
	w.last = at
	w.n++
	p := capture.Packet{Time: at, Length: uint32(len(ip)), Link: capture.LinkRaw, Data: ip}
	w.err = w.w.Write(&p)
}

// Packets returns the number of packets so far.
func (w *Writer) Packets() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// Stored returns how much the stream has accepted: see capture.Writer. It is to be
// called at the end, after an error.
func (w *Writer) Stored() (packets uint64, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Stored()
}

// Flush writes what is buffered. It returns the first error of all calls.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}
