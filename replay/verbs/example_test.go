package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// next waits for a completion.
func next(c verbs.Conn) (verbs.Completion, error) {
	if err := c.Wait(); err != nil {
		return verbs.Completion{}, err
	}
	var done [1]verbs.Completion
	c.Poll(done[:])
	return done[0], nil
}

// One side opens memory, tells the other its handle and address in a Send, and the
// other writes there. Any provider can stand in the place of loop.
func ExampleConn() {
	ctx := context.Background()
	p := loop.New(loop.Options{})
	defer p.Close() //nolint:errcheck // it has nothing to say
	l, err := p.Listen(ctx, netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		fmt.Println(err)
		return
	}

	// The listening side posts a receive before its peer can send.
	server := make(chan verbs.Conn, 1)
	inbox := make([]byte, 64)
	go func() {
		req, err := l.Accept(ctx)
		if err != nil {
			close(server)
			return
		}
		c, err := req.Accept(ctx, verbs.Params{Recvs: []verbs.RecvRequest{{ID: 1, Buffer: inbox}}})
		if err != nil {
			close(server)
			return
		}
		server <- c
	}()
	client, err := p.Dial(ctx, l.Addr(), verbs.Params{})
	if err != nil {
		fmt.Println(err)
		return
	}
	peer := <-server

	// The dialing side opens eight bytes, and says where.
	memory := make([]byte, 8)
	region, err := client.Register(memory, verbs.RemoteWrite, verbs.OffsetAny)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = client.Post(verbs.WorkRequest{ID: 2, Op: verbs.OpSend, Signaled: true, Local: [][]byte{[]byte("write to my memory")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := next(peer)
	fmt.Printf("%s %s: %s\n", got.Op, got.Status, inbox[:got.Length])
	if err != nil {
		return
	}

	// The listening side writes.
	err = peer.Post(verbs.WorkRequest{
		ID: 3, Op: verbs.OpWrite, Signaled: true, Handle: region.Handle, Offset: region.Offset, Local: [][]byte{[]byte("written!")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if done, err := next(peer); err == nil {
		fmt.Printf("%s %s: %s\n", done.Op, done.Status, memory)
	}

	// The end of one side is the end of both.
	_ = client.Close()
	fmt.Println(errors.Is(peer.Wait(), verbs.ErrDisconnected))
	// Output:
	// RECV SUCCESS: write to my memory
	// RDMA_WRITE SUCCESS: written!
	// true
}
