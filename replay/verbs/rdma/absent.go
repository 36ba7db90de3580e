//go:build !verbs || !cgo || !linux

package rdma

import "github.com/rpcrdma/toolkit/replay/verbs"

// New fails with ErrNotBuilt.
func New(Options) (verbs.Provider, error) { return nil, ErrNotBuilt }

// Probe says that the provider is not there.
func Probe() Report { return Report{Missing: ErrNotBuilt.Error()} }
