package v3_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// bare is an exchange that costs nothing.
type bare struct {
	call    transport.Message
	room    uint32
	peer    transport.Peer
	replies int
	bytes   int
}

func (x *bare) Call() *transport.Message { return &x.call }
func (x *bare) Peer() transport.Peer     { return x.peer }
func (x *bare) MaxResult(int) uint32     { return x.room }
func (x *bare) Reply(m *transport.Message) {
	x.replies++
	x.bytes = m.Size()
	m.Release()
}
func (x *bare) Drop()                         {}
func (x *bare) Disconnect()                   {}
func (x *bare) Backward() transport.Requester { return nil }
func (x *bare) OnClose(key any, f func())     {}

// prepare makes a file of 1 MiB.
func prepare(tb testing.TB) (*nfsserver.Server, nfstest.Client3, []byte) {
	tb.Helper()
	s := newServer(nfsserver.Options{}, memory.Options{})
	d := nfstest.NewDirect(s)
	c := nfstest.New3(d, 0, 0)
	root, err := nfstest.Mount(tb.Context(), d, "/export")
	if err != nil {
		tb.Fatal(err)
	}
	f, _, err := c.Create(tb.Context(), root, "f", 0o644)
	if err == nil {
		_, err = c.Write(tb.Context(), f, 0, make([]byte, 1<<20), nfs3.FILE_SYNC)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s, c, f
}

// calls are the ones whose cost matters most.
func calls(c nfstest.Client3, f []byte) map[string]*bare {
	getattr := nfs3.GETATTR3args{Object: fh(f)}
	access := nfs3.ACCESS3args{Object: fh(f), Access: 0x3f}
	read := nfs3.READ3args{File: fh(f), Count: 1 << 20}
	write := nfs3.WRITE3args{File: fh(f), Count: 1 << 20, Stable: nfs3.UNSTABLE}
	write.Data.Length, write.Data.Chunk = 1<<20, 1
	m := map[string]*bare{
		"GETATTR": {call: transport.Message{Stream: getattr.Append(c.Header(nfs3.NFSPROC3_GETATTR))}},
		"ACCESS":  {call: transport.Message{Stream: access.Append(c.Header(nfs3.NFSPROC3_ACCESS))}},
		"READ":    {call: transport.Message{Stream: read.Append(c.Header(nfs3.NFSPROC3_READ))}, room: 1 << 20},
	}
	stream := write.Append(c.Header(nfs3.NFSPROC3_WRITE))
	m["WRITE"] = &bare{call: transport.Message{Stream: stream, Items: []transport.Item{{Position: uint32(len(stream)), Data: make([]byte, 1<<20)}}}}
	return m
}

func BenchmarkServe(b *testing.B) {
	s, c, f := prepare(b)
	for name, x := range calls(c, f) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			if name == "READ" || name == "WRITE" {
				b.SetBytes(1 << 20)
			}
			for b.Loop() {
				s.ServeRPC(x)
			}
		})
	}
}
