package text

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

func TestChunks(t *testing.T) {
	seg := func(lengths ...uint32) rpcrdma.WriteChunk {
		var c rpcrdma.WriteChunk
		for _, n := range lengths {
			c = append(c, rpcrdma.Segment{Handle: 1, Length: n})
		}
		return c
	}
	read := func(position uint32, lengths ...uint32) []rpcrdma.ReadSegment {
		var list []rpcrdma.ReadSegment
		for _, s := range seg(lengths...) {
			list = append(list, rpcrdma.ReadSegment{Position: position, Segment: s})
		}
		return list
	}
	seen := rdma.Ref{Time: 1, Number: 1}
	for _, c := range []struct {
		want        string
		call, reply rpcrdma.Header
		replied     bool
	}{
		{want: "-"},
		{want: "R4K", call: rpcrdma.Header{Reads: read(100, 4096)}},
		{want: "R4K?", call: rpcrdma.Header{Cut: true, Reads: read(100, 4096)}},
		{want: "?", call: rpcrdma.Header{Cut: true}},
		{want: "W64K", call: rpcrdma.Header{Writes: []rpcrdma.WriteChunk{seg(65536)}}, reply: rpcrdma.Header{Cut: true}, replied: true},
		{want: "R128Kx8", call: rpcrdma.Header{Reads: read(100, 131072, 131072, 131072, 131072, 131072, 131072, 131072, 131072)}},
		{want: "R70001/2", call: rpcrdma.Header{Reads: read(100, 65536, 4465)}},
		{want: "Z1K R4K", call: rpcrdma.Header{Reads: append(read(0, 1024), read(100, 4096)...)}},
		{want: "W64K", call: rpcrdma.Header{Writes: []rpcrdma.WriteChunk{seg(65536)}}},
		{want: "W64K", call: rpcrdma.Header{Writes: []rpcrdma.WriteChunk{seg(65536)}}, reply: rpcrdma.Header{Writes: []rpcrdma.WriteChunk{seg(65536)}}, replied: true},
		{want: "W64K:6", call: rpcrdma.Header{Writes: []rpcrdma.WriteChunk{seg(65536)}}, reply: rpcrdma.Header{Writes: []rpcrdma.WriteChunk{seg(6)}}, replied: true},
		{want: "W64K:0 W1", call: rpcrdma.Header{Writes: []rpcrdma.WriteChunk{seg(65536), seg(1)}}, reply: rpcrdma.Header{Writes: []rpcrdma.WriteChunk{nil, seg(1)}}, replied: true},
		{want: "P28932/3:184", call: rpcrdma.Header{HasReply: true, Reply: seg(256, 28672, 4)}, reply: rpcrdma.Header{HasReply: true, Reply: seg(184, 0, 0)}, replied: true},
		{want: "P0", call: rpcrdma.Header{HasReply: true}},
		{want: "Z8K", call: rpcrdma.Header{Version: rpcrdma.Version2, Type: rpcrdma.TypeCallExternal, Call: read(0, 8192)}},
	} {
		tx := transaction.Transaction{Connection: &rdma.Connection{Fabric: rdma.RoCEv2}}
		if c.call.Version == 0 {
			c.call.Version, c.reply.Version = rpcrdma.Version1, rpcrdma.Version1
		}
		tx.Call = transaction.Message{Transport: true, Header: c.call, Last: seen}
		if c.replied {
			tx.Reply = transaction.Message{Transport: true, Header: c.reply, Last: seen}
		}
		if got := string(Chunks(nil, &tx)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	for f, want := range map[rdma.Fabric]string{rdma.TCP: "tcp", rdma.UDP: "udp"} {
		tx := transaction.Transaction{Connection: &rdma.Connection{Fabric: f}}
		if got := string(Chunks(nil, &tx)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The short form of a file handle is what Wireshark shows.
func TestHandle(t *testing.T) {
	if got := string(Handle(nil, []byte{1, 0, 1, 0, 1, 0, 0, 0})); got != "fh:da686b37" {
		t.Error(got)
	}
}

func TestHex(t *testing.T) {
	const want = "  00000000  30313233 34353637 38396162 63646566  0123456789abcdef\n" +
		"  00000010  000aff                               ...\n"
	if got := string(Hex(nil, []byte("0123456789abcdef\x00\n\xff"), 2)); got != want {
		t.Errorf("\n%s", got)
	}
}
