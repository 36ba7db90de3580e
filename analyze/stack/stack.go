// Package stack tells implementations of RPC-over-RDMA by what they say of themselves when they connect, and by their credits.
package stack

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Stack is an implementation of RPC-over-RDMA.
type Stack uint8

// Stacks.
const (
	Unknown     Stack = iota
	Linux             // RFC 8797, fast registration, constant credits
	OpenSolaris       // illumos, too: asks for 34 credits, grants 32
	NTIRPC            // of Ganesha: one RDMA Read at a time
	Libevpl           // of chimera: asks for one credit, grants what is asked for without a limit, or 0 in early versions
	RFC5666           // others without the private data of RFC 8797
	count
)

// String is the word of JSON.
func (s Stack) String() string {
	return [count]string{"unknown", "linux", "opensolaris", "ntirpc", "libevpl", "rfc5666"}[s]
}

// Name is the name for people.
func (s Stack) Name() string {
	return [count]string{"", "Linux", "OpenSolaris or illumos", "ntirpc (Ganesha)", "libevpl (chimera)", "an RFC 5666 implementation, older than RFC 8797"}[s]
}

// Credits are what an end asked for, or granted.
type Credits struct {
	Constant bool
	Echo     bool // each as many as the other end said
	Value    uint64
}

const (
	solarisAsks   = 34
	solarisGrants = 32
	oldLinux      = 32 // both ends of Linux before RFC 8797
)

// WithoutPrivate guesses what an end without the private data of RFC 8797 is, and says what the guess rests on.
func WithoutPrivate(setup *rdma.Setup, client bool, asks, grants Credits) (s Stack, reason string) {
	const without = "no private data of RFC 8797"
	says, verb := grants, "grants"
	if client {
		says, verb = asks, "asks for"
	}
	is := func(n uint64) bool { return says.Constant && says.Value == n }
	always := fmt.Sprintf("%s, always %s %d", without, verb, says.Value)
	switch {
	case setup.Depths() && setup.ResponderDepth == 1 && setup.InitiatorDepth == 1:
		return NTIRPC, without + ", one RDMA Read at a time"
	case client && is(solarisAsks), !client && is(solarisGrants) && asks.Value != solarisGrants:
		return OpenSolaris, always
	case client && is(1), !client && is(0):
		return Libevpl, always
	case !client && (says.Echo || asks.Constant && is(asks.Value)) && !is(oldLinux):
		return Libevpl, without + ", grants what is asked for"
	}
	return RFC5666, without
}
