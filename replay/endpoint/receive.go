package endpoint

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// recvBuf is the memory of one receive.
type recvBuf struct {
	id int
	b  []byte
}

// strangerReceives is how many receives are posted for a peer that has not sent a call
// yet. Before the first grant a peer may send one call (RFC 8166, section 3.3.1); some
// send a few. The others are posted when the first call arrives, before its reply.
const strangerReceives = 16

// receives returns how many receives are posted.
func (l *link) receives() int {
	n := int(l.o.MaxCredits)
	if !l.dialed && l.o.Policy == CreditsDynamic {
		n = int(min(l.o.Credits, l.o.MaxCredits))
	}
	return n + l.extraReceives()
}

// extraReceives returns how many receives are posted beyond the credits granted: for
// the other direction, for RDMA_DONE, and a few for messages that are being handled.
func (l *link) extraReceives() int {
	n := int(l.o.BackwardCredits) + 8
	if !l.dialed && (l.o.Model == ReadRead || l.o.Dialect != rpcrdma.DialectNone) {
		n += int(l.o.MaxCredits)
	}
	return n
}

// params returns the parameters of the connection, with its receives.
func (l *link) params() (verbs.Params, error) {
	n := l.receives()
	if !l.dialed {
		n = min(n, strangerReceives)
	}
	recvs, err := l.addReceives(n)
	if err != nil {
		return verbs.Params{}, err
	}
	p := l.terms()
	p.Recvs = recvs
	if l.acct != nil {
		p.Charge = func(bytes int) { l.acct.Add(int64(bytes)) }
	}
	return p, nil
}

// addReceives allocates n more receive buffers.
func (l *link) addReceives(n int) ([]verbs.RecvRequest, error) {
	size := l.o.InlineReceive
	slab, err := l.mem.p.Alloc(n * size)
	if err != nil {
		return nil, err
	}
	l.slab(slab)
	out := make([]verbs.RecvRequest, n)
	for i := range out {
		rb := &recvBuf{id: len(l.recvs), b: slab[i*size : (i+1)*size : (i+1)*size]}
		l.recvs = append(l.recvs, rb)
		out[i] = verbs.RecvRequest{ID: uint64(rb.id), Buffer: rb.b}
	}
	return out, nil
}

// welcome posts the receives that the first call of a peer has earned.
func (l *link) welcome() {
	l.stranger = false
	l.acct.Proven()
	l.mu.Lock()
	l.slabbed += int64(l.mem.caps.Buffers)
	l.acct.Add(int64(l.mem.caps.Buffers))
	var more []verbs.RecvRequest
	var err error
	if n := l.receives() - len(l.recvs); n > 0 {
		more, err = l.addReceives(n)
		l.repost = append(l.repost, more...)
	}
	l.mu.Unlock()
	if err != nil {
		l.close()
	}
}

// run serves the connection until its end.
func (l *link) run() {
	var batch [batchSize]verbs.Completion
	handled := 0
	for l.vc.Wait() == nil {
		l.mu.Lock()
		l.corked = true
		l.mu.Unlock()
		for {
			n := l.vc.Poll(batch[:])
			if n == 0 {
				break
			}
			for i := range batch[:n] {
				c := &batch[i]
				switch {
				case c.Status != verbs.StatusSuccess:
					// The connection has failed; Wait returns the error.
				case c.Op != verbs.OpRecv:
					l.retire(c.ID)
				default:
					l.ctr.receives.Add(1)
					l.received(c)
					if handled++; handled%flushEvery == 0 {
						l.post()
					}
				}
			}
			l.post()
		}
		l.mu.Lock()
		l.corked = false
		l.mu.Unlock()
		l.flush()
	}
	l.teardown()
}

// received handles a message.
func (l *link) received(c *verbs.Completion) {
	l.mu.Lock()
	rb := l.recvs[c.ID]
	l.mu.Unlock()
	if l.stranger {
		l.welcome()
	}
	if l.owing.Load() == 0 {
		l.acct.Progress() // otherwise progress is what the peer takes
	}
	n := min(int(c.Length), len(rb.b))
	h := &l.hdr
	err := h.Decode(rb.b[:n], n)
	if n < 8 {
		l.ctr.dropped.Add(1)
		l.recycle(rb) // too short for an XID and a version
		return
	}
	var reply bool
	if l.dialed {
		reply = err != nil || !isCall(h)
	} else {
		reply = err == nil && (h.Type == rpcrdma.TypeError || isReply(h))
	}
	if reply {
		l.calls.reply(l, h, err, rb, c)
		return
	}
	l.serve.call(l, h, err, rb, c)
}

// isCall and isReply look at the RPC message, which has to be inline, to find out its
// direction (RFC 8167, section 4).
func isCall(h *rpcrdma.Header) bool { return direction(h) == uint32(oncrpc.TypeCall) }

func isReply(h *rpcrdma.Header) bool { return direction(h) == uint32(oncrpc.TypeReply) }

func direction(h *rpcrdma.Header) uint32 {
	if !h.Inline() || len(h.Payload) < 8 {
		return ^uint32(0)
	}
	return binary.BigEndian.Uint32(h.Payload[4:])
}
