package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// opInfo describes an operation: its name, and the XDR type names and
// constructors of its arguments and result.
type opInfo struct {
	name    string
	args    string
	newArgs func() xdr.Message
	res     string
	newRes  func() xdr.Message

	skipArgs, skipRes xdr.Skipper
}

// opTable holds operations by number. Those of both programs are generated from
// the enumerations of the .x files (%operations). The number of the "illegal" operation is
// far away from the others, so it has slot 0, which no operation uses.
type opTable []opInfo

// slot is the index of an operation, -1 if the number is not defined.
func (t opTable) slot(op uint32) int {
	if op == uint32(OP_ILLEGAL) {
		return 0
	}
	if op == 0 || uint64(op) >= uint64(len(t)) || t[op].name == "" {
		return -1
	}
	return int(op)
}

// info returns the description of an operation, or nil.
func (t opTable) info(op uint32) *opInfo {
	if i := t.slot(op); i >= 0 {
		return &t[i]
	}
	return nil
}

func newMessage[T any, P interface {
	*T
	xdr.Message
}]() xdr.Message {
	return P(new(T))
}
