// Package mutant makes stores that are wrong in one way each, for tests of what is to
// notice it. Nothing but tests imports it.
package mutant

import (
	"iter"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Kind is one way to be wrong.
type Kind struct {
	Name string // "lost-write"
	What string // what the server does, for readers of a report
	wrap func(store.ACLStore) store.ACLStore
}

// Wrap puts a kind in front of a store. The store has to keep ACLs.
func (k *Kind) Wrap(s store.Store) store.Store { return k.wrap(s.(store.ACLStore)) }

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

var kinds = []Kind{
	{"lost-write", "WRITE makes the file longer and stores nothing", func(s store.ACLStore) store.ACLStore { return &lostWrite{s} }},
	{"spoilt-read", "one byte of what is read is wrong", func(s store.ACLStore) store.ACLStore { return &spoiltRead{s} }},
	{"wrong-mode", "the mode of files is not the one they have", func(s store.ACLStore) store.ACLStore { return &attributes{s, func(a *store.Attr) { a.Mode ^= 0o100 }} }},
	{"wrong-size", "files are one byte longer than they are", func(s store.ACLStore) store.ACLStore { return &attributes{s, func(a *store.Attr) { a.Size++ }} }},
	{"lost-name", "the first name of each directory is not listed", func(s store.ACLStore) store.ACLStore { return &lostName{s} }},
	{"found-name", "LOOKUP of a name that is not there finds the directory itself", func(s store.ACLStore) store.ACLStore { return &foundName{s} }},
	{"name-twice", "the last name of each directory is listed twice", func(s store.ACLStore) store.ACLStore { return &nameTwice{s} }},
	{"lost-deallocate", "DEALLOCATE does nothing", func(s store.ACLStore) store.ACLStore { return &lostDeallocate{s} }},
}
