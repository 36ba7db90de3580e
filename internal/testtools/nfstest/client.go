package nfstest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Doer makes calls: a *Direct or a transport.Requester.
type Doer interface {
	Do(ctx context.Context, c *transport.Call) error
}

// Client calls a program.
type Client struct {
	Doer             Doer
	Program, Version uint32
	// Cred is the credential; see Sys.
	Cred oncrpc.Auth
	// XID, if not zero, is the XID of the next call.
	XID uint32

	last atomic.Uint32
}

// Sys is a credential of AUTH_SYS.
func Sys(uid, gid uint32, gids ...uint32) oncrpc.Auth {
	s := oncrpc.Sys{Stamp: 1, Machine: []byte("client"), UID: uid, GID: gid, Count: len(gids)}
	copy(s.GIDs[:], gids)
	return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: s.Append(nil)}
}

// Failed is an RPC-level failure.
type Failed struct{ Reply oncrpc.Reply }

// Error names the failure.
func (f *Failed) Error() string { return "rpc: " + f.Reply.Status() }

// Header returns the header of a call.
func (c *Client) Header(procedure uint32) []byte {
	xid := c.XID
	if xid == 0 {
		xid = c.last.Add(1)
	}
	c.XID = 0
	h := oncrpc.Call{XID: xid, RPCVersion: 2, Program: c.Program, Version: c.Version, Procedure: procedure, Cred: c.Cred}
	return h.Append(nil)
}

// Call makes a call. data, if not nil, is the eligible item at the end of args,
// which says so by xdr.Data.Chunk; result is memory for the one of the reply.
func (c *Client) Call(ctx context.Context, procedure uint32, args, res xdr.Message, data, result []byte) error {
	call := &transport.Call{}
	call.Stream = args.Append(c.Header(procedure))
	if data != nil {
		call.Items = []transport.Item{{Position: uint32(len(call.Stream)), Data: data}}
	}
	if result != nil {
		call.Results = [][]byte{result}
	}
	call.XID = binary.BigEndian.Uint32(call.Stream)
	call.MaxReply = 1<<20 + 1024
	if err := c.Doer.Do(ctx, call); err != nil {
		return err
	}
	return ParseReply(&call.Reply, call.XID, res)
}

// ParseReply decodes a reply to the last byte, with the decoder of package client.
func ParseReply(m *transport.Message, xid uint32, res xdr.Message) error {
	c := client.Call{Call: transport.Call{Reply: *m}}
	err := c.Decode(res)
	if denied := (*client.DeniedError)(nil); errors.As(err, &denied) {
		err = &Failed{c.Header}
	}
	switch {
	case c.Header.XID != xid:
		return errors.Join(fmt.Errorf("reply to %#x, not to %#x", c.Header.XID, xid), err)
	case err != nil:
		return err
	case c.Left() != 0:
		return fmt.Errorf("%d bytes after the results", c.Left())
	}
	return nil
}
