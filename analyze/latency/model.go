package latency

import (
	"strings"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Model is how the call and the reply of a transaction were transferred: a set.
type Model uint8

// Parts of a Model. Without any of them, both were inline.
const (
	ModelRead         Model = 1 << iota // data of the call in Read chunks
	ModelPositionZero                   // the whole call in a Position-Zero Read chunk
	ModelWrite                          // data of the reply in Write chunks
	ModelReplyChunk                     // the whole reply in the Reply chunk
	ModelReadRead                       // the requester read the reply's data (prototype of 2003)
	ModelTCP                            // no RDMA
	ModelUDP
)

var modelNames = [...]string{"read", "position-zero", "write", "reply-chunk", "read-read", "tcp", "udp"}

func (m Model) String() string {
	if m == 0 {
		return "inline"
	}
	var parts []string
	for i, name := range modelNames {
		if m&(1<<i) != 0 {
			parts = append(parts, name)
		}
	}
	return strings.Join(parts, "+")
}

// ModelOf returns how a transaction was transferred. A chunk that the call offers counts only if the reply
// used it.
func ModelOf(tx *transaction.Transaction) Model {
	switch tx.Connection.Fabric {
	case rdma.TCP:
		return ModelTCP
	case rdma.UDP:
		return ModelUDP
	}
	var m Model
	if tx.Call.Transport {
		h := &tx.Call.Header
		if len(h.Call) > 0 {
			m |= ModelPositionZero
		}
		for i := range h.Reads {
			if h.Reads[i].Position == 0 && h.Version != rpcrdma.Version2 {
				m |= ModelPositionZero
			} else {
				m |= ModelRead
			}
		}
	}
	if tx.Reply.Transport && tx.Reply.Header.Type != rpcrdma.TypeError {
		h := &tx.Reply.Header
		if len(h.Reads) > 0 || tx.ReadsByRequester > 0 {
			m |= ModelReadRead
		}
		for _, c := range h.Writes {
			if c.Length() > 0 {
				m |= ModelWrite
			}
		}
		if h.HasReply && h.Reply.Length() > 0 {
			m |= ModelReplyChunk
		}
	}
	return m
}
