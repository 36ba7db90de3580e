//go:build !linux

// Package dir is a store that serves a directory of the machine. It needs Linux.
package dir

import (
	"errors"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Options of a Store.
type Options struct {
	Writable       bool
	Handles, Files int
	NoPermissions  bool
}

// Store serves a directory.
type Store struct{ store.Store }

// Open fails: this system is not Linux.
func Open(string, Options) (*Store, error) { return nil, errors.ErrUnsupported }
