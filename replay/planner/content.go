package planner

import (
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// maxContent bounds the pieces of one file's content.
const maxContent = 1 << 16

// payload keeps data that is written to an object.
func (c *call) payload(o *obj, offset uint64, d xdr.Data) *plan.Payload {
	b := c.item(d, false)
	p := &plan.Payload{Length: d.Length, Source: c.b.opt.Payload, Offset: offset}
	c.b.summary.WriteBytes += uint64(d.Length)
	if o != nil {
		p.Object = c.b.space.ref(o)
	}
	if len(b) < int(d.Length) {
		if p.Source == plan.Captured {
			p.Source = plan.Pattern
			c.worse(plan.Synthesised, "data missing from the capture: made up")
		}
		return p
	}
	if p.Source != plan.Captured {
		c.worse(plan.Synthesised, "data made up, as asked for")
		p.Hash = plan.HashData(b)
		return p
	}
	var err error
	p.At, p.Hash, err = c.b.data.add(b)
	c.b.fail(err)
	return p
}

// linkText adds the target of a symlink.
func (c *call) linkText(n string, d xdr.Data) {
	b := c.item(d, false)
	p := &plan.Payload{Length: d.Length, Source: plan.Captured}
	if len(b) < int(d.Length) {
		c.worse(plan.Synthesised, "data missing from the capture: made up")
		p.Source = plan.Pattern
		for len(b) < int(d.Length) {
			b = append(b[:len(b):len(b)], 'x')
		}
	}
	p.Text = append([]byte{}, b...)
	p.Hash = plan.HashData(b)
	c.detail = "-> " + string(b)
	c.form.data(n, p, d)
}

// read learns the content of a file from what a READ returned.
func (c *call) read(o *obj, offset uint64, d xdr.Data, eof bool) {
	c.b.summary.ReadBytes += uint64(d.Length)
	o = o.real()
	if o == nil || o.origin != plan.Before {
		return
	}
	b := c.item(d, true)
	end := offset + uint64(d.Length)
	if end < offset {
		return
	}
	if !o.sizeChanged {
		switch {
		case o.sizeClass == plan.Exact && (end > o.size && d.Length > 0 || eof && end < o.size):
			o.foreign()
		case eof && o.sizeClass == "":
			o.size, o.sizeClass = end, plan.Exact
		}
		o.own().readEnd = max(o.readEnd, end)
	}
	if c.b.opt.Payload != plan.Captured || len(b) == 0 {
		return
	}
	if len(o.known) >= maxSpans || len(o.content) >= maxContent || c.b.room.full() {
		c.b.limit("more pieces of one file's content than are followed")
		return
	}
	c.same(o, offset, b)
	mine := o.own()
	o.written.gaps(offset, offset+uint64(len(b)), func(from, to uint64) {
		o.known.gaps(from, to, func(from, to uint64) {
			at, _, err := c.b.data.add(b[from-offset : to-offset])
			c.b.fail(err)
			if n := len(mine.content); n > 0 && mine.content[n-1].Offset+mine.content[n-1].Length == from && mine.content[n-1].At+int64(mine.content[n-1].Length) == at {
				mine.content[n-1].Length += to - from
			} else {
				if mine.pieces == nil {
					mine.pieces = map[uint64]int{}
				}
				mine.pieces[from] = n
				mine.content = append(mine.content, plan.Extent{Offset: from, Length: to - from, At: at})
				c.b.room.take(extentSize)
			}
		})
	})
	mine.known.add(offset, offset+uint64(len(b)))
	c.b.room.take(spanSize)
}

// same compares read data with what was read there before.
func (c *call) same(o *obj, offset uint64, b []byte) {
	i, ok := o.pieces[offset]
	if !ok || o.sizeChanged || len(o.written) > 0 {
		return
	}
	if e := &o.content[i]; e.Length == uint64(len(b)) {
		at, _, err := c.b.data.add(b)
		c.b.fail(err)
		if at != e.At {
			o.foreign()
		}
	}
}

// foreign notes that a client that is not in the capture has changed a file.
func (o *obj) foreign() {
	o.others = true
	o.note(plan.NoteChanged, "")
}

// bytes returns those of an item of the call or the reply; fewer than its length if the capture
// lacks some.
func (c *call) item(d xdr.Data, reply bool) []byte {
	b := d.Inline
	if d.Chunk != 0 {
		if reply {
			b = c.v.Tx.ReplyData(d.Chunk - 1)
		} else {
			b = c.v.Tx.CallData(d.Chunk - 1)
		}
	}
	return b[:min(len(b), int(d.Length))]
}
