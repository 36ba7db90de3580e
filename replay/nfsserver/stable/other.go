//go:build !unix

// Package stable keeps on disk what an NFS server has to remember. It needs flock.
package stable

import (
	"errors"

	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nlm"
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

// RecoveredHosts are the hosts that may reclaim locks of NLM.
func (d *Dir) RecoveredHosts() []nlm.Monitored { return nil }

// Starts is the number of this start of the server.
func (d *Dir) Starts() int32 { return 1 }

// AddHost implements nlm.Stable.
func (d *Dir) AddHost(*nlm.Monitored) error { return errors.ErrUnsupported }

// RemoveHost implements nlm.Stable.
func (d *Dir) RemoveHost(*nlm.Monitored) {}

// Close does nothing.
func (d *Dir) Close() error { return nil }
