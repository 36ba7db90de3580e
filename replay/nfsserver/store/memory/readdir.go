package memory

import (
	"slices"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// ReadDir reads entries in the order in which they were made. Cookies stay good
// whatever happens to the directory, so the verifier is always the same.
func (s *Store) ReadDir(c *store.Cred, dir store.Handle, cookie, _ uint64, list *store.DirList) error {
	list.Reset()
	d, err := s.findDir(dir)
	if err != nil {
		return err
	}
	nodes, err := s.readEntries(c, d, cookie, list)
	if err != nil {
		return err
	}
	if list.Attrs {
		for i, n := range nodes {
			e := &list.Entries[i]
			n.mu.RLock()
			e.Attr, e.HasAttr = n.attr, true
			n.mu.RUnlock()
		}
	}
	return nil
}

// readEntries fills list with names, and returns the objects if their attributes
// are wanted.
func (s *Store) readEntries(c *store.Cred, d *inode, cookie uint64, list *store.DirList) ([]*inode, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if !s.rules.Permits(c, &d.attr, store.MayRead) {
		return nil, store.ErrAccess
	}
	list.Dir = d.attr
	entries := d.dir.entries
	i, found := slices.BinarySearchFunc(entries, cookie, func(e *entry, cookie uint64) int {
		switch {
		case e.cookie < cookie:
			return -1
		case e.cookie > cookie:
			return 1
		}
		return 0
	})
	if found {
		i++
	}
	var nodes []*inode
	for ; i < len(entries); i++ {
		e := entries[i]
		if e.inode == nil {
			continue
		}
		if list.Full() {
			return nodes, nil
		}
		// The handle and the type of an object do not change.
		out := list.AddString(e.name, e.cookie)
		out.Handle, out.Type = e.inode.attr.Handle, e.inode.kind
		if list.Attrs {
			nodes = append(nodes, e.inode)
		}
	}
	list.EOF = true
	return nodes, nil
}
