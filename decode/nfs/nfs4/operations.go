package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// Op is one operation of a COMPOUND: the nfs_argop4 of a call, the nfs_resop4
// of a reply, or their callback counterparts.
type Op struct {
	Number uint32 // nfs_opnum4 or nfs_cb_opnum4
	// Body is a pointer to the operation's arguments or result: *READ4args,
	// *READ4res, … Results that are only a status and have no type of their own in ops.x are
	// *Status4res; empty arguments are xdr.Void.
	Body xdr.Message
}

// Status returns the status of a result and its symbol. ok is false for
// arguments.
func (o *Op) Status() (code uint32, symbol string, ok bool) {
	s, ok := o.Body.(xdr.Status)
	if _, args := o.Body.(*CB_OFFLOAD4args); !ok || args {
		return 0, "", false // CB_OFFLOAD reports the status of another operation
	}
	code, symbol = s.StatusCode()
	return code, symbol, true
}

// Operations is the array of operations of a COMPOUND. Decode fills it from
// pools that it keeps, one for each kind of operation: a stream of similar
// COMPOUNDs allocates nothing. So the bodies are valid until the next Decode.
type Operations struct {
	// Ops are the operations that were decoded. If the capture cut the last
	// one within its data (WRITE, READ, READLINK), it is here too.
	Ops []Op
	// Count is how many operations the message announced. Append uses the
	// length of Ops.
	Count uint32
	// Incomplete is set if decoding ended early, in operation number FailedAt
	// (from 0). FailedOp is its number, 0 if not even that could be read.
	Incomplete bool
	FailedAt   int
	FailedOp   uint32

	free [][]xdr.Message // by slot
	used []uint32
}

// NewArgs returns empty arguments of an operation of the forward direction, nil if there is none with that number.
func NewArgs(number uint32) xdr.Message {
	if i := foreOps.info(number); i != nil {
		return i.newArgs()
	}
	return nil
}

// keepOps is how many bodies of one kind are kept. Linux sends at most 16 operations, of several
// kinds; a message with more than this is hostile.
const keepOps = 256

func (c *Operations) reset(t opTable) {
	if c.free == nil {
		c.free = make([][]xdr.Message, len(t))
		c.used = make([]uint32, len(t))
	}
	clear(c.used)
	c.Ops = xdr.Reuse(c.Ops)
	c.Count, c.Incomplete, c.FailedAt, c.FailedOp = 0, false, 0, 0
}

// body returns a new body, or one that an earlier message has used.
func (c *Operations) body(slot int, make func() xdr.Message) xdr.Message {
	n := c.used[slot]
	if int(n) < len(c.free[slot]) {
		c.used[slot]++
		return c.free[slot][n]
	}
	m := make()
	if n < keepOps {
		c.free[slot] = append(c.free[slot], m)
		c.used[slot]++
	}
	return m
}

func (c *Operations) decode(r *xdr.Reader, t opTable, results bool, field string) {
	c.reset(t)
	c.Count = r.Uint32()
	r.Field(field)
	// The count is not trusted: the loop ends with the bytes, and every operation takes at least
	// four.
	for i := uint32(0); i < c.Count && r.More(); i++ {
		number := r.Uint32()
		slot := t.slot(number)
		if slot < 0 && !r.Failed() {
			r.Fail(xdr.Value, field)
		}
		if r.Failed() {
			c.FailedOp = number
			break
		}
		info := &t[slot]
		make := info.newArgs
		if results {
			make = info.newRes
		}
		op := Op{Number: number, Body: c.body(slot, make)}
		op.Body.Decode(r)
		if r.Failed() {
			c.Incomplete, c.FailedAt, c.FailedOp = true, len(c.Ops), number
			if r.Cut() && hasData(op.Body) {
				c.Ops = append(c.Ops, op)
			}
			return
		}
		c.Ops = append(c.Ops, op)
	}
	if r.Failed() {
		r.Field(field)
		c.Incomplete, c.FailedAt = true, len(c.Ops)
	}
}

// redactOps copies an array of operations.
func redactOps(x *xdr.Redactor, t opTable, results bool) {
	for n := x.Word(); n > 0 && !x.Failed(); n-- {
		info := t.info(x.Word())
		if info == nil {
			x.Fail(xdr.Value, "")
			return
		}
		body := info.skipArgs
		if results {
			body = info.skipRes
		}
		body.(xdr.Redactable).Redact(x)
	}
}

// hasData reports whether the length of the data at the end of m has been
// read, and so everything before it.
func hasData(m xdr.Message) bool {
	switch m := m.(type) {
	case *WRITE4args:
		return m.Data.Length > 0
	case *READ4res:
		return m.Status == NFS4_OK && m.Resok4.Data.Length > 0
	case *READLINK4res:
		return m.Status == NFS4_OK && m.Resok4.Link.Length > 0
	}
	return false
}

func (c *Operations) append(b []byte) []byte {
	b = xdr.AppendUint32(b, uint32(len(c.Ops)))
	for i := range c.Ops {
		b = xdr.AppendUint32(b, c.Ops[i].Number)
		if m := c.Ops[i].Body; m != nil {
			b = m.Append(b)
		}
	}
	return b
}

func (c *Operations) size() int {
	n := 4 + 4*len(c.Ops)
	for i := range c.Ops {
		if m := c.Ops[i].Body; m != nil {
			n += m.EncodedSize()
		}
	}
	return n
}

// walk visits each operation under its name. One that could not be decoded is
// visited without content.
func (c *Operations) walk(v xdr.Visitor, t opTable, results bool) {
	visit := func(i int, number uint32, body xdr.Message) {
		name, typ := "", ""
		if info := t.info(number); info == nil {
			name = OpName(number)
		} else if name, typ = info.name, info.args; results {
			typ = info.res
		}
		v.Begin(name, typ, i)
		if body != nil {
			body.Walk(v)
		}
		v.End()
	}
	for i := range c.Ops {
		visit(i, c.Ops[i].Number, c.Ops[i].Body)
	}
	if c.Incomplete && c.FailedAt == len(c.Ops) && c.FailedOp != 0 {
		visit(c.FailedAt, c.FailedOp, nil)
	}
}
