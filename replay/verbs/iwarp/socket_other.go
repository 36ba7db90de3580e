//go:build !linux

package iwarp

import (
	"errors"
	"net"
	"syscall"
)

// rawSocket exists on Linux only; elsewhere package net is used for everything.
type rawSocket struct{ rc syscall.RawConn }

var errNoRaw = errors.New("iwarp: no raw sockets on this system")

func newRawSocket(net.Conn) *rawSocket { return nil }

func (r *rawSocket) writev(uintptr, [][]byte) (int, bool, error) { return 0, false, errNoRaw }
func (r *rawSocket) readv(uintptr, [][]byte) (int, bool, error)  { return 0, false, errNoRaw }

func (r *rawSocket) ask(func(uintptr) bool) (bool, error) { return true, errNoRaw }
