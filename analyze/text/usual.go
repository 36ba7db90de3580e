package text

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/digits"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// prepared is a line of a procedure and two hosts as it is written, up to the latency. Left out are the time, the XID, the file
// and the latency: there are zeros and spaces in their places.
type prepared struct {
	procedure        *xdr.Procedure
	program, version uint32
	ends             [2]rdma.End
	from             rdma.Side
	width            int // of all hosts at that time
	line             int // width of the line
	text             []byte
	xid, file        int // where they are in text
}

// place is how a file is written: its path as it is, or the short form of its handle.
type place struct {
	stamp uint64 // of the rpc.Place
	plain bool   // it is written as it is
	known bool   // it has a path
	text  []byte
}

const (
	timeWidth = len("05:33:11.644754")
	noChunks  = len("- ") // in front of the latency
)

// usual appends the line of a usual transaction as any does; false for all others. Usual is a call over RDMA without chunks
// and marks, listed with the time of day and without colors, about a file that fits.
func (s *Lister) usual(b []byte, v *rpc.View) ([]byte, bool) {
	tx := v.Tx
	if s.Color || s.Name != nil || s.Width < 0 || s.Clock.Format.Style != TimeOfDay || s.Clock.Format.Nano ||
		tx.State != transaction.Complete || tx.Retransmits|len(tx.Notes) != 0 || !tx.Call.Seen() || !tx.Reply.Seen() ||
		!tx.Call.Transport || !tx.Call.Header.Plain() || v.Procedure == nil {
		return b, false
	}
	latency, size, ok := short(uint64(max(rdma.Between(tx.Call.First.Time, tx.Reply.Last.Time), 0)))
	status := "ok"
	if !v.Succeeded() {
		status = ShortStatus(v)
	}
	f := v.File()
	if !ok || len(status) > statusWidth || f == nil || f.Handle == nil {
		return b, false
	}
	p, k := s.place(v.Names, f), s.prepared(v)
	if p == nil || k == nil {
		return b, false
	}
	at := len(b)
	b = append(b, k.text...)
	if !p.put(b[at+k.file:len(b)-noChunks], f) {
		return b[:at], false
	}
	line := b[at:]
	s.Clock.put((*[timeWidth]byte)(line), tx.Call.First.Time)
	binary.BigEndian.PutUint64(line[k.xid:], digits.HexWord(tx.XID))
	b = binary.LittleEndian.AppendUint64(b, latency)[:len(b)+size]
	if status == "ok" {
		return append(b, ' ', 'o', 'k'), true
	}
	return append(append(b, ' '), status...), true
}

// put writes what a transaction is about where there are spaces; false if that does not fit.
func (p *place) put(d []byte, f *rpc.File) bool {
	path := p.text
	if !p.known && len(f.Name) > 0 {
		path = nil
	}
	var room [64]byte
	extent := room[:0]
	switch {
	case f.HasRange:
		extent = appendRange(append(extent, ' '), f)
	case f.To != nil && len(f.To) > len(room)-4:
		return false
	case f.To != nil:
		extent = append(append(extent, " -> "...), f.To...)
	}
	if len(path)+len("/")+len(f.Name)+len(extent) >= len(d) {
		return false
	}
	d = d[copy(d, path):]
	if f.Name != nil {
		if p.known {
			d[0] = '/'
			d = d[1:]
		}
		d = d[copy(d, f.Name):]
	}
	if len(extent) > 0 {
		copy(d, extent)
	}
	return true
}

// place returns how a file is written; nil if that is not kept, or something has to be escaped.
func (s *Lister) place(names *rpc.Names, f *rpc.File) *place {
	p := names.Place(f.Handle)
	if p == nil || f.Name != nil && !printable.Plain(f.Name) || f.To != nil && (f.HasRange || !printable.Plain(f.To)) {
		return nil
	}
	k := &s.places[uint(p.Slot)%rpc.Places]
	if k.stamp != p.Stamp {
		k.stamp, k.plain, k.known = p.Stamp, printable.Plain(p.Path), len(p.Path) > 0
		if k.text = append(k.text[:0], p.Path...); !k.known {
			k.text = Handle(k.text, f.Handle)
		}
	}
	if !k.plain {
		return nil
	}
	return k
}

// prepared returns the line; nil if it has less room for the file than each file gets, or the transaction is not one of RDMA.
func (s *Lister) prepared(v *rpc.View) *prepared {
	tx := v.Tx
	c := tx.Connection
	k := &s.kept[(4*uint(c.ID)+uint(tx.Procedure))%uint(len(s.kept))]
	if k.procedure == v.Procedure && k.program == tx.Program && k.version == tx.Version && k.from == tx.From && k.width == s.hosts.width && k.line == s.Width &&
		k.ends[0].Is(&c.Ends[0]) && k.ends[1].Is(&c.Ends[1]) && c.Fabric != rdma.TCP && c.Fabric != rdma.UDP {
		return k
	}
	if !v.Usual() && v.Args() == nil {
		return nil // it may be a COMPOUND
	}
	if _, compound := v.MinorVersion(); compound || c.Fabric == rdma.TCP || c.Fabric == rdma.UDP {
		return nil
	}
	hosts := s.hosts.pair(s.Name, tx.Client().Addr, tx.Server().Addr, c.ID)
	called := s.called(v)
	l := line{b: k.text[:0]}
	l.pad(timeWidth + 1)
	l.b, l.col = append(l.b, hosts.text...), l.col+hosts.columns
	xid := len(l.b)
	l.str("01234567 ")
	l.b, l.col = append(l.b, called.b...), l.col+called.col
	file := len(l.b)
	end := s.Width
	if end == 0 {
		end = defaultWidth
	}
	end -= 1 + statusWidth + latencyWidth + noChunks
	if file != l.col || end-1-l.col < leastFile {
		k.procedure = nil
		return nil
	}
	l.pad(end)
	l.str("- ")
	*k = prepared{v.Procedure, tx.Program, tx.Version, c.Ends, tx.From, s.hosts.width, s.Width, l.b, xid, file}
	return k
}

// short is a duration below a second as duration writes it, in latencyWidth columns: so many bytes, the first the lowest.
// ok is false for those that take less room or are longer.
func short(d uint64) (text uint64, size int, ok bool) {
	const (
		micro = 0xc2 | 0xb5<<8 | 's'<<16 // µs
		milli = 'm' | 's'<<8
	)
	switch {
	case d < 1000 || d >= 999_950_000:
		return 0, 0, false
	case d < 10_000:
		return digits.PointWord(uint32(d), 3) | micro<<40, latencyWidth + 1, true
	case d < 99_995:
		return digits.PointWord(uint32(d+5)/10, 2) | micro<<40, latencyWidth + 1, true
	case d < 999_950:
		return digits.PointWord(uint32(d+50)/100, 1) | micro<<40, latencyWidth + 1, true
	case d < 9_999_500:
		return digits.PointWord(uint32(d+500)/1000, 3) | milli<<40, latencyWidth, true
	case d < 99_995_000:
		return digits.PointWord(uint32(d+5000)/10_000, 2) | milli<<40, latencyWidth, true
	}
	return digits.PointWord(uint32(d+50_000)/100_000, 1) | milli<<40, latencyWidth, true
}
