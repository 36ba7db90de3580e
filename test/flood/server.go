package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs/rocev2"
)

const (
	program  = 0x20002050 // of the range for users
	procNull = 0
	procRead = 1
	readSize = 1 << 20
)

// handler answers NULL, and READ with a megabyte of fresh memory, as a server
// that reads a file does.
func handler(x transport.Exchange) {
	var c oncrpc.Call
	m := x.Call()
	if c.Decode(m.Stream, len(m.Stream)) != nil {
		x.Drop()
		return
	}
	r := oncrpc.Reply{XID: binary.BigEndian.Uint32(m.Stream), Stat: oncrpc.Accepted, Accept: oncrpc.Success}
	out := transport.Message{Stream: r.Append(nil)}
	if c.Procedure == procRead {
		data := make([]byte, readSize)
		for i := 0; i < len(data); i += 4096 {
			data[i] = byte(i)
		}
		out.Stream = xdr.AppendUint32(out.Stream, readSize)
		out.Items = []transport.Item{{Position: uint32(len(out.Stream)), Data: data}}
	}
	x.Reply(&out)
}

func appendCall(b []byte, procedure uint32) []byte {
	for _, w := range []uint32{0, 0, 2, program, 1, procedure, 0, 0, 0, 0} {
		b = xdr.AppendUint32(b, w)
	}
	return b
}

func serve(fabric, at string) error {
	addr, err := netip.ParseAddrPort(at)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var l interface {
		Addr() netip.AddrPort
		Close() error
	}
	if fabric == "tcp" {
		l, err = tcprpc.Listen(ctx, at, transport.HandlerFunc(handler), tcpOptions())
	} else {
		var p verbs.Provider
		if p, err = newProvider(fabric, netip.Addr{}); err != nil {
			return err
		}
		l, err = endpoint.Listen(ctx, p, addr, transport.HandlerFunc(handler), endpointOptions())
	}
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	answer()
	return nil
}

func newProvider(fabric string, local netip.Addr) (verbs.Provider, error) {
	if fabric == "iwarp" {
		return iwarp.New(iwarp.Options{})
	}
	return rocev2.New(rocev2.Options{Local: local})
}

// legitimate is the address of the well-behaved peer.
var legitimate = netip.MustParseAddr("127.0.4.2")

// server is the other process, and what the well-behaved peer has.
type server struct {
	fabric    string
	addr      netip.AddrPort
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	provider  verbs.Provider
	attackers sync.WaitGroup
}

func (s *server) prepare() (err error) {
	if s.fabric != "tcp" {
		s.provider, err = newProvider(s.fabric, legitimate)
	}
	return err
}

func (s *server) close() {
	if s.provider != nil {
		_ = s.provider.Close()
	}
}

// connect makes a connection with one call on it, and returns how long that took.
func (s *server) connect() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), *patient)
	defer cancel()
	start := time.Now()
	r, err := s.dial(ctx)
	if err != nil {
		return time.Since(start), err
	}
	c := transport.Call{Message: transport.Message{Stream: appendCall(nil, procNull)}, MaxReply: 64}
	err = r.Do(ctx, &c)
	took := time.Since(start)
	_ = r.Close()
	return took, err
}

func (s *server) dial(ctx context.Context) (transport.Requester, error) {
	if s.fabric == "tcp" {
		return tcprpc.Dial(ctx, s.addr.String(), tcprpc.Options{DialTimeout: *patient, Dial: dialFrom(legitimate)})
	}
	return endpoint.Dial(ctx, s.provider, s.addr, endpoint.Options{DialTimeout: *patient})
}
