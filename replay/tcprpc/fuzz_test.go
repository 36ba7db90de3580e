package tcprpc_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// records are RPC messages with their marks; long ones in several fragments.
func records(messages ...[]byte) (list [][]byte) {
	for _, m := range messages {
		var b []byte
		for len(m) > 200 {
			b = binary.BigEndian.AppendUint32(b, 200)
			b = append(b, m[:200]...)
			m = m[200:]
		}
		b = binary.BigEndian.AppendUint32(b, 0x80000000|uint32(len(m)))
		list = append(list, append(b, m...))
	}
	return list
}

// fuzzRecord is the longest record that FuzzServer's server takes.
const fuzzRecord = 4096

// FuzzServer is a client whose records are changed as a program says: marks,
// fragments, calls. Its connection ends in time, whatever it says, and a good
// client is served after it.
func FuzzServer(f *testing.F) {
	var exchange transport.Call
	rpctest.Set(&exchange, &rpctest.Request{Items: [][]byte{rpctest.Bytes(300, 1)}, Results: []uint32{100}, Filler: rpctest.Bytes(40, 2)})
	long := append([]byte(nil), exchange.Stream...)
	for _, it := range exchange.Items {
		long = append(long, it.Data...)
	}
	seeds := records(rpctest.AppendCall(nil, rpctest.Null), long, rpctest.AppendCall(nil, 7), rpctest.AppendCall(nil, rpctest.Null))
	f.Add([]byte{})
	f.Add(mutate.Program(mutate.Step{Op: mutate.SetValue, At: 1, Value: 0x7fffffff}))
	f.Add(mutate.Program(mutate.Step{Op: mutate.SetValue, Value: 0}, mutate.Step{Op: mutate.JoinUnits}))
	ctx := f.Context()
	s, err := tcprpc.Listen(ctx, "127.0.0.1:0", &rpctest.Handler{}, tcprpc.Options{MaxRecord: fuzzRecord})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	good, err := tcprpc.Dial(ctx, s.Addr().String(), tcprpc.Options{Timeout: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = good.Close() })
	f.Fuzz(func(t *testing.T, program []byte) {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		// No port waits for late segments: there are more executions than ports.
		_ = c.(*net.TCPConn).SetLinger(0)
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = c.Write(bytes.Join(mutate.Units(seeds, program, 2*fuzzRecord), nil)) // the server may have had enough
		_ = c.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, c); err != nil {
			if n, ok := err.(net.Error); ok && n.Timeout() {
				t.Fatal("the connection does not end")
			}
		}
		call := new(transport.Call)
		rpctest.Set(call, &rpctest.Request{})
		if err := good.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	})
}
