package transaction

// buffer collects bytes that arrive in pieces. It grows with what arrives,
// not with what was announced.
type buffer struct {
	b     []byte
	cover coverage
}

func (b *buffer) reset(maxKeep int) {
	if cap(b.b) > maxKeep {
		b.b = nil
	}
	b.b = b.b[:0]
	b.cover.reset()
}

// growth is by how much put would grow the buffer for n bytes at offset.
func (b *buffer) growth(offset uint64, n int) int {
	if end := offset + uint64(n); end > uint64(cap(b.b)) {
		return int(min(max(uint64(2*cap(b.b)), end, 4096), 1<<40)) - cap(b.b)
	}
	return 0
}

// put stores data at offset. It returns by how much the buffer grew, and false
// if that would exceed limit.
func (b *buffer) put(offset uint64, data []byte, limit int) (grown int, ok bool) {
	end := offset + uint64(len(data))
	if end > uint64(limit) {
		return 0, false
	}
	before := b.owned()
	if end > uint64(len(b.b)) {
		if end > uint64(cap(b.b)) {
			size := max(uint64(2*cap(b.b)), end, 4096)
			nb := make([]byte, end, size)
			copy(nb, b.b)
			b.b = nb
		} else {
			old := len(b.b)
			b.b = b.b[:end]
			if uint64(old) < offset {
				clear(b.b[old:offset])
			}
		}
	}
	copy(b.b[offset:], data)
	b.cover.add(offset, end)
	return b.owned() - before, true
}

// owned is the memory of the buffer in bytes.
func (b *buffer) owned() int { return cap(b.b) + cap(b.cover.spans)*spanSize }

// prefix is what has arrived without a hole.
func (b *buffer) prefix() []byte {
	n := min(b.cover.prefix(), uint64(len(b.b)))
	return b.b[:n:n]
}

// chunkData holds the bytes of one chunk, when they were asked for.
type chunkData struct {
	kind  ChunkKind
	index int
	buf   buffer
}
