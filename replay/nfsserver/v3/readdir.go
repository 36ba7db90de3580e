package v3

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Cookies of the two entries that the store does not have.
const (
	cookieSelf   = 1
	cookieParent = 2
)

// dirEnd is the size of what follows the last entry: no entry follows, eof.
const dirEnd = 8

// batch is how many entries to ask the store for at a time, at most.
const batch = 256

// dirWriter appends entries of a directory as long as they fit.
type dirWriter struct {
	s    *server
	c    *nfsserver.Call
	plus bool
	// The reply has room for room bytes more; of them names for names bytes
	// (dircount of READDIRPLUS).
	room, names int
	count       int
}

func (s *server) readdir(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.readdirArgs
	if !c.Decode(args) {
		return
	}
	dir, err := s.parse(args.Dir.Data)
	if err != nil {
		s.failAttr(c, err, dir, &st.attr)
		return
	}
	w := dirWriter{s: s, c: c, room: int(min(args.Count, s.opt.MaxIO))}
	w.names = w.room
	s.list(&w, dir, args.Cookie, args.Cookieverf)
}

func (s *server) readdirplus(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.readdirplusArgs
	if !c.Decode(args) {
		return
	}
	dir, err := s.parse(args.Dir.Data)
	if err != nil {
		s.failAttr(c, err, dir, &st.attr)
		return
	}
	w := dirWriter{s: s, c: c, plus: true, room: int(min(args.Maxcount, s.opt.MaxIO)), names: int(min(args.Dircount, s.opt.MaxIO))}
	s.list(&w, dir, args.Cookie, args.Cookieverf)
}

// list answers READDIR and READDIRPLUS.
func (s *server) list(w *dirWriter, dir store.Handle, cookie uint64, verf [8]byte) {
	c := w.c
	st, list := c.State.(*state), &c.State.(*state).list
	verifier := binary.BigEndian.Uint64(verf[:])
	from := cookie
	if from < store.FirstCookie {
		from = 0
		if cookie != 0 {
			verifier = 0 // the store has not seen its cookies yet
		}
	}
	if cookie == 0 {
		verifier = 0
	}
	// An entry takes 24 bytes at least.
	list.Max, list.Attrs = min(max(w.room/24, 1), batch), w.plus
	if err := s.store.ReadDir(&c.Cred, dir, from, verifier, list); err != nil {
		s.failAttr(c, err, dir, &st.attr)
		return
	}
	start := len(c.Out)
	ok(c)
	c.Out = s.postAttr(c.Out, &list.Dir)
	c.Out = binary.BigEndian.AppendUint64(c.Out, list.Verifier)
	w.room -= len(c.Out) - start - 4 + dirEnd // the status is not counted
	self, done := list.Dir, false
	if cookie < cookieSelf {
		done = !w.add(".", cookieSelf, &self, true)
	}
	if cookie < cookieParent && !done {
		known := s.parent(c, dir, &self, &st.attr)
		done = !w.add("..", cookieParent, &st.attr, known)
	}
	for !done {
		for i := range list.Entries {
			e := &list.Entries[i]
			e.Attr.Handle = e.Handle
			if done = !w.addBytes(e.Name, e.Cookie, &e.Attr, e.HasAttr); done {
				break
			}
			from = e.Cookie
		}
		if done || list.EOF {
			break
		}
		if err := s.store.ReadDir(&c.Cred, dir, from, list.Verifier, list); err != nil {
			// What is there already is good; the client learns of the error
			// when it asks for the rest.
			if done = true; w.count == 0 {
				c.Undo(0)
				s.failAttr(c, err, dir, &st.attr)
				return
			}
		}
	}
	if done && w.count == 0 {
		c.Undo(0)
		s.failAttr(c, store.ErrTooSmall, dir, &st.attr)
		return
	}
	c.Out = xdr.AppendBool(c.Out, false)
	c.Out = xdr.AppendBool(c.Out, !done)
	c.Send()
}

// parent fills a with the attributes of "..". If c may not know them, only the
// file ID is good: that of the directory itself.
func (s *server) parent(c *nfsserver.Call, dir store.Handle, self, a *store.Attr) bool {
	up, err := s.store.Parent(&c.Cred, dir)
	if err == nil {
		err = s.store.GetAttr(up, a)
	}
	if err != nil {
		*a = *self
	}
	return err == nil
}

func (w *dirWriter) add(name string, cookie uint64, a *store.Attr, known bool) bool {
	return w.addBytes([]byte(name), cookie, a, known)
}

// addBytes appends an entry and reports whether it did fit.
func (w *dirWriter) addBytes(name []byte, cookie uint64, a *store.Attr, known bool) bool {
	// entry3 with the word that says that it follows.
	size := 4 + 8 + xdr.SizeOpaque(len(name)) + 8
	info := size
	if w.plus {
		size += 4 + 4
		if known {
			size += 84 + 4 + store.HandleSize
		}
	}
	if size > w.room || info > w.names && w.count > 0 {
		return false
	}
	w.room -= size
	w.names -= info
	w.count++
	b := xdr.AppendBool(w.c.Out, true)
	b = xdr.AppendUint64(b, a.Handle.ID)
	b = xdr.AppendOpaque(b, name)
	b = xdr.AppendUint64(b, cookie)
	if w.plus {
		b = xdr.AppendBool(b, known)
		if known {
			b = w.s.appendAttr(b, a)
		}
		b = xdr.AppendBool(b, known)
		if known {
			b = w.s.appendHandle(b, a.Handle)
		}
	}
	w.c.Out = b
	return true
}
