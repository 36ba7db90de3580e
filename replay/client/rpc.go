package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// RPC sends calls of one user. Its methods may be called from any goroutine.
type RPC struct {
	Requester transport.Requester
	Cred      oncrpc.Auth
	Timeout   time.Duration // of each call; 0 is the transport's default
}

// Sys is an AUTH_SYS credential (RFC 5531, appendix A).
func Sys(machine string, uid, gid uint32, gids ...uint32) oncrpc.Auth {
	s := oncrpc.Sys{Machine: []byte(machine), UID: uid, GID: gid}
	s.Count = copy(s.GIDs[:], gids)
	return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: s.Append(nil)}
}

// StatusError is a failure that the program reports.
type StatusError struct {
	Operation string
	Code      uint32
	Symbol    string // empty if the protocol does not define Code
}

func (e *StatusError) Error() string {
	if e.Symbol == "" {
		return fmt.Sprintf("%s: status %d", e.Operation, e.Code)
	}
	return e.Operation + ": " + e.Symbol
}

// IsStatus reports whether err is a StatusError of that code.
func IsStatus(err error, code uint32) bool {
	var s *StatusError
	return errors.As(err, &s) && s.Code == code
}

// DeniedError reports a call that the server's RPC layer rejected.
type DeniedError struct{ Status string }

func (e *DeniedError) Error() string { return "rpc: " + e.Status }

// Call is one RPC and its outcome. The zero value is ready for use. A Call can be used
// again, which overwrites what it held.
type Call struct {
	transport.Call
	Header oncrpc.Reply
	reader xdr.Reader
	stream []byte
	sizes  []xdr.Reduced
	items  []transport.Item
}

// Procedure names a procedure of a program.
type Procedure struct{ Program, Version, Number uint32 }

// Build fills Message for a call of p. Eligible data of args with Chunk n goes
// into an item of its own whose bytes are data[n-1]. Results and
// MaxReply stay as the caller has set them.
func (c *Call) Build(p Procedure, cred oncrpc.Auth, args xdr.Message, data ...[]byte) {
	h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: p.Program, Version: p.Version, Procedure: p.Number, Cred: cred}
	c.stream, c.items = Append(h.Append(c.stream[:0]), c.items[:0], args, data)
	c.Message = transport.Message{Stream: c.stream, Items: c.items}
	c.XID, c.Err = 0, nil
}

// Append appends a message, with the eligible data of Chunk n from data[n-1], and the items
// that the data become. stream is the message so far.
func Append(stream []byte, items []transport.Item, m xdr.Message, data [][]byte) ([]byte, []transport.Item) {
	moved := 0
	for i := range items {
		moved += (len(items[i].Data) + 3) &^ 3
	}
	apart := func(d xdr.Data, at int) {
		if d.Chunk == 0 || d.Chunk > len(data) {
			return
		}
		b := data[d.Chunk-1]
		items = append(items, transport.Item{Position: uint32(at + moved), Data: b})
		moved += (len(b) + 3) &^ 3
	}
	switch m := m.(type) {
	case *nfs3.WRITE3args:
		stream = m.Append(stream)
		apart(m.Data, len(stream))
	case *nfs3.SYMLINK3args:
		stream = m.Append(stream)
		apart(m.Symlink.SymlinkData, len(stream))
	case *nfs4.CompoundArgs:
		stream = xdr.AppendOpaque(stream, m.Tag)
		stream = xdr.AppendUint32(stream, m.Minorversion)
		stream = xdr.AppendUint32(stream, uint32(len(m.Ops)))
		for i := range m.Ops {
			stream = xdr.AppendUint32(stream, m.Ops[i].Number)
			at := len(stream)
			if m.Ops[i].Body != nil {
				stream = m.Ops[i].Body.Append(stream)
			}
			switch a := m.Ops[i].Body.(type) {
			case *nfs4.WRITE4args:
				apart(a.Data, len(stream)) // the data end the arguments
			case *nfs4.CREATE4args:
				if a.Objtype.Type == nfs4.NF4LNK {
					apart(a.Objtype.Linkdata, at+8) // after type and length
				}
			}
		}
	default:
		stream = m.Append(stream)
	}
	return stream, items
}

// Decode decodes a reply into result, whose opaques alias the reply. The error is a
// *DeniedError if the call was not executed. A failure that result reports is not an error
// here.
func (c *Call) Decode(result xdr.Message) error {
	m := &c.Reply
	if err := c.Header.Decode(m.Stream, len(m.Stream)); err != nil {
		if c.Header.Stat == oncrpc.Accepted && c.Header.Accept == oncrpc.ProgMismatch {
			return &DeniedError{oncrpc.ProgMismatch.String()} // some servers do not say which versions they have
		}
		return fmt.Errorf("reply header: %w", err)
	}
	if !c.Header.Succeeded() {
		return &DeniedError{c.Header.Status()}
	}
	at := c.Header.Size()
	if at > len(m.Stream) {
		return errors.New("reply header: too short")
	}
	c.sizes = c.sizes[:0]
	for i := range m.Items {
		c.sizes = append(c.sizes, xdr.Reduced{Length: uint32(len(m.Items[i].Data))})
	}
	r := &c.reader
	r.Reset(m.Stream[at:], len(m.Stream)-at)
	r.StartAt(uint32(at))
	r.ReduceReply(c.sizes)
	result.Decode(r)
	if err := r.Err(); err != nil {
		return fmt.Errorf("reply: %w", err)
	}
	return nil
}

// Left is the number of bytes behind what the last Decode has read.
func (c *Call) Left() int { return c.reader.Remaining() }

// Do sends a call that Build has made and decodes the reply into result.
func (r *RPC) Do(ctx context.Context, c *Call, result xdr.Message) error {
	c.Timeout = r.Timeout
	if err := r.Requester.Do(ctx, &c.Call); err != nil {
		return err
	}
	return c.Decode(result)
}
