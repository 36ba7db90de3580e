package transaction

import (
	"encoding/binary"
	"iter"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// MalformedSend is a Send whose transport header cannot be decoded.
type MalformedSend struct {
	Ref    rdma.Ref // its last packet
	Fault  rpcrdma.Fault
	Offset int // of the fault in bytes from the start of the Send
}

// Malformed counts Sends whose transport headers cannot be decoded though the capture holds them, on connections
// that are known to carry RPC-over-RDMA: by an earlier or later message, by Options.Carries, or by the port of NFS/RDMA. Some are the call or
// reply of a transaction nevertheless, which has the note HeaderMalformed. Sends without any bytes are not counted: they
// carry no header (a connection of RFC 6581 begins with one).
type Malformed struct {
	First  MalformedSend // the one with the lowest packet number; without a Ref if there is none
	Counts [rpcrdma.Faults]uint64
}

// Total is how many there are.
func (m *Malformed) Total() (n uint64) {
	for _, c := range m.Counts {
		n += c
	}
	return n
}

// Faults iterates over the faults that there are, with how many Sends have each.
func (m *Malformed) Faults() iter.Seq2[rpcrdma.Fault, uint64] {
	return func(yield func(rpcrdma.Fault, uint64) bool) {
		for i, n := range m.Counts {
			if n > 0 && !yield(rpcrdma.Fault(i), n) {
				return
			}
		}
	}
}

// Since is what was counted after before, an earlier count of the same. If there was any before, First is not known.
func (m Malformed) Since(before *Malformed) Malformed {
	for i, n := range before.Counts {
		m.Counts[i] -= n
	}
	if before.First.Ref.Seen() {
		m.First = MalformedSend{}
	}
	return m
}

// Add adds what was counted elsewhere.
func (m *Malformed) Add(o *Malformed) {
	if o.First.Ref.Seen() && (!m.First.Ref.Seen() || o.First.Ref.Number < m.First.Ref.Number) {
		m.First = o.First
	}
	for i, n := range o.Counts {
		m.Counts[i] += n
	}
}

func (m *Malformed) count(s MalformedSend) {
	if !m.First.Ref.Seen() || s.Ref.Number < m.First.Ref.Number {
		m.First = s
	}
	m.Counts[s.Fault]++
}

// MalformedOf returns the Sends of a connection whose transport headers cannot be decoded, as far as it is known to
// carry RPC-over-RDMA; of a copy of a connection, by the time of the copy.
func MalformedOf(c *rdma.Connection) Malformed {
	if k, ok := c.Upper.(*conn); ok && k.carries {
		return k.malformed
	}
	return Malformed{}
}

// protocol tells which connections carry RPC-over-RDMA.
type protocol struct {
	asked func(*rdma.Connection) (yes, known bool) // Options.Carries
	stats *Stats
}

// other counts a Send that belongs to no transaction.
func (p *protocol) other(c *rdma.Connection, s *rdma.Send, m said, r *reader) {
	if c.Fabric != rdma.TCP && c.Fabric != rdma.UDP && s.Length > 0 {
		if !m.transport {
			r.decode(s)
		}
		// What looks like a message and can be decoded is one of the connection itself.
		if f, at := r.header.Fault(); f != rpcrdma.NoFault && (r.err != nil || !m.transport) {
			p.malformed(c, MalformedSend{Ref: s.Last, Fault: f, Offset: at})
			return
		}
	}
	p.stats.OtherSends++
}

// malformed counts a Send with a header that cannot be decoded. Until the connection is known to carry
// RPC-over-RDMA, it is a Send like those of any other protocol.
func (p *protocol) malformed(c *rdma.Connection, s MalformedSend) {
	k := of(c)
	if !k.carries && p.given(c) {
		p.found(k)
	}
	k.malformed.count(s)
	if k.carries {
		p.stats.Malformed.count(s)
	} else {
		p.stats.OtherSends++
	}
}

// given reports whether a connection carries RPC-over-RDMA by what a user says of it, or by its ports.
func (p *protocol) given(c *rdma.Connection) bool {
	if p.asked != nil {
		if yes, known := p.asked(c); known {
			return yes
		}
	}
	return rdma.CarriesRPC(c.Fabric, c.Ends[0].Port) || rdma.CarriesRPC(c.Fabric, c.Ends[1].Port)
}

// proves marks the connection of a message as one of RPC-over-RDMA if no message of another protocol would look like
// it by accident: the header is followed by an RPC message with its XID. That may be so although the header is malformed:
// see unknownVersion.
func (p *protocol) proves(c *rdma.Connection, s *rdma.Send, d direction, r *reader) {
	h, k := &r.header, of(c)
	if r.err != nil {
		f, at := h.Fault()
		if f == rpcrdma.NoFault || d != isCall && d != isReply {
			return
		}
		if !k.carries {
			p.found(k)
		}
		p.malformed(c, MalformedSend{Ref: s.Last, Fault: f, Offset: at})
		return
	}
	if !k.carries && h.Inline() && len(h.Payload) >= 8 && binary.BigEndian.Uint32(h.Payload) == h.XID && h.XID != 0 {
		p.found(k)
	}
}

// found notes that a connection carries RPC-over-RDMA. What could not be decoded of it until now counts as
// malformed.
func (p *protocol) found(k *conn) {
	k.carries = true
	p.stats.OtherSends -= k.malformed.Total()
	p.stats.Malformed.Add(&k.malformed)
}

// merge lets two connections that turned out to be one know the same.
func (p *protocol) merge(into, from *conn) {
	if into.carries != from.carries {
		if into.carries {
			p.found(from)
		} else {
			p.found(into)
		}
	}
	into.malformed.Add(&from.malformed)
	from.malformed = Malformed{}
}
