package scrub

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// procedure names a procedure of a program.
type procedure struct{ program, version, number uint32 }

// redactables are its arguments and results.
type redactables struct{ args, result xdr.Redactable }

// maxProcedures is how many are remembered; a capture may call any.
const maxProcedures = 4096

// Programs of callbacks: the client takes a transient number.
const transientEnd = 0x60000000

// messagesOf returns the messages of a procedure, nil if they are not known.
func (s *Scrubber) messagesOf(p procedure) *redactables {
	r, ok := s.procedures[p]
	if ok {
		return r
	}
	program := nfs.Lookup(p.program, p.version)
	if program == nil && p.program >= nfs4.NFS4_CALLBACK && p.program < transientEnd {
		program = nfs.Lookup(nfs4.NFS4_CALLBACK, p.version)
	}
	if x := program.Procedure(p.number); x != nil {
		args, one := x.NewArgs().(xdr.Redactable)
		result, two := x.NewResult().(xdr.Redactable)
		if one && two {
			r = &redactables{args, result}
		}
	}
	if len(s.procedures) >= maxProcedures {
		clear(s.procedures)
	}
	s.procedures[p] = r
	return r
}

// message is an RPC message to be copied, or what was captured of it.
type message struct {
	data   bool // it was copied, and what its chunks hold is data of files
	out, b []byte
	full   int
	header *rpcrdma.Header // that it came with; nil over TCP and UDP
}

// Parts of RPC headers.
const (
	callFixed  = 24
	replyFixed = 12
	authFixed  = 8
	word       = 4
)

// keep copies numbers.
func (m *message) keep(from, to int) {
	if to = min(to, len(m.b)); from < to {
		copy(m.out[from:to], m.b[from:to])
	}
}

// head copies the XID and the type of a message if it is of that type. What is in a chunk may be no message at all.
func (m *message) head(t oncrpc.MsgType) bool {
	if len(m.b) < 2*word || oncrpc.MsgType(binary.BigEndian.Uint32(m.b[word:])) != t {
		return false
	}
	m.keep(0, 2*word)
	return true
}

// pad is n bytes with their padding.
func pad(n int) int { return (n + 3) &^ 3 }

// call copies a call.
func (s *Scrubber) call(m *message) {
	var c oncrpc.Call
	err := c.Decode(m.b, m.full)
	if err != nil && c.RPCVersion != oncrpc.Version {
		m.head(oncrpc.TypeCall)
		s.undecoded(c.Cut)
		return
	}
	m.keep(0, min(len(m.b), callFixed)&^3)
	if err != nil && !c.Cut {
		s.undecoded(c.Cut)
		return
	}
	s.credential(m, &c)
	if err != nil {
		return
	}
	verf := callFixed + authFixed + pad(len(c.Cred.Body))
	m.keep(verf, verf+authFixed)
	b := c.Body()
	if b.Kind != oncrpc.BodyPlain {
		s.secured(m, &b, c.Length, c.GSS.Sequence)
		return
	}
	x := s.messagesOf(procedure{c.Program, c.Version, c.Procedure})
	if x == nil {
		s.stats.Unknown++
		return
	}
	s.body(m, &b, x.args, false)
}

// credential copies a credential of AUTH_SYS or RPCSEC_GSS, and the frame of any other.
func (s *Scrubber) credential(m *message, c *oncrpc.Call) {
	at := callFixed
	m.keep(at, at+authFixed)
	at += authFixed
	body := c.Cred.Body
	var sys oncrpc.Sys
	switch {
	case c.Cred.Flavor == oncrpc.AuthSys && sys.Decode(body):
		m.keep(at+word, at+2*word) // not the stamp, which may be anything
		at += 2 * word
		s.replace(xdr.Host, m.out[at:at+len(sys.Machine)], sys.Machine)
		at += pad(len(sys.Machine))
		m.keep(at+2*word, at+3*word) // the number of groups
		for i := range 3 + sys.Count {
			if from := at + i*word; i != 2 {
				s.replace(xdr.User, m.out[from:from+word], m.b[from:from+word])
			}
		}
	case c.Cred.Flavor == oncrpc.RPCSecGSS && c.GSS.Handle != nil:
		m.keep(at, at+5*word)
		at += 5 * word
		s.replace(xdr.Handle, m.out[at:at+len(c.GSS.Handle)], c.GSS.Handle)
	}
}

// undecoded counts a message whose header cannot be decoded.
func (s *Scrubber) undecoded(cut bool) {
	if !cut {
		s.stats.Malformed++
	}
}

// secured copies the lengths of a protected body, or of a token, which follow the header, and the sequence number if it is the right one.
func (s *Scrubber) secured(m *message, b *oncrpc.Body, header int, sequence uint32) {
	if b.Kind == oncrpc.BodyNone {
		s.stats.Messages++
		return
	}
	s.stats.Secured++
	switch {
	case b.Malformed:
	case b.Kind == oncrpc.BodyIntegrity:
		m.keep(header, header+word)
		if at := header + word; at+word <= len(m.b) && binary.BigEndian.Uint32(m.b[at:]) == sequence {
			m.keep(at, at+word)
		}
		end := header + word + pad(b.Length+word)
		m.keep(end, end+word)
	case b.Kind == oncrpc.BodyPrivacy, b.Kind == oncrpc.BodyInit:
		m.keep(header, header+word)
	}
}

// body copies arguments or results.
func (s *Scrubber) body(m *message, b *oncrpc.Body, what xdr.Redactable, reply bool) {
	x := &s.redactor
	out := m.out[b.Offset : b.Offset+len(b.Data)]
	x.ResetTo(out, b.Data, b.Length)
	x.StartAt(uint32(b.Offset))
	if h := m.header; h != nil && !h.Plain() {
		switch {
		case reply && len(h.Reads) == 0:
			s.reduced = h.ReducedReply(s.reduced[:0])
			x.ReduceReply(s.reduced)
		default:
			s.reduced = h.ReducedCall(s.reduced[:0])
			x.ReduceCall(s.reduced)
		}
	}
	what.Redact(x)
	if x.Failed() && !x.Cut() {
		clear(out)
		s.stats.Malformed++
		return
	}
	s.stats.Messages++
	m.data = !x.Failed() && x.DataMoved && !x.OtherMoved
}

// reply copies a reply. call is its call as far as it is known.
func (s *Scrubber) reply(m *message, call []byte, callFull int) {
	var r oncrpc.Reply
	err := r.Decode(m.b, m.full)
	if !m.head(oncrpc.TypeReply) || err != nil && !r.Cut {
		s.undecoded(r.Cut)
		return
	}
	m.keep(2*word, replyFixed)
	if r.Stat == oncrpc.Accepted {
		m.keep(replyFixed, replyFixed+authFixed)
		if err == nil {
			m.keep(replyFixed+authFixed+pad(len(r.Verf.Body)), r.Length)
		}
	} else {
		m.keep(replyFixed, r.Length)
	}
	if err != nil {
		return
	}
	var c oncrpc.Call
	if len(call) == 0 || c.Decode(call, callFull) != nil {
		s.stats.Unknown++
		return
	}
	b := r.Body(c.Protection())
	if b.Kind == oncrpc.BodyInit {
		s.created(m, &b)
		return
	}
	if b.Kind != oncrpc.BodyPlain {
		s.secured(m, &b, r.Length, c.GSS.Sequence)
		return
	}
	x := s.messagesOf(procedure{c.Program, c.Version, c.Procedure})
	if x == nil {
		s.stats.Unknown++
		return
	}
	s.body(m, &b, x.result, true)
}

// created copies the result of the creation of a context, without the token.
func (s *Scrubber) created(m *message, b *oncrpc.Body) {
	s.stats.Secured++
	var g oncrpc.GSSInitResult
	if !g.Decode(b.Data) {
		return
	}
	at := b.Offset
	m.keep(at, at+word)
	at += word
	s.replace(xdr.Handle, m.out[at:at+len(g.Handle)], g.Handle)
	at += pad(len(g.Handle))
	m.keep(at, at+4*word) // statuses, window, and the length of the token
}

// observer is the Scrubber as the Decoder sees it.
type observer Scrubber

// Message is decode.Observer.Message: the Send is written to its packets as soon as it is known what it is.
func (o *observer) Message(tx *transaction.Transaction, reply bool, x *rdma.Send) {
	s := (*Scrubber)(o)
	if reply && len(tx.Call.Payload) == 0 && tx.Call.Seen() {
		// The call travels in a chunk, which has not been put together.
		if l := s.longOf(tx); l != nil {
			l.wait(tx.Connection, x, s.segments(tx.Connection, x))
			return
		}
	}
	s.send(tx, reply, tx.Connection, x, s.segments(tx.Connection, x))
}

// Closed is decode.Observer.Closed.
func (o *observer) Closed(c *rdma.Connection) {
	delete(o.untagged, sender{c, 0})
	delete(o.untagged, sender{c, 1})
}

// Unmatched is decode.Observer.Unmatched: of a Send that is not a call or reply, no more than a transport header is known.
func (o *observer) Unmatched(c *rdma.Connection, x *rdma.Send) {
	s := (*Scrubber)(o)
	s.stats.Other++
	out := s.zeros(len(x.Data))
	if c.Fabric != rdma.TCP && c.Fabric != rdma.UDP && rpcrdma.Plausible(x.Data, x.Length) {
		s.transport(out, x)
	}
	s.place(c, x, out, s.segments(c, x))
}

// zeros is the copy of n bytes, at first.
func (s *Scrubber) zeros(n int) []byte {
	if cap(s.copied) < n {
		s.copied = make([]byte, n)
	}
	out := s.copied[:n]
	clear(out)
	return out
}

// transport copies the header of a message of RPC-over-RDMA, and decodes it.
func (s *Scrubber) transport(out []byte, x *rdma.Send) {
	h := &s.header
	_ = h.Decode(x.Data, x.Length) // what could be decoded is what is copied
	n := min(h.Length, len(out))
	if len(h.Properties) > 0 {
		n = min(n, 4*word) // of any content
	}
	copy(out[:n], x.Data[:n])
}

// send copies a Send that is a call or a reply.
func (s *Scrubber) send(tx *transaction.Transaction, reply bool, c *rdma.Connection, x *rdma.Send, segments []fpdu) {
	out := s.zeros(len(x.Data))
	m := message{out: out, b: x.Data, full: x.Length}
	if c.Fabric != rdma.TCP && c.Fabric != rdma.UDP {
		s.transport(out, x)
		h := &s.header
		m.b, m.full, m.header = h.Payload, h.PayloadLength, h
		m.out = out[len(out)-len(h.Payload):]
		if !h.Inline() {
			if reply && !tx.Call.Seen() { // nothing says which packets its Reply chunk is in
				s.stats.Unknown++
			}
			s.place(c, x, out, segments)
			return
		}
	}
	if reply {
		s.reply(&m, tx.Call.Payload, tx.Call.PayloadLength)
	} else {
		s.call(&m)
	}
	s.place(c, x, out, segments)
	s.hasData(tx, reply, m.data)
}

// hasData notes that the chunks of a transaction hold data of files in this direction.
func (s *Scrubber) hasData(tx *transaction.Transaction, reply, data bool) {
	if !data || !s.opt.KeepData {
		return
	}
	if l := s.longOf(tx); l != nil {
		l.data = l.data || !reply
		l.results = l.results || reply
	}
}
