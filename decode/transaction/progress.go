package transaction

import (
	"iter"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Open iterates over the transactions that have not ended, in the order of their
// first packets. A transaction is valid until the next one, and must not be
// changed. Open belongs on the goroutine that drives the Tracker.
//
// A transaction has begun with the last packet of its call. It goes on until
// its reply is acknowledged: see Message.Seen of Reply.
func (t *Tracker) Open() iter.Seq[*Transaction] {
	return func(yield func(*Transaction) bool) {
		for tx := t.queue.head; tx != nil; tx = tx.next {
			if !tx.finished && !yield(tx) {
				return
			}
		}
	}
}

// Under is how many transactions have not ended.
func (t *Tracker) Under() int { return t.open }

// ChunkProgress is how far the responder has come with one chunk of a call, or
// the requester with one of a reply (the read-read model).
type ChunkProgress struct {
	Kind     ChunkKind
	Index    int // in its list; -1 for the Read chunk that holds the message itself
	Segments int // that are followed
	// Bytes that were offered, that operations have asked for, and that were
	// moved, none of them twice.
	Offered, Asked, Moved uint64
	// InFlight counts RDMA Reads that wait for data, and RDMA Writes of which
	// a part has come. The length of an iWARP Write is known only at its end,
	// so that it never counts.
	InFlight int
}

// Progress appends how far each chunk has come, in the order of the header:
// Read chunks, Write chunks, the Reply chunk.
func (t *Transaction) Progress(dst []ChunkProgress) []ChunkProgress {
	from := len(dst)
	dst = progress(dst, t.segments)
	dst = progress(dst, t.served)
	chunks := dst[from:]
	if len(chunks) == 0 {
		return dst
	}
	for i := range t.Operations {
		o := &t.Operations[i]
		if o.Bytes >= o.Length || o.Kind != rdma.Read && o.Kind != rdma.Write {
			continue
		}
		for j := range chunks {
			c := &chunks[j]
			if c.Index == o.Index && (c.Kind == o.Chunk || c.Kind == ReplyReadList && o.Chunk == ReadList) {
				c.InFlight++
				break
			}
		}
	}
	return dst
}

// maxProgress bounds the chunks that Progress tells apart; a call may offer
// thousands. Those beyond are added to the last one.
const maxProgress = 16

func progress(dst []ChunkProgress, list []segment) []ChunkProgress {
	from := len(dst)
	for i := range list {
		s := &list[i]
		kind := s.kind
		if s.reply {
			kind = ReplyReadList
		}
		n := len(dst)
		if n == from || (dst[n-1].Kind != kind || dst[n-1].Index != s.chunk) && n-from < maxProgress {
			dst = append(dst, ChunkProgress{Kind: kind, Index: s.chunk})
			n++
		}
		c := &dst[n-1]
		c.Segments++
		c.Offered += uint64(s.length)
		c.Asked += max(s.asked.bytes, s.cover.bytes)
		c.Moved += s.cover.bytes
	}
	return dst
}

// SortPackets puts Packets in the order of the capture, as they are when the
// transaction has ended; before, what was reported late stands at the end.
func (t *Transaction) SortPackets() { t.sortPackets() }
