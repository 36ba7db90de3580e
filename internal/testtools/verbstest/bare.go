package verbstest

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// TCP is what a TCP connection of package net moves.
var TCP = Bare{
	// Stream moves 1 MiB after the other, as from a file, into memory that takes
	// 8 of them, as BenchRead does.
	Stream: func(b *testing.B) {
		const size, depth = 1 << 20, 8
		c, s := tcpPair(b)
		done := make(chan struct{})
		go func() {
			defer close(done)
			in := make([]byte, depth*size)
			for i := 0; ; i++ {
				at := i % depth * size
				if _, err := io.ReadFull(s, in[at:at+size]); err != nil {
					return
				}
			}
		}()
		out := make([]byte, size)
		b.SetBytes(size)
		b.ResetTimer()
		defer CPU(b)()
		for range b.N {
			if _, err := c.Write(out); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
		<-done
	},
	PingPong: func(b *testing.B) {
		c, s := tcpPair(b)
		go tcpEcho(s)
		m := make([]byte, 64)
		times := make([]time.Duration, 0, b.N)
		b.ResetTimer()
		defer CPU(b)()
		start := time.Now()
		for range b.N {
			begun := time.Now()
			if _, err := c.Write(m); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, m); err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(begun))
		}
		report(b, time.Since(start), times)
	},
	// RPC keeps 32 messages under way, as many in one write as are due.
	RPC: func(b *testing.B) {
		const size = 64
		c, s := tcpPair(b)
		go tcpEcho(s)
		out, in := make([]byte, size*outstanding), make([]byte, size*outstanding)
		b.ResetTimer()
		defer CPU(b)()
		start := time.Now()
		for sent, received := 0, 0; received < b.N*size; {
			if n := min(outstanding*size-(sent-received), b.N*size-sent); n > 0 {
				if _, err := c.Write(out[:n]); err != nil {
					b.Fatal(err)
				}
				sent += n
			}
			n, err := c.Read(in)
			if err != nil {
				b.Fatal(err)
			}
			received += n
		}
		report(b, time.Since(start), nil)
	},
}

func tcpEcho(s net.Conn) {
	b := make([]byte, 64*outstanding)
	for {
		n, err := s.Read(b)
		if err != nil {
			return
		}
		if _, err := s.Write(b[:n]); err != nil {
			return
		}
	}
}

func tcpPair(b *testing.B) (client, server net.Conn) {
	b.Helper()
	l, err := net.Listen("tcp", loopback.String())
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}
