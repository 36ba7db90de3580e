package nfsserver_test

import (
	"context"
	"fmt"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/mountd"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
)

// A server is made of a store and of the programs that show it. It is a
// transport.Handler: tcprpc.Listen and endpoint.Listen hand calls to it.
func Example() {
	ctx := context.Background()
	files := memory.New(memory.Options{Size: 1 << 20})
	defer files.Close() //nolint:errcheck // it is in memory
	s := nfsserver.New(nfsserver.Options{})
	defer s.Close()
	s.Register(v3.New(files, v3.Options{}))
	s.Register(mountd.New(files, mountd.Options{}))
	l, err := tcprpc.Listen(ctx, "127.0.0.1:0", s, tcprpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close() //nolint:errcheck // nothing of it is needed any more

	r, err := tcprpc.Dial(ctx, l.Addr().String(), tcprpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close() //nolint:errcheck // likewise
	fs := client.NewV3(client.RPC{Requester: r, Cred: client.Sys("example", 0, 0)})
	root, err := fs.Root(ctx, "/")
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := fs.Create(ctx, root, "greeting", client.Mode(0o644), false)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := fs.Write(ctx, f, 0, []byte("hello"), true); err != nil {
		fmt.Println(err)
		return
	}
	b := make([]byte, 100)
	n, end, err := fs.Read(ctx, f, 0, b)
	fmt.Printf("%s, end of file: %v, error: %v\n", b[:n], end, err)
	// Output: hello, end of file: true, error: <nil>
}
