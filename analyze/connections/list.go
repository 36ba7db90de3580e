package connections

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/heap"
)

// List keeps connections, ordered by number, in packed form. What does not fit into memory goes to a temporary file in
// sorted runs, which are merged when the list is read.
type List struct {
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

// listBytes is how much of the list is held in memory, packed and with its index.
const listBytes = 8 << 20

// NewList makes a list that holds at most limit bytes in memory, and no more than 8 MiB.
func NewList(limit int) *List { return &List{limit: min(limit, listBytes)} }

// Err says why connections are not in the list, and Lost is how many: they do not fit into memory, and a temporary
// file fails.
func (l *List) Err() error { return l.err }

// Lost is how many connections are not in the list.
func (l *List) Lost() int { return l.lost }

// Add adds a connection, of which nothing is kept but a copy.
func (l *List) Add(c *Connection) {
	const entry = 24
	if len(l.buf)+entry*len(l.index) >= l.limit {
		l.spill()
	}
	if l.err != nil {
		l.lost++
		return
	}
	from := len(l.buf)
	k := state.NewWriter(l.buf)
	c.place(k)
	l.buf = k.Bytes()
	l.index = append(l.index, packed{c.ID, from, len(l.buf)})
}

// spill writes what is in memory to the file.
func (l *List) spill() {
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

// Each calls f for all connections ordered by number. The argument of f is valid during the call.
func (l *List) Each(f func(*Connection)) error {
	l.sort()
	sources := make([]*source, 0, len(l.runs)+1)
	for _, r := range l.runs {
		s := &source{r: bufio.NewReaderSize(io.NewSectionReader(l.file, r.from, r.to-r.from), 16<<10)}
		if err := s.next(); err != nil {
			return err
		}
		sources = heap.Push(sources, s, (*source).before)
	}
	if len(l.index) > 0 {
		s := &source{list: l}
		_ = s.next()
		sources = heap.Push(sources, s, (*source).before)
	}
	for len(sources) > 0 {
		s := sources[0]
		f(&s.c)
		switch err := s.next(); {
		case err == nil:
			heap.Fix(sources, (*source).before)
		case errors.Is(err, io.EOF):
			_, sources = heap.Pop(sources, (*source).before)
		default:
			return err
		}
	}
	return nil
}

func (l *List) sort() {
	slices.SortFunc(l.index, func(a, b packed) int { return cmp.Compare(a.id, b.id) })
}

// Close removes the temporary file.
func (l *List) Close() {
	if l.file != nil {
		l.file.Close()
	}
}

// source gives the connections of a run, or those in memory.
type source struct {
	r    *bufio.Reader
	list *List
	at   int // in list
	b    []byte
	c    Connection
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
	k := state.NewReader(b)
	s.c = Connection{Connection: new(rdma.Connection)}
	s.c.place(k)
	return k.End()
}

// before orders sources by the numbers of their connections.
func (s *source) before(o *source) bool { return s.c.ID < o.c.ID }
