package capture

// Reset removes all packets from the batch and keeps its memory. A reader that fills a batch by Append or
// Extend starts with it.
func (b *Batch) Reset() {
	b.Packets = b.Packets[:0]
	b.buf = b.buf[:0]
}

// Size is how many bytes of data Append and Extend have added since Reset.
func (b *Batch) Size() int { return len(b.buf) }

// Append adds a packet with a copy of its data.
func (b *Batch) Append(p Packet) { copy(b.Extend(p, len(p.Data)), p.Data) }

// Extend adds a packet with room for n bytes of data, which the caller fills before it adds another one.
// p.Data is ignored.
func (b *Batch) Extend(p Packet, n int) []byte {
	at := len(b.buf)
	if n > cap(b.buf)-at {
		// Packets that are there keep the memory that they alias.
		b.buf = make([]byte, at, max(2*cap(b.buf), at+n, leastBatchMemory))
	}
	b.buf = b.buf[:at+n]
	p.Data = b.buf[at : at+n : at+n]
	b.Packets = append(b.Packets, p)
	return p.Data
}

const leastBatchMemory = 64 << 10
