package run

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/replay/internal/world"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// room borrows memory for the data that the reply brings, and says how long the rest
// may become. asCaptured says that the call is laid out as captured.
func room(c *call, asCaptured bool) error {
	o := c.form.Op
	size := slack
	if o.Expect != nil {
		size += len(o.Expect.Results)
	}
	c.Results = nil
	var err error
	want := func(number uint32, table map[uint32]wants, args []plan.Field) {
		w := table[number]
		n := w.size
		if w.field != "" {
			n += int(min(field(args, w.field), world.MaxIO))
		}
		if !w.chunk {
			size += n
		} else if err == nil {
			err = lend(c, uint64(n))
		}
	}
	switch {
	case o.Compound != nil:
		for i := range o.Compound.Ops {
			want(o.Compound.Ops[i].Op, wants4, o.Compound.Ops[i].Args)
		}
	case o.Program == nfs3.NFS_PROGRAM && o.Version == nfs3.NFS_V3:
		want(o.Procedure, wants3, o.Args)
	case o.Program == nfsacl.NFS_ACL_PROGRAM:
		size += twoACLs
	}
	if asCaptured && err == nil {
		size, err = captured(c, size)
	}
	c.MaxReply = size
	return err
}

// wants is how much room the reply to an operation needs, beside what was captured.
type wants struct {
	chunk bool   // for data that may travel in a chunk
	field string // name of the argument that bounds it; empty if none does
	size  int    // bytes more
}

const (
	// slack is how much longer in bytes any reply may be than the captured one.
	slack = 1024
	// twoACLs has room for the two lists of NFSACL: 1024 entries of 12 bytes each.
	twoACLs = 28 << 10
	// replyHeader is the size in bytes of the header of an accepted reply whose
	// verifier is empty (RFC 5531, section 9).
	replyHeader = 24
	// handleSlack is how much longer in bytes a file handle may be here than it was in
	// the capture (NFS4_FHSIZE less what is usual).
	handleSlack = 64
)

var wants4 = map[uint32]wants{
	uint32(nfs4.OP_READ):       {chunk: true, field: "count"},
	uint32(nfs4.OP_READ_PLUS):  {chunk: true, field: "rpa_count"},
	uint32(nfs4.OP_READDIR):    {field: "maxcount"},
	uint32(nfs4.OP_READLINK):   {size: 64 << 10},
	uint32(nfs4.OP_GETXATTR):   {size: 64 << 10},
	uint32(nfs4.OP_LISTXATTRS): {field: "lxa_maxcount"},
}

var wants3 = map[uint32]wants{
	nfs3.NFSPROC3_READ:        {chunk: true, field: "count"},
	nfs3.NFSPROC3_READDIR:     {field: "count"},
	nfs3.NFSPROC3_READDIRPLUS: {field: "maxcount"},
	nfs3.NFSPROC3_READLINK:    {size: 4096},
}

// field is the value of a numeric argument; 0 if there is none of that name.
func field(args []plan.Field, name string) uint64 {
	for i := range args {
		if args[i].N == name && args[i].Kind == plan.FieldU32 {
			return args[i].Value
		}
	}
	return 0
}

// lend borrows memory for data of the reply.
func lend(c *call, n uint64) error {
	b, err := c.Borrow(int(min(n, world.MaxIO)))
	if err == nil {
		c.Results = append(c.Results, b)
	}
	return err
}

// captured fits the memory for the reply to the captured chunks, and returns how long
// the rest of the reply may become.
func captured(c *call, size int) (int, error) {
	o := c.form.Op
	for i, w := range o.Layout.Writes {
		var n uint64
		for _, l := range w {
			n += uint64(l)
		}
		if i >= len(c.Results) {
			if err := lend(c, n); err != nil {
				return 0, err
			}
		} else if n > uint64(len(c.Results[i])) {
			b, err := c.Borrow(int(min(n, world.MaxIO)))
			if err != nil {
				return 0, err
			}
			c.Results[i] = b
		}
	}
	if len(o.Layout.Writes) < len(c.Results) {
		// It came inline or in the Reply chunk.
		for _, r := range c.Results[len(o.Layout.Writes):] {
			size += len(r)
		}
		c.Results = c.Results[:len(o.Layout.Writes)]
	}
	if n := expected(o); n > 0 {
		size = n
	}
	return size, nil
}

// expected is how long the reply will be in bytes, except for data in Write chunks, if
// it is like the captured one; 0 if that is not known.
func expected(o *plan.Op) int {
	x := o.Expect
	if x == nil || x.Results == nil || x.Partial {
		return 0
	}
	n := replyHeader + len(x.Results)
	for i := range x.Data {
		if i >= len(o.Layout.Writes) {
			n += int(x.Data[i].Length+3) &^ 3
		}
	}
	for i := range o.Binds {
		if o.Binds[i].Kind == plan.FieldHandle {
			n += handleSlack
		}
	}
	return n
}
