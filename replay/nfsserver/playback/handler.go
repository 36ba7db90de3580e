package playback

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Options of a Handler.
type Options struct {
	// Scale is the factor for the captured service times: 1 to be as slow as the server
	// was, 0 to answer at once. A service time is the phase
	// "server" of the capture: what moves data takes its own time again.
	Scale float64
	// Fallback, if set, gets the calls that are not in the recording.
	Fallback transport.Handler
}

// Stats count the calls of a Handler.
type Stats struct {
	Exact, Sessionless, Loose uint64 // answered, by the degree of sameness
	Again                     uint64 // of these, with a reply that had been given before
	Unmatched                 uint64
}

// Handler answers calls from a Recording.
type Handler struct {
	recording *Recording
	opt       Options

	mu    sync.Mutex
	given []bool                  // by number of record
	next  [degrees]map[uint64]int // by key: records before it were given

	matched          [degrees]atomic.Uint64
	again, unmatched atomic.Uint64
	sessions         sync.Pool
}

// New makes a Handler at the start of a Recording. Nothing may be added to the Recording
// afterwards.
func New(r *Recording, opt Options) *Handler {
	h := &Handler{recording: r, opt: opt, given: make([]bool, len(r.records))}
	for i := range h.next {
		h.next[i] = map[uint64]int{}
	}
	h.sessions.New = func() any {
		s := &session{args: map[*xdr.Procedure]xdr.Message{}}
		s.reply.Release = func() { h.sessions.Put(s) }
		return s
	}
	return h
}

// Stats returns the counts so far.
func (h *Handler) Stats() Stats {
	return Stats{
		Exact: h.matched[exact].Load(), Sessionless: h.matched[sessionless].Load(), Loose: h.matched[loose].Load(),
		Again: h.again.Load(), Unmatched: h.unmatched.Load(),
	}
}

// session is the memory of one call.
type session struct {
	header  oncrpc.Call
	body    oncrpc.Body
	reader  xdr.Reader
	reduced []xdr.Reduced
	args    map[*xdr.Procedure]xdr.Message
	digest  digest
	stream  []byte
	reply   transport.Message
}

// ServeRPC answers a call.
func (h *Handler) ServeRPC(x transport.Exchange) {
	began := time.Now()
	s := h.sessions.Get().(*session)
	m := x.Call()
	if err := s.header.Decode(m.Stream, len(m.Stream)); err != nil {
		h.sessions.Put(s)
		h.unanswerable(x, m)
		return
	}
	args, rec := h.match(s, m)
	if rec == nil {
		h.unmatched.Add(1)
		if h.opt.Fallback != nil {
			h.sessions.Put(s)
			h.opt.Fallback.ServeRPC(x)
			return
		}
		h.refuse(x, s)
		return
	}
	s.fill(rec, x, args)
	service := time.Duration(min(float64(rec.service)*h.opt.Scale, 1<<60)) // what does not fit would be no time at all
	// A time below the resolution of the system's timers is no wait.
	if left := service - time.Since(began); left > 20*time.Microsecond {
		time.AfterFunc(left, func() { x.Reply(&s.reply) })
		return
	}
	x.Reply(&s.reply)
}

// unanswerable drops messages that are not calls, and denies other versions of RPC.
func (h *Handler) unanswerable(x transport.Exchange, m *transport.Message) {
	h.unmatched.Add(1)
	b := m.Stream
	if len(b) < 24 || binary.BigEndian.Uint32(b[4:]) != uint32(oncrpc.TypeCall) {
		x.Drop()
		return
	}
	r := oncrpc.Reply{XID: binary.BigEndian.Uint32(b), Accept: oncrpc.GarbageArgs}
	if binary.BigEndian.Uint32(b[8:]) != oncrpc.Version {
		r.Stat, r.Reject, r.Low, r.High = oncrpc.Denied, oncrpc.RPCMismatch, oncrpc.Version, oncrpc.Version
	}
	x.Reply(&transport.Message{Stream: r.Append(nil)})
}

// match finds the record to answer a call with, and the call's arguments if it
// could decode them.
func (h *Handler) match(s *session, m *transport.Message) (xdr.Message, *record) {
	c := &s.header
	c.BodyInto(&s.body)
	if s.body.Kind != oncrpc.BodyPlain {
		return nil, nil
	}
	var args xdr.Message
	if p := nfs.Lookup(c.Program, c.Version); p != nil {
		if proc := p.Procedure(c.Procedure); proc != nil {
			if args = s.decode(proc, m); args == nil {
				return nil, nil
			}
		}
	}
	if args == nil {
		return nil, h.take(h.recording.raw(c.Program, c.Version, c.Procedure, s.body.Data), exact)
	}
	for degree := range degrees {
		key := s.digest.sum(h.recording.seed, c.Program, c.Version, c.Procedure, args, degree)
		if rec := h.take(key, degree); rec != nil {
			return args, rec
		}
	}
	// All equal calls have been used already.
	for degree := range degrees {
		key := s.digest.sum(h.recording.seed, c.Program, c.Version, c.Procedure, args, degree)
		if list := h.recording.index[degree][key]; len(list) > 0 {
			h.matched[degree].Add(1)
			h.again.Add(1)
			return args, list[len(list)-1]
		}
	}
	return args, nil
}

// decode reads the arguments of a call; nil if it cannot.
func (s *session) decode(proc *xdr.Procedure, m *transport.Message) xdr.Message {
	args := s.args[proc]
	if args == nil {
		args = proc.NewArgs()
		s.args[proc] = args
	}
	s.reduced = s.reduced[:0]
	for i := range m.Items {
		s.reduced = append(s.reduced, xdr.Reduced{Position: m.Items[i].Position, Length: uint32(len(m.Items[i].Data))})
	}
	s.reader.Reset(s.body.Data, len(s.body.Data))
	s.reader.StartAt(uint32(s.body.Offset))
	s.reader.ReduceCall(s.reduced)
	args.Decode(&s.reader)
	if s.reader.Failed() {
		return nil
	}
	return args
}

// take returns the earliest unused record of a key.
func (h *Handler) take(key uint64, degree int) *record {
	list := h.recording.index[degree][key]
	if len(list) == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.next[degree][key]
	for i < len(list) && h.given[list[i].number] {
		i++
	}
	h.next[degree][key] = i
	if i == len(list) {
		return nil
	}
	h.given[list[i].number] = true
	h.matched[degree].Add(1)
	return list[i]
}

// inlineItem is the size up to which an item is copied into the reply if there
// is no chunk for it, in bytes.
const inlineItem = 1024

// fill makes the reply.
func (s *session) fill(rec *record, x transport.Exchange, args xdr.Message) {
	s.stream = append(s.stream[:0], rec.stream...)
	setXID(s.stream, s.header.XID)
	if rec.sequence != 0 {
		s.sequence(rec.sequence, args)
	}
	s.reply.Items = s.reply.Items[:0]
	for _, it := range rec.items {
		s.reply.Items = append(s.reply.Items, transport.Item{Position: it.position, Data: it.data})
	}
	small := true
	for i, it := range rec.items {
		small = small && it.length <= inlineItem && x.MaxResult(i) == 0
	}
	if s.reply.Stream = s.stream; small && len(rec.items) > 0 {
		whole := s.reply.AppendWhole(nil)
		s.reply.Stream, s.reply.Items = whole, s.reply.Items[:0]
	}
}

// sequence adapts the results of SEQUENCE to this call.
func (s *session) sequence(at int, args xdr.Message) {
	call, ok := args.(*nfs4.CompoundArgs)
	if !ok {
		return
	}
	if len(call.Ops) == 0 {
		return
	}
	if seq, ok := call.Ops[0].Body.(*nfs4.SEQUENCE4args); ok {
		b := s.stream[at:]
		copy(b[:16], seq.SaSessionid[:])
		binary.BigEndian.PutUint32(b[16:], seq.SaSequenceid)
		binary.BigEndian.PutUint32(b[20:], seq.SaSlotid)
	}
}

// refuse answers a call that is not in the recording.
func (h *Handler) refuse(x transport.Exchange, s *session) {
	c := &s.header
	r := oncrpc.Reply{XID: c.XID, Accept: oncrpc.SystemErr}
	known, ok := h.recording.programs[c.Program]
	switch {
	case !ok:
		r.Accept = oncrpc.ProgUnavail
	case c.Version < known.low || c.Version > known.high:
		r.Accept, r.Low, r.High = oncrpc.ProgMismatch, known.low, known.high
	case c.Procedure == 0:
		r.Accept = oncrpc.Success
	}
	s.stream = r.Append(s.stream[:0])
	s.reply.Stream, s.reply.Items = s.stream, s.reply.Items[:0]
	x.Reply(&s.reply)
}
