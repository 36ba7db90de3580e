package roce

import (
	"bytes"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// assembly collects a Send of several packets.
type assembly struct {
	start   uint32
	print   uint32 // see printOf
	count   uint32 // packets up to the highest seen
	limit   uint32 // where another message begins, as an index; 0 if unknown
	ended   bool   // the Last packet has been seen: count and length are final
	seen    int    // packets
	again   int
	mtu     uint32
	length  int // up to the end of the highest packet
	cut     int // where the captured bytes end, because of a snaplen
	buf     []byte
	first   rdma.Ref
	last    rdma.Ref
	inv     bool
	handle  uint32
	solicit bool
	parts   []rdma.Part // for a tracer
	work    uint64      // the watcher's: rdma.Work.Seq
	size    int         // bytes counted for it
}

// assembler has the memory of the Sends in progress of all flows.
type assembler struct {
	limits  *Limits
	account *account
	bytes   int         // of Sends under way
	spare   []*assembly // for the next ones
}

// begin begins a Send with its First packet.
func (m *assembler) begin(p *Packet, ref rdma.Ref) *assembly {
	a := new(assembly)
	if n := len(m.spare); n > 0 {
		a = m.spare[n-1]
		m.spare = m.spare[:n-1]
	}
	m.bytes += cap(a.buf)
	*a = assembly{
		start: p.PSN, print: printOf(p), count: 1, seen: 1, mtu: uint32(p.PayloadLen),
		length: p.PayloadLen, cut: -1, buf: a.buf[:0], first: ref, last: ref, parts: a.parts[:0], size: a.size,
	}
	return a
}

// end takes back a Send that was delivered.
func (m *assembler) end(a *assembly) {
	m.bytes -= cap(a.buf)
	if len(m.spare) < maxSpareBuffers && cap(a.buf) <= maxSpareBuffer {
		m.spare = append(m.spare, a)
	} else {
		m.account.add(nil, -a.size)
	}
}

// clear gives back what is kept for the next ones. It returns false if there is nothing.
func (m *assembler) clear() bool {
	if len(m.spare) == 0 {
		return false
	}
	for i, a := range m.spare {
		m.account.add(nil, -a.size)
		m.spare[i] = nil
	}
	m.spare = m.spare[:0]
	return true
}

// gathered accounts for the memory of a Send after it may have grown.
func (m *assembler) gathered(a *assembly) {
	if n := assemblySize + cap(a.buf) + cap(a.parts)*partSize; n != a.size {
		m.account.add(nil, n-a.size)
		a.size = n
	}
}

// put puts a packet's payload in its place.
func (m *assembler) put(a *assembly, offset int, p *Packet) {
	end := offset + len(p.Payload)
	if len(p.Payload) < p.PayloadLen {
		a.cutAt(end)
	}
	if end > m.limits.SendBytes {
		a.cutAt(offset)
		return
	}
	if need := end - cap(a.buf); need > 0 {
		size := max(end, 2*cap(a.buf))
		if m.bytes+size-cap(a.buf) > m.limits.Assembly || !m.account.fits(size-cap(a.buf)) {
			a.cutAt(offset)
			return
		}
		m.bytes += size - cap(a.buf)
		buf := make([]byte, len(a.buf), size)
		copy(buf, a.buf)
		a.buf = buf
	}
	if n := len(a.buf); n < end {
		a.buf = a.buf[:end]
		if n < offset {
			clear(a.buf[n:offset])
		}
	}
	copy(a.buf[offset:], p.Payload)
}

const (
	// maxSending is how many Sends of one flow may be in progress at once; without loss it is one.
	maxSending = 4
	// maxSendPackets is the longest Send that is followed.
	maxSendPackets = 1 << 14
	// Buffers for the next Sends.
	maxSpareBuffers = 16
	maxSpareBuffer  = 64 << 10
)

// indexOf is the place of psn in the Send.
func (a *assembly) indexOf(psn uint32) int32 { return psnDiff(psn, a.start) }

// sending returns the Send in progress that a Middle or Last packet belongs to.
func (fl *flow) sending(psn uint32) *assembly {
	for i := len(fl.sends) - 1; i >= 0; i-- {
		a := fl.sends[i]
		d := a.indexOf(psn)
		if d < 0 {
			continue
		}
		if d == 0 || d >= maxSendPackets || a.mtu == 0 ||
			a.ended && uint32(d) >= a.count || a.limit != 0 && uint32(d) >= a.limit {
			return nil
		}
		return a
	}
	return nil
}

// continues returns the Send that a First or Only packet continues: one without an end whose packets up to
// this one have all been seen. A sender that resumes in the middle restarts its packet positions there. What begins with a packet that
// is not full has no middle (IBTA volume 1, section 9.7): behind it, another message begins, and must not be lost in it.
func (fl *flow) continues(psn uint32) *assembly {
	a := fl.sending(psn)
	if a == nil || a.ended || a.mtu < 256 || a.mtu > 4096 || a.mtu&(a.mtu-1) != 0 {
		return nil
	}
	if d := uint32(a.indexOf(psn)); d > a.count || fl.missing.has(a.start, d) {
		return nil
	}
	return a
}

// border records that a message begins at psn: one in progress must have ended before.
func (m *messages) border(fl *flow, psn uint32) {
	if len(fl.sends) == 0 {
		return
	}
	if a := fl.sending(psn); a != nil {
		a.ended = false // its end, if any, belonged to another message
		a.limit = uint32(a.indexOf(psn))
		m.shorten(fl, a, a.limit)
	}
}

// shorten removes everything from packet n on from a Send: it belonged to other messages whose beginning was
// not seen.
func (m *messages) shorten(fl *flow, a *assembly, n uint32) {
	if a.count <= n {
		return
	}
	for i := n; i < a.count; i++ {
		if psn := psnAdd(a.start, i); !fl.missing.has(psn, 1) {
			// Those seen before the Send began, as part of others, were not counted. Its first packet was.
			a.seen = max(a.seen-1, 1)
			if i > n || a.limit != n {
				m.behead(fl, psn)
			}
		}
	}
	a.count, a.length = n, int(n)*int(a.mtu)
	if m.tracer != nil {
		m.cutParts(fl, a)
	}
	a.buf = a.buf[:min(len(a.buf), a.length)]
}

func (m *messages) sendOnly(fl *flow, p *Packet, ref rdma.Ref) {
	s := &m.send
	*s = rdma.Send{} // and then field by field: see messages.send
	s.From, s.Data, s.Length = fl.side, p.Payload, p.PayloadLen
	s.First, s.Last, s.Packets, s.Solicited = ref, ref, 1, p.SE
	if p.Opcode.Operation() == RCSendOnlyInvalidate {
		s.Invalidates, s.Handle = true, p.IETH
	}
	work := m.watch.began(fl, rdma.WorkSend, p, ref)
	m.watch.carried(fl, work, uint32(p.PayloadLen), false, ref)
	m.deliver(fl, s, p.PSN, 1, printOf(p), work)
}

func (m *messages) deliver(fl *flow, s *rdma.Send, start, count, sum uint32, work uint64) *request {
	fl.c.Sent[fl.side].Sends++
	tag := m.h.Send(fl.c.Connection, s)
	fl.rpc = fl.rpc || tag != (rdma.Tag{})
	r := m.rings.push(fl, start, sum)
	r.kind, r.count, r.tag, r.at = sendRequest, count, tag, s.Last.Time
	r.work = work
	if m.watch.watcher != nil {
		m.watch.watcher.WorkDone(fl.c.Connection, fl.side, work, uint32(s.Length), s.Data, s.Last)
	}
	r.mtu = 0
	return r
}

func (m *messages) sendFirst(fl *flow, p *Packet, ref rdma.Ref) {
	if len(fl.sends) >= maxSending {
		m.flushSend(fl, 0)
	}
	m.learnMTU(fl.c, p)
	a := m.assembler.begin(p, ref)
	m.part(a, p, rdma.PartData, ref)
	a.work = m.watch.began(fl, rdma.WorkSend, p, ref)
	m.watch.carried(fl, a.work, uint32(p.PayloadLen), false, ref)
	m.assembler.put(a, 0, p)
	m.assembler.gathered(a)
	i := len(fl.sends)
	for i > 0 && psnDiff(fl.sends[i-1].start, p.PSN) > 0 {
		i--
	}
	fl.sends = slices.Insert(fl.sends, i, a)
}

// sendNext handles a packet of a Send in progress. seen means that it was seen before the beginning of the
// Send.
func (m *messages) sendNext(fl *flow, a *assembly, p *Packet, ref rdma.Ref, seen bool) {
	d := uint32(a.indexOf(p.PSN))
	a.seen++
	if seen {
		a.again++
	}
	a.last = ref
	m.part(a, p, rdma.PartData, ref)
	m.watch.carried(fl, a.work, uint32(p.PayloadLen), false, ref)
	offset := int(d) * int(a.mtu)
	m.assembler.put(a, offset, p)
	m.assembler.gathered(a)
	if d >= a.count {
		a.count = d + 1
		a.length = offset + p.PayloadLen
	}
	if p.Opcode.Ends() {
		m.shorten(fl, a, d+1)
		a.ended, a.length = true, offset+p.PayloadLen
		a.buf = a.buf[:min(len(a.buf), a.length)]
		a.solicit = p.SE
		if p.Opcode.HasInvalidate() {
			a.inv, a.handle = true, p.IETH
		}
	}
	if a.ended && !fl.missing.has(a.start, a.count) {
		m.flushSend(fl, slices.Index(fl.sends, a))
	}
}

// cutAt records that the bytes from off on are unknown.
func (a *assembly) cutAt(off int) {
	if a.cut < 0 || off < a.cut {
		a.cut = off
	}
}

// differs reports whether the Send has other bytes than those of a packet behind its first offset bytes, as far as is known.
func (a *assembly) differs(offset int, b []byte) bool {
	known := len(a.buf)
	if a.cut >= 0 {
		known = min(known, a.cut)
	}
	if offset >= known {
		return false
	}
	n := min(known-offset, len(b))
	return !bytes.Equal(a.buf[offset:offset+n], b[:n])
}

// pierce records that unseen packets up to psn will not arrive any more: the assembled part ends before them.
func (fl *flow) pierce(psn uint32) {
	for _, a := range fl.sends {
		for _, g := range fl.missing.r {
			if psnDiff(g.start, psn) > 0 {
				break
			}
			if d := a.indexOf(g.start); d > 0 && uint32(d) < a.count {
				a.cutAt(int(d) * int(a.mtu))
				break
			}
		}
	}
}

// flushSend delivers the assembled part of fl.sends[i], complete or not.
func (m *messages) flushSend(fl *flow, i int) {
	a := fl.sends[i]
	fl.sends = slices.Delete(fl.sends, i, i+1)
	end := len(a.buf)
	if a.cut >= 0 && a.cut < end {
		end = a.cut
	}
	length := a.length
	for _, g := range fl.missing.r {
		if d := a.indexOf(g.start); d >= 0 && uint32(d) < a.count {
			end = min(end, int(d)*int(a.mtu))
		}
	}
	if !a.ended {
		length++ // at least one more packet was sent
	}
	s := &m.send
	*s = rdma.Send{
		From: fl.side, Data: a.buf[:end:end], Length: length,
		First: a.first, Last: a.last, Packets: a.seen, Again: a.again,
		Invalidates: a.inv, Handle: a.handle, Solicited: a.solicit, Parts: a.parts,
	}
	r := m.deliver(fl, s, a.start, a.count, a.print, a.work)
	if a.ended {
		r.mtu, r.op.Length = a.mtu, uint32(a.length)
	}
	m.assembler.end(a)
}
