//go:build linux && cgo && seccomp

package sandbox

const filters = true
