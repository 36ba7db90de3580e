package check

import "github.com/rpcrdma/toolkit/decode/roce"

// kind is what a packet is to the rules; 0 if they have nothing to say about it.
type kind uint16

const (
	kindSend kind = 1 << iota
	kindWrite
	kindRead   // Request
	kindAtomic // request
	kindRequest
	kindReadResponse
	kindAck // of atomic operations, too
	kindCNP
	kindStarts // a message: any request but those of Sends and Writes of several packets
	kindEnds

	kindPayload = kindSend | kindWrite | kindReadResponse
)

// kinds lists the kind of each opcode: of reliable connections only, but for CNPs.
var kinds = func() (list [256]kind) {
	for i := range list {
		list[i] = kindOf(roce.Opcode(i))
	}
	return list
}()

func kindOf(op roce.Opcode) (k kind) {
	set := func(is bool, bit kind) {
		if is {
			k |= bit
		}
	}
	switch service := op.Service(); {
	case !op.IsDefined():
		return 0
	case op.IsCNP():
		return kindCNP
	case service != roce.ServiceRC && service != roce.ServiceXRC:
		return 0
	case op.IsAcknowledge():
		return kindAck
	}
	parts := op.IsSend() || op.IsWrite() || op.IsReadResponse()
	set(op.IsSend(), kindSend)
	set(op.IsWrite(), kindWrite)
	set(op.IsReadRequest(), kindRead)
	set(op.IsAtomic(), kindAtomic)
	set(!op.IsResponse(), kindRequest)
	set(op.IsReadResponse(), kindReadResponse)
	set(!parts || op.Starts(), kindStarts)
	set(!parts || op.Ends(), kindEnds)
	return k
}
