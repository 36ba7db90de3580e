package connections

import (
	"fmt"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/stack"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// stack guesses which implementation is at an end, and says what the guess rests on.
func (c *Connection) stack(side rdma.Side) (s stack.Stack, reason string) {
	asks, grants := &c.Policies.Asks, &c.Policies.Grants
	if !isRDMA(c.Fabric) || !c.Declared(side) || asks.Messages == 0 {
		return stack.Unknown, ""
	}
	setup, client := &c.Setup[side], side == c.Client
	switch {
	case !setup.Private.Present:
		return stack.WithoutPrivate(setup, client, asks.forStack(), grants.forStack())
	case client && asks.Policy == CreditsConstant && c.Policies.Registration.Mode == RegistrationFRWR:
		return stack.Linux, fmt.Sprintf("private data of RFC 8797, fast registration, always asks for %d", asks.Value)
	case !client && grants.Policy == CreditsConstant:
		return stack.Linux, fmt.Sprintf("private data of RFC 8797, always grants %d", grants.Value)
	}
	return stack.Unknown, ""
}

// forStack are the credits as the recognition of the stack reads them.
func (c *Credits) forStack() stack.Credits {
	return stack.Credits{Constant: c.Policy == CreditsConstant, Echo: c.Policy == CreditsEcho, Value: c.Value}
}

// stackLine is the guess for people; empty if there is none.
func (c *Connection) stackLine(side rdma.Side) string {
	s, reason := c.stack(side)
	if s == stack.Unknown {
		return ""
	}
	return fmt.Sprintf("stack: probably %s: %s", s.Name(), reason)
}

// appendStack appends the guess as a key of a JSON object.
func (c *Connection) appendStack(b []byte, side rdma.Side) []byte {
	s, reason := c.stack(side)
	if s == stack.Unknown {
		return b
	}
	b = fmt.Appendf(b, `,"stack":{"name":"%s","reason":`, s)
	return append(ndjson.Quote(b, reason), '}')
}
