package mutantstore

import (
	"bytes"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

type writing func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error

// writes makes a kind of WRITE.
func writes(name, what string, f writing) Kind {
	return Kind{name, what, func(m *Store) {
		m.write = func(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
			if len(data) == 0 {
				return m.ACLStore.Write(c, h, offset, data, stable, w)
			}
			m.hit()
			return f(m, c, h, offset, data, stable, w)
		}
	}}
}

// reads makes a kind of READ, by a change of what was read. f may not change the bytes.
func reads(name, what string, f func(r *store.ReadResult) bool) Kind {
	return Kind{name, what, func(m *Store) {
		m.read = func(c *store.Cred, h store.Handle, offset uint64, count uint32, r *store.ReadResult) error {
			err := m.ACLStore.Read(c, h, offset, count, r)
			if err == nil && len(r.Data) > 0 && f(r) {
				m.hit()
			}
			return err
		}
	}}
}

// part writes a part of the data, and the rest as zeros where it makes the file longer, so
// that its size is right.
func part(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc, from, to int) error {
	var a store.Attr
	if err := m.ACLStore.GetAttr(h, &a); err != nil {
		return err
	}
	if end := offset + uint64(len(data)); end > a.Size {
		if err := m.ACLStore.Write(c, h, end-1, []byte{0}, stable, w); err != nil {
			return err
		}
	}
	if from >= to {
		// Times have to move on.
		var b store.ReadResult
		if err := m.ACLStore.Read(&store.Cred{}, h, offset, 1, &b); err != nil {
			return err
		}
		defer b.Release()
		return m.ACLStore.Write(c, h, offset, bytes.Clone(b.Data), stable, w)
	}
	return m.ACLStore.Write(c, h, offset+uint64(from), data[from:to], stable, w)
}

// changed are bytes that somebody else owns, changed.
func changed(b []byte, f func(b []byte)) []byte {
	b = bytes.Clone(b)
	f(b)
	return b
}

var dataKinds = []Kind{
	writes("lost-write", "WRITE stores zeros", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		return m.ACLStore.Write(c, h, offset, make([]byte, len(data)), stable, w)
	}),
	writes("ignored-write", "WRITE does nothing, not even to the size", func(m *Store, _ *store.Cred, h store.Handle, _ uint64, _ []byte, _ bool, w *store.Wcc) error {
		return m.unchanged(h, w)
	}),
	writes("unstored-write", "WRITE sets the size and stores nothing", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		return part(m, c, h, offset, data, stable, w, 0, 0)
	}),
	writes("half-write", "WRITE stores the first half, and reports all as written", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		return part(m, c, h, offset, data, stable, w, 0, (len(data)+1)/2-1)
	}),
	writes("torn-write", "the last byte of each WRITE is not stored", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		return part(m, c, h, offset, data, stable, w, 0, len(data)-1)
	}),
	writes("shifted-write", "WRITE stores its data one byte further", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		return m.ACLStore.Write(c, h, offset+1, data, stable, w)
	}),
	writes("repeated-write", "WRITE stores its data a second time behind the first", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		if err := m.ACLStore.Write(c, h, offset, data, stable, w); err != nil {
			return err
		}
		return m.ACLStore.Write(c, h, offset+uint64(len(data)), data, stable, w)
	}),
	writes("flipped-write", "one bit of each WRITE is stored wrongly", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		return m.ACLStore.Write(c, h, offset, changed(data, func(b []byte) { b[len(b)/2] ^= 1 }), stable, w)
	}),
	writes("swapped-write", "WRITE stores the halves of its data in the wrong order", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		n := len(data) / 2
		return m.ACLStore.Write(c, h, offset, append(bytes.Clone(data[n:]), data[:n]...), stable, w)
	}),
	writes("misled-write", "WRITE goes to the file written before this one", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		m.mu.Lock()
		to := m.last
		m.last = h
		m.mu.Unlock()
		var a store.Attr
		if to != (store.Handle{}) && m.ACLStore.GetAttr(to, &a) == nil {
			if err := m.ACLStore.Write(&store.Cred{}, to, offset, data, stable, w); err == nil {
				return part(m, c, h, offset, data, stable, w, 0, 0)
			}
		}
		return m.ACLStore.Write(c, h, offset, data, stable, w)
	}),
	writes("cutting-write", "WRITE truncates the file behind its data", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		if err := m.ACLStore.Write(c, h, offset, data, stable, w); err != nil {
			return err
		}
		return m.ACLStore.SetAttr(&store.Cred{}, h, &store.SetAttr{Mask: store.SetSize, Size: offset + uint64(len(data))}, w)
	}),
	writes("padded-write", "WRITE makes the file a multiple of 4 KiB", func(m *Store, c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
		if err := m.ACLStore.Write(c, h, offset, data, stable, w); err != nil || w.After.Size%4096 == 0 {
			return err
		}
		return m.ACLStore.SetAttr(&store.Cred{}, h, &store.SetAttr{Mask: store.SetSize, Size: (w.After.Size + 4095) &^ 4095}, w)
	}),

	reads("spoilt-read", "the last byte of each READ is wrong", func(r *store.ReadResult) bool {
		r.Data = changed(r.Data, func(b []byte) { b[len(b)-1] ^= 0x5a })
		return true
	}),
	reads("zero-read", "READ returns zeros", func(r *store.ReadResult) bool {
		r.Data = make([]byte, len(r.Data))
		return true
	}),
	reads("shifted-read", "READ returns its data one byte later", func(r *store.ReadResult) bool {
		r.Data = append([]byte{r.Data[len(r.Data)-1]}, r.Data[:len(r.Data)-1]...)
		return true
	}),
	reads("short-read", "READ returns half of the data", func(r *store.ReadResult) bool {
		r.Data, r.EOF = r.Data[:len(r.Data)/2], false
		return true
	}),
	reads("early-end", "READ returns half of the data and reports the end of the file", func(r *store.ReadResult) bool {
		r.Data, r.EOF = r.Data[:len(r.Data)/2], true
		return true
	}),
	reads("no-end", "READ never reports the end of the file", func(r *store.ReadResult) bool {
		was := r.EOF
		r.EOF = false
		return was
	}),
	reads("always-end", "READ always reports the end of the file", func(r *store.ReadResult) bool {
		was := r.EOF
		r.EOF = true
		return !was
	}),
	{"stale-read", "READ returns the content of the first READ", func(m *Store) {
		kept := map[store.Handle]map[uint64][]byte{}
		m.read = func(c *store.Cred, h store.Handle, offset uint64, count uint32, r *store.ReadResult) error {
			err := m.ACLStore.Read(c, h, offset, count, r)
			m.mu.Lock()
			defer m.mu.Unlock()
			if err != nil || len(r.Data) == 0 {
				return err
			}
			if b, ok := kept[h][offset]; !ok {
				if kept[h] == nil {
					kept[h] = map[uint64][]byte{}
				}
				kept[h][offset] = bytes.Clone(r.Data)
			} else if len(b) >= len(r.Data) && !bytes.Equal(b[:len(r.Data)], r.Data) {
				m.hit()
				r.Data = b[:len(r.Data)]
			}
			return nil
		}
	}},

	{"lost-truncate", "setting a size does nothing", func(m *Store) {
		m.set = func(a *store.Attr, s *store.SetAttr) {
			if s.Mask&store.SetSize != 0 && s.Size != a.Size {
				m.hit()
				s.Size = a.Size
			}
		}
	}},
	{"long-truncate", "setting a size makes the file one byte longer than asked", func(m *Store) {
		m.set = func(_ *store.Attr, s *store.SetAttr) {
			if s.Mask&store.SetSize != 0 {
				m.hit()
				s.Size++
			}
		}
	}},
	{"lost-deallocate", "DEALLOCATE does nothing", func(m *Store) {
		m.dealloc = func(_ *store.Cred, h store.Handle, _, _ uint64, w *store.Wcc) error {
			m.hit()
			return m.unchanged(h, w)
		}
	}},
	{"wide-deallocate", "DEALLOCATE empties 4 KiB too much", func(m *Store) {
		m.dealloc = func(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error {
			m.hit()
			return m.ACLStore.Deallocate(c, h, offset, length+4096, w)
		}
	}},
	{"lost-allocate", "ALLOCATE does nothing", func(m *Store) {
		m.alloc = func(_ *store.Cred, h store.Handle, _, _ uint64, w *store.Wcc) error {
			m.hit()
			return m.unchanged(h, w)
		}
	}},
	{"lost-copy", "COPY copies nothing, and reports all as copied", func(m *Store) {
		m.copy = func(_ *store.Cred, src store.Handle, at uint64, dst store.Handle, _, length uint64, w *store.Wcc) (uint64, error) {
			m.hit()
			var a store.Attr
			if err := m.ACLStore.GetAttr(src, &a); err != nil {
				return 0, err
			}
			return min(length, a.Size-min(at, a.Size)), m.unchanged(dst, w)
		}
	}},
	{"shifted-copy", "COPY copies from one byte further", func(m *Store) {
		m.copy = func(c *store.Cred, src store.Handle, at uint64, dst store.Handle, to, length uint64, w *store.Wcc) (uint64, error) {
			m.hit()
			n, err := m.ACLStore.Copy(c, src, at+1, dst, to, length, w)
			return max(n, min(length, n+1)), err
		}
	}},
	{"lost-clone", "CLONE does nothing", func(m *Store) {
		m.clone = func(_ *store.Cred, _ store.Handle, _ uint64, dst store.Handle, _, _ uint64, w *store.Wcc) error {
			m.hit()
			return m.unchanged(dst, w)
		}
	}},
	{"wrong-seek", "SEEK finds a place 4 KiB further", func(m *Store) {
		m.seek = func(_, found uint64) uint64 { m.hit(); return found + 4096 }
	}},
}
