//go:build !linux

// Package dir is a store that serves a directory of the machine. It needs Linux.
package dir

import (
	"errors"
	"time"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Options of a Store.
type Options struct {
	Writable, Search        bool
	Handles, Files, Orphans int
	NoPermissions           bool
	Recheck                 time.Duration
	HandleKey               store.Key
}

// Store serves a directory.
type Store struct{ store.Store }

// Open fails: this system is not Linux.
func Open(string, Options) (*Store, error) { return nil, errors.ErrUnsupported }
