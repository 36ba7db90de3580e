package endpoint

import (
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// work is posted in order and completely: wrs, then send if buf is set. The struct is
// copied; the array of wrs must not change until workDone.
type work struct {
	wrs   []verbs.WorkRequest
	send  verbs.WorkRequest
	buf   *sendBuf
	owner owner
}

// owner learns that its work is complete (ok), or was lost with the connection.
type owner interface{ workDone(ok bool) }

// entry is a work, or the first part of one, that has been posted.
type entry struct {
	seq   uint64
	n     int // requests
	buf   *sendBuf
	owner owner
}

// sendBuf is the memory of one Send.
type sendBuf struct {
	b   []byte
	sgl [1][]byte
}

const (
	batchSize  = 64
	flushEvery = 16 // after this many receives, the work they have caused is posted
)

// sendBuffer returns memory for one Send, or nil if the connection has ended or too
// many Sends are under way.
func (l *link) sendBuffer() *sendBuf {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return nil
	}
	if n := len(l.sendFree); n > 0 {
		b := l.sendFree[n-1]
		l.sendFree = l.sendFree[:n-1]
		return b
	}
	if l.sendAll >= l.maxSends {
		return nil
	}
	const n = 16
	size := l.inlineSend
	slab, err := l.mem.p.Alloc(n * size)
	if err != nil {
		return nil
	}
	l.slab(slab)
	l.sendAll += n
	bufs := make([]sendBuf, n)
	for i := range bufs {
		bufs[i].b = slab[i*size : i*size : (i+1)*size]
		l.sendFree = append(l.sendFree, &bufs[i])
	}
	b := l.sendFree[len(l.sendFree)-1]
	l.sendFree = l.sendFree[:len(l.sendFree)-1]
	return b
}

func (l *link) freeSend(b *sendBuf) {
	l.mu.Lock()
	l.sendFree = append(l.sendFree, b)
	l.mu.Unlock()
}

// request returns the Send of a buffer. With with set, it invalidates a handle of the
// peer.
func (b *sendBuf) request(invalidate uint32, with bool) verbs.WorkRequest {
	b.sgl[0] = b.b
	wr := verbs.WorkRequest{Op: verbs.OpSend, Local: b.sgl[:]}
	if with {
		wr.Op, wr.Handle = verbs.OpSendInvalidate, invalidate
	}
	return wr
}

// enqueue adds work to the send queue; flush posts it. If the connection has ended,
// enqueue does nothing and reports false.
func (l *link) enqueue(w work) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	l.queue.Push(w)
	return true
}

// recycle posts a receive again, with the next flush.
func (l *link) recycle(rb *recvBuf) {
	l.mu.Lock()
	l.repost = append(l.repost, verbs.RecvRequest{ID: uint64(rb.id), Buffer: rb.b})
	l.mu.Unlock()
}

// flush posts what is queued, unless another goroutine is about to do so.
func (l *link) flush() {
	l.mu.Lock()
	if l.corked || l.flushing || l.dead {
		l.mu.Unlock()
		return
	}
	l.flushLocked()
	l.mu.Unlock()
}

// post is flush for the goroutine of the connection, which holds the others back
// meanwhile (corked).
func (l *link) post() {
	l.mu.Lock()
	if !l.flushing && !l.dead {
		l.flushLocked()
	}
	l.mu.Unlock()
}

func (l *link) flushLocked() {
	l.flushing = true
	for !l.dead {
		l.again = append(l.again[:0], l.repost...)
		l.repost = l.repost[:0]
		l.gather()
		if len(l.again) == 0 && len(l.wrs) == 0 {
			break
		}
		l.mu.Unlock()
		var err error
		if len(l.again) > 0 {
			err = l.vc.PostRecv(l.again...)
		}
		if len(l.wrs) > 0 && err == nil {
			err = l.vc.Post(l.wrs...)
		}
		if err != nil && l.vc.Err() == nil {
			// The queues have the depth that was asked for, so this is a bug of
			// the provider. Without the requests the connection is of no use.
			_ = l.vc.Close()
		}
		l.mu.Lock()
		if err != nil {
			break
		}
	}
	l.flushing = false
	l.idle.Broadcast()
}

// gather moves what fits into the send queue to l.wrs. l.mu is held.
func (l *link) gather() {
	l.wrs = l.wrs[:0]
	for l.queue.Len() > 0 && l.room > 0 && len(l.wrs) < batchSize {
		w := l.queue.Front()
		n := min(len(w.wrs), l.room)
		at := len(l.wrs)
		l.wrs = append(l.wrs, w.wrs[:n]...)
		w.wrs = w.wrs[n:]
		e := entry{n: n}
		whole := len(w.wrs) == 0 && (w.buf == nil || n < l.room)
		if whole {
			if w.buf != nil {
				l.wrs = append(l.wrs, w.send)
				e.n++
			}
			e.buf, e.owner = w.buf, w.owner
			l.queue.Pop()
		}
		if e.n == 0 {
			if e.owner != nil { // work without any request; its owner must be told nevertheless
				l.posted.Push(entry{seq: l.seq, owner: e.owner})
			}
			continue
		}
		l.seq++
		e.seq = l.seq
		l.room -= e.n
		l.silent += e.n
		last := &l.wrs[len(l.wrs)-1]
		for i := at; i < len(l.wrs); i++ {
			l.wrs[i].ID, l.wrs[i].Signaled = l.seq, false
		}
		if e.owner != nil || l.silent >= l.depth/4 || !whole {
			last.Signaled = true
			l.silent = 0
		}
		l.posted.Push(e)
		if !whole {
			break
		}
	}
	// A full queue needs a signaled request, or it would never drain.
	if l.room == 0 && len(l.wrs) > 0 && l.silent > 0 {
		l.wrs[len(l.wrs)-1].Signaled = true
		l.silent = 0
	}
	for i := range l.wrs {
		l.count(&l.wrs[i])
	}
}

func (l *link) count(wr *verbs.WorkRequest) {
	switch wr.Op {
	case verbs.OpSend, verbs.OpSendInvalidate:
		l.ctr.sends.Add(1)
	case verbs.OpRead:
		l.ctr.reads.Add(1)
		l.ctr.readBytes.Add(uint64(len(wr.Local[0])))
	case verbs.OpWrite:
		l.ctr.writes.Add(1)
		l.ctr.writeBytes.Add(uint64(len(wr.Local[0])))
	}
}

// retire handles the completion of everything up to seq.
func (l *link) retire(seq uint64) {
	for {
		l.mu.Lock()
		if l.posted.Len() == 0 || l.posted.Front().seq > seq {
			l.mu.Unlock()
			return
		}
		var owner owner
		for owner == nil && l.posted.Len() > 0 && l.posted.Front().seq <= seq {
			e := l.posted.Pop()
			l.room += e.n
			if e.buf != nil {
				l.sendFree = append(l.sendFree, e.buf)
			}
			owner = e.owner
		}
		l.mu.Unlock()
		if owner != nil {
			owner.workDone(true)
		}
	}
}
