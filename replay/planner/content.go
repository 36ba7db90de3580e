package planner

import (
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// maxContent bounds the pieces of one file's content.
const maxContent = 1 << 16

// content keeps what the workload read or wrote.
type content struct {
	mode    plan.PayloadMode
	file    *dataFile // nil unless mode is Captured
	room    *room
	summary *plan.Summary
	limit   func(what string)
	fail    func(error)
}

// payload keeps data that is written to an object; b is what the capture has of it.
func (c *content) payload(object int, offset uint64, length uint32, b []byte, why *reasons) *plan.Payload {
	p := &plan.Payload{Length: length, Source: c.mode, Offset: offset, Object: object}
	c.summary.WriteBytes += uint64(length)
	if len(b) < int(length) {
		if p.Source == plan.Captured {
			p.Source = plan.Pattern
			why.add(plan.Synthesised, "data missing from the capture: made up")
		}
		return p
	}
	if p.Source != plan.Captured {
		why.add(plan.Synthesised, "data made up, as asked for")
		p.Hash = plan.HashData(b)
		return p
	}
	var err error
	p.At, p.Hash, err = c.file.add(b)
	c.fail(err)
	return p
}

// read learns the content of a file from what a READ returned.
func (c *content) read(o *obj, offset uint64, length uint32, b []byte, eof bool) {
	c.summary.ReadBytes += uint64(length)
	o = o.real()
	if o == nil || o.origin != plan.Before {
		return
	}
	end := offset + uint64(length)
	if end < offset {
		return
	}
	if !o.sizeChanged {
		switch {
		case o.sizeClass == plan.Exact && (end > o.size && length > 0 || eof && end < o.size):
			o.foreign()
		case eof && o.sizeClass == "":
			o.size, o.sizeClass = end, plan.Exact
		}
		o.own().readEnd = max(o.readEnd, end)
	}
	if c.mode != plan.Captured || len(b) == 0 {
		return
	}
	if len(o.known) >= maxSpans || len(o.content) >= maxContent || c.room.full() {
		c.limit("more pieces of one file's content than are followed")
		return
	}
	c.same(o, offset, b)
	mine := o.own()
	o.written.gaps(offset, offset+uint64(len(b)), func(from, to uint64) {
		o.known.gaps(from, to, func(from, to uint64) {
			at, _, err := c.file.add(b[from-offset : to-offset])
			c.fail(err)
			if n := len(mine.content); n > 0 && mine.content[n-1].Offset+mine.content[n-1].Length == from && mine.content[n-1].At+int64(mine.content[n-1].Length) == at {
				mine.content[n-1].Length += to - from
			} else {
				if mine.pieces == nil {
					mine.pieces = map[uint64]int{}
				}
				mine.pieces[from] = n
				mine.content = append(mine.content, plan.Extent{Offset: from, Length: to - from, At: at})
				c.room.take(extentSize)
			}
		})
	})
	mine.known.add(offset, offset+uint64(len(b)))
	c.room.take(spanSize)
}

// same compares read data with what was read there before.
func (c *content) same(o *obj, offset uint64, b []byte) {
	i, ok := o.pieces[offset]
	if !ok || o.sizeChanged || len(o.written) > 0 {
		return
	}
	if e := &o.content[i]; e.Length == uint64(len(b)) {
		at, _, err := c.file.add(b)
		c.fail(err)
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

// item returns the bytes of an item of a call or its reply; fewer than its length if the capture
// lacks some.
func item(v *rpc.View, d xdr.Data, reply bool) []byte {
	b := d.Inline
	if d.Chunk != 0 {
		if reply {
			b = v.Tx.ReplyData(d.Chunk - 1)
		} else {
			b = v.Tx.CallData(d.Chunk - 1)
		}
	}
	return b[:min(len(b), int(d.Length))]
}
