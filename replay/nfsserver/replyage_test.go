package nfsserver

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// A reply is given again for two minutes.
func TestReplyAge(t *testing.T) {
	n := uint32(0)
	s := New(Options{})
	s.Register(Program{Number: 0x20000123, Version: 1, Procedures: []Procedure{{Cached: true, Do: func(c *Call) {
		n++
		c.Out = binary.BigEndian.AppendUint32(c.Out, n)
		c.Send()
	}}}})
	now := time.Unix(1e9, 0)
	s.replies.now = func() time.Time { return now }
	h := oncrpc.Call{XID: 5, RPCVersion: 2, Program: 0x20000123, Version: 1}
	for i, want := range []uint32{1, 1, 2, 2} {
		call := &transport.Call{Message: transport.Message{Stream: h.Append(nil)}}
		if err := nfstest.NewDirect(s).Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint32(call.Reply.Stream[24:]); got != want {
			t.Errorf("call %d: %d, want %d", i, got, want)
		}
		now = now.Add(61 * time.Second)
	}
}
