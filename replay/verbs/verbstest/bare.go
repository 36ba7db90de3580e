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

// UDP is what a pair of UDP sockets of package net moves, in datagrams of 4 KiB
// as RoCE would have them, without any help against loss but a window.
var UDP = Bare{
	Stream: func(b *testing.B) {
		const size, datagram, window = 1 << 20, 4096, 16
		c, s := udpPair(b)
		go func() {
			in := make([]byte, datagram)
			for n := 1; ; n++ {
				if _, err := s.Read(in); err != nil {
					return
				}
				if n%window == 0 {
					if _, err := s.Write(in[:1]); err != nil {
						return
					}
				}
			}
		}()
		out, ack := make([]byte, datagram), make([]byte, 16)
		b.SetBytes(size)
		b.ResetTimer()
		flying := 0
		for range b.N * (size / datagram) {
			if flying == 2*window {
				if _, err := c.Read(ack); err != nil {
					b.Fatal(err)
				}
				flying -= window
			}
			if _, err := c.Write(out); err != nil {
				b.Fatal(err)
			}
			flying++
		}
		for ; flying >= window; flying -= window {
			if _, err := c.Read(ack); err != nil {
				b.Fatal(err)
			}
		}
	},
	PingPong: func(b *testing.B) { udpRPC(b, 1) },
	RPC:      func(b *testing.B) { udpRPC(b, outstanding) },
}

func udpRPC(b *testing.B, window int) {
	c, s := udpPair(b)
	go func() {
		m := make([]byte, 64)
		for {
			n, err := s.Read(m)
			if err != nil {
				return
			}
			if _, err := s.Write(m[:n]); err != nil {
				return
			}
		}
	}()
	m := make([]byte, 64)
	times := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	start := time.Now()
	for sent, received := 0, 0; received < b.N; received++ {
		begun := time.Now()
		for ; sent < b.N && sent-received < window; sent++ {
			if _, err := c.Write(m); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := c.Read(m); err != nil {
			b.Fatal(err)
		}
		if window == 1 {
			times = append(times, time.Since(begun))
		}
	}
	report(b, time.Since(start), times)
}

func udpPair(b *testing.B) (client, server net.Conn) {
	b.Helper()
	first, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		b.Fatal(err)
	}
	c, err := net.DialUDP("udp", nil, first.LocalAddr().(*net.UDPAddr))
	if err != nil {
		b.Fatal(err)
	}
	// The server gets a connected socket at the same port.
	at := first.LocalAddr().(*net.UDPAddr)
	first.Close()
	s, err := net.DialUDP("udp", at, c.LocalAddr().(*net.UDPAddr))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(); s.Close() })
	return c, s
}
