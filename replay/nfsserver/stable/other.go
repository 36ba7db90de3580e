//go:build !unix

// Package stable keeps on disk what an NFS server has to remember. It needs flock.
package stable

import (
	"errors"

	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Dir is a directory with the state of one server.
type Dir struct{ state.Stable }

// Open fails: this system has no flock.
func Open(string) (*Dir, error) { return nil, errors.ErrUnsupported }

// Key is the key of the handles.
func (d *Dir) Key() store.Key { return store.Key{} }

// Owner is the name of the server.
func (d *Dir) Owner() string { return "" }

// Recovered are the clients that may reclaim.
func (d *Dir) Recovered() []state.Identity { return nil }

// Close does nothing.
func (d *Dir) Close() error { return nil }
