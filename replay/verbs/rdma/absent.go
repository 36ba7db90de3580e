//go:build !verbs || !cgo || !linux

package rdma

import "github.com/rpcrdma/toolkit/replay/verbs"

// New fails with ErrNotBuilt.
func New(Options) (verbs.Provider, error) { return nil, ErrNotBuilt }

// Probe reports that the program was built without the provider.
func Probe() Report { return Report{Missing: ErrNotBuilt.Error()} }
