// Package rpctest is an RPC program for tests of transports: its arguments and
// results hold any number of DDP-eligible items of any size, which both ends
// can verify.
package rpctest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// The program, in the range for users (RFC 5531, section 8.4), and its
// procedures.
const (
	Program  = 0x20002049
	Version  = 1
	Null     = 0
	Exchange = 1
)

// Request holds the arguments of a call of Exchange.
//
//	struct args { opaque items<>[]; uint32 seed; uint32 results[]; uint32 fill; opaque filler<>; };
//	struct res  { uint32 sums[]; opaque items<>[]; opaque filler<>; };
type Request struct {
	Items   [][]byte // eligible, sent
	Results []uint32 // sizes of the eligible items of the reply
	Fill    uint32   // size of the reply's filler, which is not eligible
	Filler  []byte   // of the call, not eligible
	Seed    uint32
}

// Fill fills b with bytes that depend on seed.
func Fill(b []byte, seed uint32) {
	s := uint64(seed)*0x9e3779b97f4a7c15 + 0x1234567
	for len(b) >= 8 {
		s ^= s << 13
		s ^= s >> 7
		s ^= s << 17
		binary.LittleEndian.PutUint64(b, s)
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(s >> (8 * i))
	}
}

// Bytes returns n bytes that depend on seed.
func Bytes(n int, seed uint32) []byte {
	b := make([]byte, n)
	Fill(b, seed)
	return b
}

// Set makes c a call of Exchange. Items stay where they are.
func Set(c *transport.Call, q *Request) {
	b := AppendCall(c.Stream[:0], Exchange)
	c.Items = c.Items[:0]
	whole := len(b)
	word := func(v uint32) {
		b = xdr.AppendUint32(b, v)
		whole += 4
	}
	word(uint32(len(q.Items)))
	for _, it := range q.Items {
		word(uint32(len(it)))
		c.Items = append(c.Items, transport.Item{Position: uint32(whole), Data: it})
		whole += (len(it) + 3) &^ 3
	}
	word(q.Seed)
	word(uint32(len(q.Results)))
	for _, n := range q.Results {
		word(n)
	}
	word(q.Fill)
	c.Stream = xdr.AppendOpaque(b, q.Filler)
	c.MaxReply = ReplyHeader + 4 + 4*len(q.Items) + 4 + 4*len(q.Results) + xdr.SizeOpaque(int(q.Fill))
}

// ReplyHeader is the size of the header of a successful reply in bytes.
const ReplyHeader = 24

// AppendCall appends the header of a call.
func AppendCall(b []byte, procedure uint32) []byte {
	h := oncrpc.Call{RPCVersion: 2, Program: Program, Version: Version, Procedure: procedure}
	return h.Append(b)
}

// Handler answers the program's calls, at once.
type Handler struct {
	// Before, if set, sees each call first. If it returns true, it has taken over
	// the call.
	Before func(x transport.Exchange) bool
	// Alloc, if set, is where the items of results come from.
	Alloc func(n int) []byte
}

// ServeRPC answers a call.
func (h *Handler) ServeRPC(x transport.Exchange) {
	if h.Before != nil && h.Before(x) {
		return
	}
	Answer(x, h.Alloc)
}

// Answer answers a call.
func Answer(x transport.Exchange, alloc func(n int) []byte) {
	m := x.Call()
	var call oncrpc.Call
	if call.Decode(m.Stream, len(m.Stream)) != nil {
		x.Drop()
		return
	}
	reply := oncrpc.Reply{XID: call.XID, Stat: oncrpc.Accepted, Accept: oncrpc.Success}
	out := &transport.Message{}
	switch {
	case call.Program != Program || call.Version != Version:
		reply.Accept = oncrpc.ProgUnavail
		out.Stream = reply.Append(nil)
	case call.Procedure == Null:
		out.Stream = reply.Append(nil)
	case call.Procedure == Exchange:
		if !exchange(x, &call, &reply, out, alloc) {
			reply.Accept = oncrpc.GarbageArgs
			out.Stream, out.Items = reply.Append(nil), nil
		}
	default:
		reply.Accept = oncrpc.ProcUnavail
		out.Stream = reply.Append(nil)
	}
	x.Reply(out)
}

func exchange(x transport.Exchange, call *oncrpc.Call, reply *oncrpc.Reply, out *transport.Message, alloc func(n int) []byte) bool {
	m := x.Call()
	var r xdr.Reader
	r.Reset(m.Stream[call.Size():], len(m.Stream)-call.Size())
	r.StartAt(uint32(call.Size()))
	var reduced []xdr.Reduced
	for _, it := range m.Items {
		reduced = append(reduced, xdr.Reduced{Position: it.Position, Length: uint32(len(it.Data))})
	}
	r.ReduceCall(reduced)
	var sums []uint32
	for range r.Count(0, 4) {
		sums = append(sums, crc32.ChecksumIEEE(m.Bytes(r.Data(0))))
	}
	seed := r.Uint32()
	var sizes []uint32
	for range r.Count(64, 4) {
		sizes = append(sizes, r.Uint32())
	}
	fill := r.Uint32()
	r.Opaque(0)
	if r.Failed() || fill > 16<<20 {
		return false
	}
	b := reply.Append(nil)
	b = xdr.AppendUint32(b, uint32(len(sums)))
	for _, s := range sums {
		b = xdr.AppendUint32(b, s)
	}
	b = xdr.AppendUint32(b, uint32(len(sizes)))
	whole := len(b)
	for i, n := range sizes {
		if n > 64<<20 {
			return false
		}
		b = xdr.AppendUint32(b, n)
		whole += 4
		var data []byte
		if alloc != nil {
			data = alloc(int(n))
		} else {
			data = make([]byte, n)
		}
		Fill(data, seed+uint32(i))
		out.Items = append(out.Items, transport.Item{Position: uint32(whole), Data: data})
		whole += (int(n) + 3) &^ 3
	}
	out.Stream = xdr.AppendOpaque(b, Bytes(int(fill), seed+1000))
	return true
}

// Check checks a reply against the request.
func Check(c *transport.Call, q *Request) error {
	var h oncrpc.Reply
	m := &c.Reply
	if err := h.Decode(m.Stream, len(m.Stream)); err != nil {
		return err
	}
	if h.XID != c.XID || !h.Succeeded() {
		return fmt.Errorf("reply %#x to call %#x: %s", h.XID, c.XID, h.Status())
	}
	var r xdr.Reader
	r.Reset(m.Stream[h.Size():], len(m.Stream)-h.Size())
	var reduced []xdr.Reduced
	for _, it := range m.Items {
		reduced = append(reduced, xdr.Reduced{Length: uint32(len(it.Data))})
	}
	r.ReduceReply(reduced)
	if n := r.Count(0, 4); n != len(q.Items) {
		return fmt.Errorf("%d sums, want %d", n, len(q.Items))
	}
	for i, it := range q.Items {
		if got, want := r.Uint32(), crc32.ChecksumIEEE(it); got != want {
			return fmt.Errorf("sum %d is %#x, want %#x", i, got, want)
		}
	}
	if n := r.Count(0, 4); n != len(q.Results) {
		return fmt.Errorf("%d results, want %d", n, len(q.Results))
	}
	for i, n := range q.Results {
		d := r.Data(0)
		if d.Length != n {
			return fmt.Errorf("result %d has %d bytes, want %d", i, d.Length, n)
		}
		got := m.Bytes(d)
		if len(got) < int(n) {
			return fmt.Errorf("result %d: %d bytes of %d", i, len(got), n)
		}
		if string(got[:n]) != string(Bytes(int(n), q.Seed+uint32(i))) {
			return fmt.Errorf("result %d has wrong bytes", i)
		}
	}
	if string(r.Opaque(0)) != string(Bytes(int(q.Fill), q.Seed+1000)) {
		return fmt.Errorf("the filler has wrong bytes")
	}
	if r.Failed() {
		return r.Err()
	}
	if r.Remaining() != 0 {
		return fmt.Errorf("%d bytes follow the reply", r.Remaining())
	}
	return nil
}
