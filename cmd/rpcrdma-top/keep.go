package main

import (
	"io"
	"slices"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/window"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
)

// keeper holds the latest packets of a capture, so that those of a row can still be written. The capture itself cannot
// be read again.
type keeper struct {
	mu   sync.Mutex
	held *window.Window[int] // with the number of the connection, 0 if it was not known yet
}

// newKeeper makes a keeper of the given number of bytes.
func newKeeper(bytes int) *keeper {
	return &keeper{held: window.New(bytes, func(_ *capture.Packet, connection *int) { *connection = 0 })}
}

// packet takes the next packet, on the goroutine that decodes.
func (k *keeper) packet(v *decode.PacketView) {
	k.mu.Lock()
	c := k.held.Add(v.Packet)
	*c = 0
	if v.Connection != nil {
		*c = v.Connection.Resolve().ID
	}
	k.mu.Unlock()
}

// copy copies what is held: the packets of some connections, or all.
func (k *keeper) copy(connections []int) *recording {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := &recording{}
	k.held.Each(func(p *capture.Packet, connection *int) {
		if len(connections) > 0 && !slices.Contains(connections, *connection) {
			return
		}
		q := *p
		q.Data = slices.Clone(p.Data)
		r.list = append(r.list, q)
	})
	return r
}

// recording reads packets from memory.
type recording struct{ list []capture.Packet }

var _ capture.Reader = (*recording)(nil)

// Read implements capture.Reader.
func (r *recording) Read(b *capture.Batch) error {
	if len(r.list) == 0 {
		return io.EOF
	}
	n := min(len(r.list), 1024)
	b.Packets = append(b.Packets[:0], r.list[:n]...)
	r.list = r.list[n:]
	return nil
}

// Problems implements capture.Reader.
func (r *recording) Problems() ([]*capture.Problem, int) { return nil, 0 }

// Close implements capture.Reader.
func (r *recording) Close() error { return nil }
