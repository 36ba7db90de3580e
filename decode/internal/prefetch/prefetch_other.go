//go:build !amd64

// Package prefetch has the processor fetch memory that will be needed soon.
package prefetch

import "unsafe"

// Lines does nothing on this kind of processor.
func Lines(unsafe.Pointer, uintptr) {}
