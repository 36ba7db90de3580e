package transaction_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// long is a message in a Position-Zero Read chunk.
func long(xid uint32, size int, handle uint32) []byte {
	h := v1(xid, rpcrdma.TypeNoMsg)
	h.Reads = []rpcrdma.ReadSegment{{Segment: rpcrdma.Segment{Handle: handle, Length: uint32(size), Offset: 700}}}
	return msg(h, nil)
}

// TestLongReplyWithoutCall: the first message of the capture waits to be read,
// and proves to be a reply.
func TestLongReplyWithoutCall(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	body := rpc(5, true, 0, 2000)
	w.ack(w.send(1, long(5, len(body), 9)))
	w.op(rdma.Read, 0, 9, 700, body)
	w.send(0, msg(v1(5, rpcrdma.TypeDone), nil))
	w.send(0, msg(v1(6, rpcrdma.TypeMsg), rpc(6, false, rocetest.Program, 8)))
	w.ack(w.send(1, msg(v1(6, rpcrdma.TypeMsg), rpc(6, true, 0, 8))))
	out := w.end()
	w.want("a reply and a transaction", len(out) == 2 && out[0].state == transaction.NoCall && !out[0].backward && out[0].byRequester == 1 &&
		string(out[0].reply.payload) == string(body) && out[0].done.Seen() && out[1].state == transaction.Complete && !out[1].backward)
}

// TestLongCallTakenForReply: the server's long call comes from where replies
// come from.
func TestLongCallTakenForReply(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	w.send(0, msg(v1(6, rpcrdma.TypeMsg), rpc(6, false, rocetest.Program, 8)))
	w.ack(w.send(1, msg(v1(6, rpcrdma.TypeMsg), rpc(6, true, 0, 8))))
	body := rpc(5, false, rocetest.CallbackProgram, 2000)
	w.ack(w.send(1, long(5, len(body), 9)))
	w.op(rdma.Read, 0, 9, 700, body)
	w.ack(w.send(0, msg(v1(5, rpcrdma.TypeMsg), rpc(5, true, 0, 8))))
	out := w.end()
	w.want("a callback", len(out) == 2 && out[1].state == transaction.Complete && out[1].backward && out[1].byRequester == 0 &&
		out[1].program == rocetest.CallbackProgram && string(out[1].call.payload) == string(body) && len(out[1].notes) == 0)
}

// TestLongCallOfSameXID: the server's long call has the XID of an open call.
func TestLongCallOfSameXID(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	w.send(0, msg(v1(5, rpcrdma.TypeMsg), rpc(5, false, rocetest.Program, 8)))
	body := rpc(5, false, rocetest.CallbackProgram, 2000)
	w.ack(w.send(1, long(5, len(body), 9)))
	w.op(rdma.Read, 0, 9, 700, body)
	w.ack(w.send(1, msg(v1(5, rpcrdma.TypeMsg), rpc(5, true, 0, 8))))
	out := w.end()
	w.want("named", len(out) == 1 && out[0].state == transaction.Incomplete && out[0].reply.bytes == 32 &&
		has(out[0], transaction.TakenForReply))
}
