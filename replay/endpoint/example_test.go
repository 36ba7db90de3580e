package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// program answers every call with success and no results.
func program(x transport.Exchange) {
	var call oncrpc.Call
	if m := x.Call(); call.Decode(m.Stream, len(m.Stream)) != nil {
		x.Drop()
		return
	}
	reply := oncrpc.Reply{XID: call.XID, Stat: oncrpc.Accepted, Accept: oncrpc.Success}
	x.Reply(&transport.Message{Stream: reply.Append(nil)})
}

func null() *transport.Call {
	h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: 0x20000001, Version: 1}
	return &transport.Call{Message: transport.Message{Stream: h.Append(nil)}}
}

// A Responder hands the calls of all its connections to one handler. It speaks over
// any provider; loop stays within the process.
func ExampleListen() {
	ctx := context.Background()
	p := loop.New(loop.Options{})
	defer p.Close() //nolint:errcheck // it has nothing to say
	s, err := endpoint.Listen(ctx, p, netip.MustParseAddrPort("127.0.0.1:0"), transport.HandlerFunc(program), endpoint.Options{
		Credits: 16, // calls that a peer may have under way
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close() //nolint:errcheck // likewise

	r, err := endpoint.Dial(ctx, p, s.Addr(), endpoint.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close() //nolint:errcheck // likewise
	for range 3 {
		if err := r.Do(ctx, null()); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(s.Stats().Replies, "replies,", r.Stats().CreditsHeld, "credits")
	// Output: 3 replies, 16 credits
}

// A Requester sends calls, and says by the error of each how it ended.
func ExampleDial() {
	ctx := context.Background()
	p := loop.New(loop.Options{})
	defer p.Close() //nolint:errcheck // it has nothing to say
	deaf := transport.HandlerFunc(func(x transport.Exchange) { x.Drop() })
	s, err := endpoint.Listen(ctx, p, netip.MustParseAddrPort("127.0.0.1:0"), deaf, endpoint.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close() //nolint:errcheck // likewise

	r, err := endpoint.Dial(ctx, p, s.Addr(), endpoint.Options{Timeout: 20 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	switch err := r.Do(ctx, null()); {
	case errors.Is(err, transport.ErrTimeout):
		fmt.Println("no reply in time")
	case errors.Is(err, transport.ErrDisconnected):
		fmt.Println("the connection has ended")
	default:
		fmt.Println(err)
	}
	_ = r.Close()
	fmt.Println(errors.Is(r.Do(ctx, null()), transport.ErrClosed))
	// Output:
	// no reply in time
	// true
}
