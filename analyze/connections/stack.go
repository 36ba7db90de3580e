package connections

import (
	"fmt"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Stack is an implementation of RPC-over-RDMA.
type Stack uint8

// Stacks.
const (
	StackUnknown     Stack = iota
	StackLinux             // RFC 8797, fast registration, constant credits
	StackOpenSolaris       // illumos, too: asks for 34 credits, grants 32
	StackNTIRPC            // of Ganesha: one RDMA Read at a time
	StackLibevpl           // of chimera: asks for one credit, grants what is asked for without a limit, or 0 in early versions
	StackRFC5666           // others without the private data of RFC 8797
	stacks
)

// String is the word of JSON.
func (s Stack) String() string {
	return [stacks]string{"unknown", "linux", "opensolaris", "ntirpc", "libevpl", "rfc5666"}[s]
}

// Credits that OpenSolaris asks for, and grants.
const (
	solarisAsks   = 34
	solarisGrants = 32
)

// stack guesses which implementation is at an end, and says what the guess rests on.
func (c *Connection) stack(side rdma.Side) (s Stack, reason string) {
	if !isRDMA(c.Fabric) || !c.Declared(side) || c.Policies.Asks.Messages == 0 {
		return StackUnknown, ""
	}
	setup, says, verb := &c.Setup[side], &c.Policies.Asks, "asks for"
	client := side == c.Client
	if !client {
		says, verb = &c.Policies.Grants, "grants"
	}
	constant := says.Policy == CreditsConstant
	always := fmt.Sprintf("always %s %d", verb, says.Value)
	if setup.Private.Present {
		switch {
		case !constant:
		case !client:
			return StackLinux, "private data of RFC 8797, " + always
		case c.Policies.Registration.Mode == RegistrationFRWR:
			return StackLinux, "private data of RFC 8797, fast registration, " + always
		}
		return StackUnknown, ""
	}
	return older(setup, &c.Policies.Asks, says, client, always)
}

// older guesses what an end without the private data of RFC 8797 is.
func older(setup *rdma.Setup, asks, says *Credits, client bool, always string) (s Stack, reason string) {
	const without = "no private data of RFC 8797"
	is := func(n uint64) bool { return says.Policy == CreditsConstant && says.Value == n }
	switch {
	case setup.Depths() && setup.ResponderDepth == 1 && setup.InitiatorDepth == 1:
		return StackNTIRPC, without + ", one RDMA Read at a time"
	case client && is(solarisAsks), !client && is(solarisGrants) && asks.Value != solarisGrants:
		return StackOpenSolaris, without + ", " + always
	case client && is(1), !client && is(0):
		return StackLibevpl, without + ", " + always
	case !client && (says.Policy == CreditsEcho || asks.Policy == CreditsConstant && is(asks.Value)):
		return StackLibevpl, without + ", grants what is asked for"
	}
	return StackRFC5666, without
}

// stackLine is the guess for people; empty if there is none.
func (c *Connection) stackLine(side rdma.Side) string {
	s, reason := c.stack(side)
	if s == StackUnknown {
		return ""
	}
	name := [stacks]string{"", "Linux", "OpenSolaris or illumos", "ntirpc (Ganesha)", "libevpl (chimera)", "an RFC 5666 implementation, older than RFC 8797"}[s]
	return fmt.Sprintf("stack: probably %s: %s", name, reason)
}

// appendStack appends the guess as a key of a JSON object.
func (c *Connection) appendStack(b []byte, side rdma.Side) []byte {
	s, reason := c.stack(side)
	if s == StackUnknown {
		return b
	}
	b = fmt.Appendf(b, `,"stack":{"name":"%s","reason":`, s)
	return append(ndjson.Quote(b, reason), '}')
}
