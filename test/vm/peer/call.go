package main

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/rpcrdma/toolkit/decode/xdr"
	nfsclient "github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// caller makes calls with a Requester.
type caller struct {
	transport.Requester
}

// rpc is a call in flight.
type rpc struct {
	nfsclient.Call
	c *caller
}

// prepare encodes a call. data is an eligible item at the end of the arguments,
// result is room for one of the results.
func (c *caller) prepare(program, version, procedure uint32, args xdr.Message, data, result []byte) *rpc {
	r := &rpc{c: c}
	r.Build(nfsclient.Procedure{Program: program, Version: version, Number: procedure}, nfsclient.Sys("peer", 0, 0), args)
	if data != nil {
		r.Items = []transport.Item{{Position: uint32(len(r.Stream)), Data: data}}
	}
	if result != nil {
		r.Results = [][]byte{result}
	}
	r.MaxReply = 1000
	return r
}

// parse decodes the reply, to its last byte.
func (r *rpc) parse(res xdr.Message) error {
	if r.Err != nil {
		return r.Err
	}
	if err := r.Decode(res); err != nil {
		return err
	}
	if n := r.Left(); n > 0 {
		return fmt.Errorf("%d bytes after the results", n)
	}
	return nil
}

// do makes a call and waits.
func (r *rpc) do(ctx context.Context, res xdr.Message) error {
	if err := r.c.Do(ctx, &r.Call.Call); err != nil {
		return err
	}
	return r.parse(res)
}

// buffer is memory for data.
func (c *caller) buffer(n int) []byte {
	b, err := c.Alloc(n)
	if err != nil {
		fatal("%v", err)
	}
	return b
}

// pattern fills b with words that identify file and offset.
func pattern(b []byte, seed uint64, name string) {
	key := crc32.ChecksumIEEE(fmt.Appendf(nil, "%d/%s", seed, name))
	var w [4]byte
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(w[:], key^uint32(i)*2654435761)
		copy(b[i:], w[:])
	}
}

func sum(b []byte) string { return fmt.Sprintf("%x", md5.Sum(b)) }

// sizes lists the sizes of the files: empty, all paddings, around the inline
// threshold, around segments, large.
var sizes = []int{0, 1, 2, 3, 5, 500, 3000, 4000, 4096, 4097, 8191, 65536, 70001, 131073, 1 << 20}
