package main

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// connectionList keeps ended connections, ordered by number, in packed form. What does not fit into memory
// goes to a temporary file in sorted runs, which are merged when the list is read.
type connectionList struct {
	limit int // bytes held in memory
	buf   []byte
	index []packed
	file  *os.File
	size  int64 // of the file
	runs  []extent
	err   error // the temporary file cannot be made or written
	lost  int   // connections that are not in the list for that reason
}

// packed is a connection in the buffer.
type packed struct{ id, from, to int }

// extent is a part of the file.
type extent struct{ from, to int64 }

// listedBytes is how much of the list is held in memory, packed and with its
// index.
const listedBytes = 8 << 20

func (l *connectionList) add(c *connection) {
	const entry = 24
	if len(l.buf)+entry*len(l.index) >= l.limit {
		l.spill()
	}
	if l.err != nil {
		l.lost++
		return
	}
	from := len(l.buf)
	p := packer{b: l.buf}
	p.connection(c)
	l.buf = p.b
	l.index = append(l.index, packed{c.ID, from, len(l.buf)})
}

// spill writes what is in memory to the file.
func (l *connectionList) spill() {
	if l.err != nil {
		return
	}
	if l.file == nil {
		if l.file, l.err = os.CreateTemp("", "rpcrdma-connections-"); l.err != nil {
			return
		}
		_ = os.Remove(l.file.Name()) // it goes with the program, however that ends
	}
	l.sort()
	w := bufio.NewWriterSize(l.file, 64<<10)
	from := l.size
	for _, e := range l.index {
		b := l.buf[e.from:e.to]
		var n [binary.MaxVarintLen64]byte
		k := binary.PutUvarint(n[:], uint64(len(b)))
		_, _ = w.Write(n[:k])
		_, _ = w.Write(b)
		l.size += int64(k + len(b))
	}
	if l.err = w.Flush(); l.err != nil {
		l.lost += len(l.index)
		l.size = from
	} else {
		l.runs = append(l.runs, extent{from, l.size})
	}
	l.buf, l.index = l.buf[:0], l.index[:0]
}

// each calls f for all connections ordered by number. The argument of f is valid during the call.
func (l *connectionList) each(f func(*connection)) error {
	l.sort()
	sources := make(sources, 0, len(l.runs)+1)
	for _, r := range l.runs {
		s := &source{r: bufio.NewReaderSize(io.NewSectionReader(l.file, r.from, r.to-r.from), 16<<10)}
		if err := s.next(); err != nil {
			return err
		}
		sources = append(sources, s)
	}
	if len(l.index) > 0 {
		s := &source{list: l}
		_ = s.next()
		sources = append(sources, s)
	}
	heap.Init(&sources)
	for len(sources) > 0 {
		s := sources[0]
		f(&s.c)
		switch err := s.next(); {
		case err == nil:
			heap.Fix(&sources, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&sources)
		default:
			return err
		}
	}
	return nil
}

func (l *connectionList) sort() {
	slices.SortFunc(l.index, func(a, b packed) int { return cmp.Compare(a.id, b.id) })
}

func (l *connectionList) close() {
	if l.file != nil {
		l.file.Close()
	}
}

// source gives the connections of a run, or those in memory.
type source struct {
	r    *bufio.Reader
	list *connectionList
	at   int // in list
	b    []byte
	c    connection
}

// next reads the next connection. It returns io.EOF if there is none.
func (s *source) next() error {
	if s.list != nil {
		if s.at == len(s.list.index) {
			return io.EOF
		}
		e := s.list.index[s.at]
		s.at++
		return s.unpack(s.list.buf[e.from:e.to])
	}
	n, err := binary.ReadUvarint(s.r)
	if err != nil {
		return err
	}
	s.b = slices.Grow(s.b[:0], int(n))[:n]
	if _, err := io.ReadFull(s.r, s.b); err != nil {
		return io.ErrUnexpectedEOF
	}
	return s.unpack(s.b)
}

func (s *source) unpack(b []byte) error {
	p := packer{b: b, reads: true}
	s.c = connection{Connection: new(rdma.Connection)}
	p.connection(&s.c)
	if p.short {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// sources is a heap by number.
type sources []*source

func (s sources) Len() int { return len(s) }

func (s sources) Less(i, j int) bool { return s[i].c.ID < s[j].c.ID }

func (s sources) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

func (s *sources) Push(x any) { *s = append(*s, x.(*source)) }

func (s *sources) Pop() any {
	x := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return x
}

// packer writes or reads the listed fields of a connection: one function walks through them for both, so that
// they cannot differ.
type packer struct {
	b     []byte
	reads bool
	short bool
}

func (p *packer) connection(c *connection) {
	number(p, &c.ID)
	number(p, &c.Fabric)
	number(p, &c.State)
	number(p, &c.MTU)
	number(p, &c.client)
	number(p, &c.calls.Ended)
	number(p, &c.calls.Unanswered)
	number(p, &c.calls.Incomplete)
	p.ref(&c.First)
	p.ref(&c.Last)
	c.Terminated = string(p.bytes([]byte(c.Terminated)))
	number(p, &c.Tenant)
	p.tunnel(&c.Tunnel)
	for side := range c.Ends {
		p.end(&c.Ends[side])
		p.setup(&c.Setup[side])
		p.counters(&c.Sent[side])
	}
}

func (p *packer) tunnel(t **rdma.Tunnel) {
	has := *t != nil
	p.flag(&has)
	if !has {
		return
	}
	if *t == nil {
		*t = new(rdma.Tunnel)
	}
	(*t).Type = string(p.bytes([]byte((*t).Type)))
	number(p, &(*t).Version)
	p.flag(&(*t).HasID)
	number(p, &(*t).ID)
	p.addr(&(*t).Ends[0])
	p.addr(&(*t).Ends[1])
}

func (p *packer) end(e *rdma.End) {
	p.addr(&e.Addr)
	number(p, &e.Port)
	number(p, &e.QPN)
}

func (p *packer) addr(a *netip.Addr) {
	b, _ := a.MarshalBinary()
	b = p.bytes(b)
	if p.reads && a.UnmarshalBinary(b) != nil {
		*a = netip.Addr{}
	}
}

func (p *packer) setup(s *rdma.Setup) {
	p.flag(&s.Seen)
	if !s.Seen {
		return
	}
	p.ref(&s.Frame)
	number(p, &s.StartPSN)
	number(p, &s.PathMTU)
	number(p, &s.ResponderDepth)
	number(p, &s.InitiatorDepth)
	number(p, &s.RetryCount)
	number(p, &s.RNRRetryCount)
	number(p, &s.AckTimeout)
	number(p, &s.ServiceID)
	number(p, &s.MPARevision)
	p.flag(&s.Markers)
	p.flag(&s.CRC)
	p.flag(&s.PeerToPeer)
	p.flag(&s.Private.Present)
	number(p, &s.Private.Version)
	p.flag(&s.Private.RemoteInvalidate)
	number(p, &s.Private.SendSize)
	number(p, &s.Private.ReceiveSize)
	b := p.bytes(s.PrivateBytes[:min(int(s.PrivateBytesLen), len(s.PrivateBytes))])
	s.PrivateBytesLen = uint8(copy(s.PrivateBytes[:], b))
}

func (p *packer) flag(v *bool) {
	n := uint8(0)
	if *v {
		n = 1
	}
	number(p, &n)
	*v = n != 0
}

// bytes is a string of bytes, read into memory of its own.
func (p *packer) bytes(v []byte) []byte {
	n := len(v)
	number(p, &n)
	if !p.reads {
		p.b = append(p.b, v...)
		return v
	}
	if uint(n) > uint(len(p.b)) {
		p.short, n = true, 0
	}
	v, p.b = p.b[:n:n], p.b[n:]
	return v
}

func (p *packer) ref(r *rdma.Ref) {
	at := uint64(r.Time)
	number(p, &at)
	r.Time = int64(at)
	number(p, &r.Number)
}

func (p *packer) counters(n *rdma.Counters) {
	for _, v := range [...]*uint64{
		&n.Packets, &n.Bytes, &n.Sends, &n.Writes, &n.Reads, &n.Atomics, &n.WriteBytes, &n.ReadBytes,
		&n.Acks, &n.Retransmitted, &n.NAKs, &n.RNRs, &n.ECN, &n.CNPs, &n.Gaps, &n.BadCRC, &n.Resyncs,
	} {
		number(p, v)
	}
}

func number[T ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64](p *packer, v *T) {
	if !p.reads {
		p.b = binary.AppendUvarint(p.b, uint64(*v))
		return
	}
	n, k := binary.Uvarint(p.b)
	if k <= 0 {
		p.short, p.b = true, nil
		return
	}
	*v, p.b = T(n), p.b[k:]
}
