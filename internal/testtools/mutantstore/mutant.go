// Package mutantstore makes stores that are wrong in one way each, for tests of what is to
// notice it. Nothing but tests imports it.
package mutantstore

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Kind is one way to be wrong.
type Kind struct {
	Name string // "lost-write"
	What string // what the server does, for readers of a report
	// spoil changes what a store does.
	spoil func(*Store)
}

// Store is a store that is wrong in one way once it is armed.
type Store struct {
	store.ACLStore
	armed   atomic.Bool
	strikes atomic.Int64

	// What is wrong. A nil function leaves the method as it is. Each tells by hit that it
	// was wrong.
	attr    func(a *store.Attr)
	set     func(a *store.Attr, s *store.SetAttr)
	write   func(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error
	read    func(c *store.Cred, h store.Handle, offset uint64, count uint32, r *store.ReadResult) error
	lookup  func(c *store.Cred, dir store.Handle, name []byte, a *store.Attr) error
	readdir func(c *store.Cred, dir store.Handle, cookie, verifier uint64, list *store.DirList) error
	create  func(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (bool, error)
	mkdir   func(c *store.Cred, dir store.Handle, name []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error
	symlink func(c *store.Cred, dir store.Handle, name, text []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error
	mknod   func(c *store.Cred, dir store.Handle, name []byte, t store.Type, dev store.Device, s *store.SetAttr, a *store.Attr, w *store.Wcc) error
	link    func(c *store.Cred, h, dir store.Handle, name []byte, a *store.Attr, w *store.Wcc) error
	remove  func(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error
	rmdir   func(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error
	rename  func(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error
	text    func(b []byte) []byte
	access  func(want, given store.AccessMask) store.AccessMask
	commit  func(c *store.Cred, h store.Handle, offset, count uint64, w *store.Wcc) error
	seek    func(offset, found uint64) uint64
	alloc   func(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error
	dealloc func(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error
	copy    func(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) (uint64, error)
	clone   func(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) error
	xget    func(v []byte) []byte
	xset    func(c *store.Cred, h store.Handle, name, value []byte, how store.XattrMode, w *store.Wcc) error
	xremove func(c *store.Cred, h store.Handle, name []byte, w *store.Wcc) error
	xlist   func(f func(name []byte) bool) func(name []byte) bool
	acl     func(c *store.Cred, h store.Handle, access, def *store.ACL, w *store.Wcc) error
	restart bool // each question for the verifier has another answer

	verifier atomic.Uint64
	mu       sync.Mutex
	calls    int
	old      map[store.Handle]store.Attr
	last     store.Handle
}

// Wrap puts a kind in front of a store, which has to keep ACLs. It does no harm before Arm.
func (k *Kind) Wrap(s store.Store) *Store {
	m := &Store{ACLStore: s.(store.ACLStore), old: map[store.Handle]store.Attr{}}
	k.spoil(m)
	return m
}

// Arm lets the store be wrong from now on.
func (m *Store) Arm() { m.armed.Store(true) }

// Strikes is how often it was.
func (m *Store) Strikes() int { return int(m.strikes.Load()) }

func (m *Store) hit() { m.strikes.Add(1) }

// nth reports whether this is one of every n questions.
func (m *Store) nth(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return m.calls%n == 0
}

// unchanged is the Wcc of what was not done.
func (m *Store) unchanged(h store.Handle, w *store.Wcc) error {
	err := m.ACLStore.GetAttr(h, &w.Before)
	w.After, w.Atomic = w.Before, true
	return err
}

// Find is the kind of a name; nil if there is none.
func Find(name string) *Kind {
	for i := range kinds {
		if kinds[i].Name == name {
			return &kinds[i]
		}
	}
	return nil
}

// Kinds are all of them.
func Kinds() iter.Seq[*Kind] {
	return func(yield func(*Kind) bool) {
		for i := range kinds {
			if !yield(&kinds[i]) {
				return
			}
		}
	}
}

var kinds = slices.Concat(dataKinds, subtleData, attrKinds, nameKinds, otherKinds, subtleKinds)

// Bytes reports whether a kind is about the bytes of files.
func (k *Kind) Bytes() bool {
	return slices.ContainsFunc(slices.Concat(dataKinds, subtleData), func(d Kind) bool { return d.Name == k.Name })
}
