package split

import (
	"errors"
	"io"
	"net/netip"
	"syscall"

	"github.com/rpcrdma/toolkit/capture"
)

// fileBuffer is how much is written to a file at once.
const fileBuffer = 32 << 10

// maxMet bounds the connections that are remembered, of a file and of all.
const maxMet = 1 << 16

// file is one of the captures that are written.
type file struct {
	name   Name
	w      *capture.Writer // nil before the first packet
	stream io.WriteCloser  // nil while it is not open
	met    map[*conn]struct{}

	newer, older *file // among the open ones
}

// meets reports whether a connection is new in the file.
func (f *file) meets(c *conn) bool {
	if _, ok := f.met[c]; ok {
		return false
	}
	if f.met == nil || len(f.met) >= maxMet {
		f.met = make(map[*conn]struct{})
	}
	f.met[c] = struct{}{}
	return true
}

// files are all that are written. Of those only some are open: the ones that
// were written last.
type files struct {
	opt   *Options
	stats *Stats
	list  []*file
	byKey map[fileKey]*file
	conns map[*conn]*file

	open           int
	newest, oldest *file
}

// fileKey tells files apart.
type fileKey struct {
	addr   netip.Addr // of Client and Server
	tenant uint64     // likewise
	number int64
	rest   bool
}

// of is the file of a connection; nil if there are too many.
func (s *files) of(c *conn) *file {
	client, server := c.addresses()
	n := Name{}
	if c.tenant != 0 {
		n.Tunnel = c.tunnel
	}
	k := fileKey{}
	switch s.opt.By {
	case Client:
		n.Client = client
		k.addr, k.tenant = n.Client, c.tenant
	case Server:
		n.Server = server
		k.addr, k.tenant = n.Server, c.tenant
	case Connection:
		n.Client, n.Server, n.Connection = client, server, c.number
		k.number = int64(c.number)
	}
	if f := s.conns[c]; f != nil {
		if f == s.byKey[k] {
			return f
		}
		s.stats.Divided++
	}
	f := s.get(k, n)
	if s.conns == nil || len(s.conns) >= maxMet {
		s.conns = make(map[*conn]*file)
	}
	s.conns[c] = f
	return f
}

// interval is the file of an interval, counted from start.
func (s *files) interval(n, start int64) *file {
	return s.get(fileKey{number: n}, Name{Start: start + n*int64(s.opt.Interval)})
}

// rest is the file of packets that belong nowhere.
func (s *files) rest() *file {
	if s.opt.By == One {
		return s.get(fileKey{}, Name{})
	}
	return s.get(fileKey{rest: true}, Name{Rest: true})
}

func (s *files) get(k fileKey, n Name) *file {
	if f := s.byKey[k]; f != nil {
		return f
	}
	if len(s.list) >= s.opt.Files {
		return nil
	}
	n.N = len(s.list) + 1
	f := &file{name: n}
	if s.byKey == nil {
		s.byKey = make(map[fileKey]*file)
	}
	s.byKey[k] = f
	s.list = append(s.list, f)
	s.stats.Files++
	return f
}

// write adds a packet to a file, which is opened if need be.
func (s *files) write(f *file, p *capture.Packet) error {
	if f != s.newest {
		s.unlink(f)
		if f.stream == nil {
			if err := s.reopen(f); err != nil {
				return err
			}
		}
		f.older = s.newest
		if f.older != nil {
			f.older.newer = f
		} else {
			s.oldest = f
		}
		s.newest = f
	}
	return f.w.Write(p)
}

// unlink takes a file out of the list of open ones.
func (s *files) unlink(f *file) {
	if f.stream == nil {
		return
	}
	if f.newer != nil {
		f.newer.older = f.older
	} else if s.newest == f {
		s.newest = f.older
	}
	if f.older != nil {
		f.older.newer = f.newer
	} else if s.oldest == f {
		s.oldest = f.newer
	}
	f.newer, f.older = nil, nil
}

func (s *files) reopen(f *file) error {
	for s.open >= s.opt.OpenFiles {
		if err := s.shut(s.oldest); err != nil {
			return err
		}
	}
	stream, err := s.opt.Open(f.name, f.w != nil)
	for s.oldest != nil && errors.Is(err, syscall.EMFILE) { // a process may be allowed fewer files
		if err := s.shut(s.oldest); err != nil {
			return err
		}
		stream, err = s.opt.Open(f.name, f.w != nil)
	}
	if err != nil {
		return err
	}
	f.stream = stream
	s.open++
	if f.w == nil {
		f.w = capture.NewWriter(f.stream, capture.WriterOptions{
			Taps: s.opt.Taps, Application: s.opt.Application, Buffer: fileBuffer,
		})
	} else {
		f.w.Attach(f.stream)
	}
	return nil
}

// shut closes a file, which may be opened again.
func (s *files) shut(f *file) error {
	s.unlink(f)
	err := f.w.Detach()
	if err != nil {
		err = errors.Join(err, f.cut())
	}
	err = errors.Join(err, f.stream.Close())
	if _, stored := f.w.Stored(); err != nil && stored == 0 {
		if r, ok := f.stream.(Remover); ok {
			err = errors.Join(err, r.Remove())
		}
	}
	f.stream = nil
	s.open--
	return err
}

// cut leaves the whole records of a file that could not be written to its end.
func (f *file) cut() error {
	t, ok := f.stream.(Truncater)
	if !ok {
		return nil
	}
	_, whole := f.w.Stored()
	return t.Truncate(whole)
}

// stored counts the files that hold packets, and these packets.
func (s *files) stored() (n int, all uint64) {
	for _, f := range s.list {
		if f.w == nil {
			continue
		}
		if packets, _ := f.w.Stored(); packets > 0 {
			n++
			all += packets
		}
	}
	return n, all
}

func (s *files) close() error {
	var err error
	for s.newest != nil {
		err = errors.Join(err, s.shut(s.newest))
	}
	return err
}
