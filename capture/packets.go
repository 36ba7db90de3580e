package capture

import (
	"errors"
	"io"
	"iter"
)

// Packets yields the packets of r until its end. A packet is valid until the next one. An error other than
// io.EOF is yielded last, without a packet.
func Packets(r Reader) iter.Seq2[*Packet, error] {
	return func(yield func(*Packet, error) bool) {
		var b Batch
		for {
			if err := r.Read(&b); err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
			for i := range b.Packets {
				if !yield(&b.Packets[i], nil) {
					return
				}
			}
		}
	}
}
