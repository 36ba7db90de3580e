package iwarp

import (
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// began tells the watcher of the first FPDU of an operation that the sender of h
// asks for, and returns the number that it has from then on.
func (o *operations) began(h *half, kind rdma.WorkKind, handle uint32, offset uint64, length uint32, ref rdma.Ref) uint64 {
	c := h.conn
	if c.t.watcher == nil {
		return 0
	}
	w := &c.t.work
	*w = rdma.Work{Seq: o.works, Kind: kind, From: c.side(h), Handle: handle, Offset: offset, Length: length}
	o.works++
	c.t.watcher.WorkStarted(c.c, w, ref)
	return w.Seq
}

// carried tells the watcher of a part of an operation that the sender of h asked
// for.
func (o *operations) carried(h *half, work uint64, bytes uint32, again bool, ref rdma.Ref) {
	if c := h.conn; c.t.watcher != nil {
		c.t.watcher.WorkData(c.c, c.side(h), work, bytes, again, ref)
	}
}

// written tells the watcher which Writes are acknowledged up to the stream offset
// end.
func (o *operations) written(h *half, end uint64, ref rdma.Ref) {
	o.unwritten = max(o.unwritten, o.writes.oldest())
	for ; o.unwritten < o.writes.next; o.unwritten++ {
		w := o.writes.at(o.unwritten)
		under := o.writing && o.writeSeq == o.unwritten && !w.done
		if w.end > end || under {
			return
		}
		h.conn.t.watcher.WorkAcked(h.conn.c, h.conn.side(h), w.work, ref)
	}
}

// expect is where the stream continues before a segment, and whether that is within a message.
func (c *Conn) expect(dir int, f *link.Frame) (next uint64, inside bool) {
	if f.TCPFlags&tcp.SYN != 0 && c.scales[dir] == 0 {
		c.scales[dir] = windowScale(f)
	}
	h := &c.halves[dir]
	return c.streams[dir].Next(), h.more || h.have > 0
}

// watch tells the watcher of a TCP segment, after it has been taken. next is where the stream
// continued before, and inside whether that was within a message.
func (c *Conn) watch(dir int, f *link.Frame, ref rdma.Ref, next uint64, inside bool) {
	if c.verdict != Yes || c.replaced {
		return
	}
	h := &c.halves[dir]
	s := &c.t.saw
	*s = rdma.Sighting{Ref: ref, From: c.side(h), Class: rdma.ClassSegment, Marked: f.ECN == 3, Bytes: uint32(f.PayloadLen)}
	if b := &c.bases[dir]; b.known {
		if at := position(b, &c.streams[dir], f.TCPSeq); at >= 0 {
			s.Placed, s.Start, s.End = true, uint64(at), uint64(at)+uint64(f.PayloadLen)
			s.Inside = inside && s.Start == next
		}
	}
	if b := &c.bases[dir^1]; b.known && f.TCPFlags&(flagACK|tcp.SYN|tcp.RST) == flagACK {
		if at := position(b, &c.streams[dir^1], f.TCPAck); at >= 0 {
			s.HasAck, s.Acked = true, uint64(at)
			s.ZeroWindow = f.TCPWindow == 0
			s.Window, s.WindowScale = f.TCPWindow, -1
			if c.scales[0] > 0 && c.scales[1] > 0 {
				s.WindowScale = int8(c.scales[dir] - 1)
			} else if c.scales[0] < 0 || c.scales[1] < 0 {
				s.WindowScale = 0
			}
		}
	}
	c.t.watcher.Saw(c.c, s)
}

// position is where a sequence number is in a stream, as near to its end as it can
// be; negative before its beginning.
func position(b *base, s *tcp.Stream, sequence uint32) int64 {
	return int64(s.Next()) + int64(int32(sequence-b.sequence-uint32(s.Next())))
}

// windowScale is the shift count of a SYN plus 1; −1 if it has none, so that neither side scales
// its windows (RFC 7323, section 2.2), and 0 if the capture has cut the options.
func windowScale(f *link.Frame) int8 {
	if len(f.Transport) < 20 {
		return 0
	}
	head := int(f.Transport[12]>>4) * 4
	cut := len(f.Transport) < head
	for b := f.Transport[20:]; len(b) > 0 && b[0] != 0; {
		if b[0] == 1 {
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			break
		}
		if b[0] == 3 && b[1] == 3 {
			return int8(min(b[2], maxScale)) + 1
		}
		b = b[b[1]:]
	}
	if cut {
		return 0
	}
	return -1
}

// maxScale is the largest shift count (RFC 7323, section 2.3).
const maxScale = 14
