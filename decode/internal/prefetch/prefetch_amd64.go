// Package prefetch has the processor fetch memory that will be needed soon.
package prefetch

import "unsafe"

// Lines starts to fetch the cache lines of the n bytes at p. It changes nothing but the time that the next access takes.
//
//go:noescape
func Lines(p unsafe.Pointer, n uintptr)
