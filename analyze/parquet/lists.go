package parquet

import (
	"reflect"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/parquet/column"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// list is the columns of an attribute that is a list.
type list interface {
	// Nulls appends rows without any value.
	Nulls(times int)
	append(e *encoder, v *rpc.View)
}

// lists are the attributes that are lists of objects, or of lists.
var lists = map[string]struct {
	of      reflect.Type
	options string
	columns func(f *column.File, path string) list
}{
	"operations":          {reflect.TypeFor[[]operation](), ",list", newOperations},
	"read_chunks":         {reflect.TypeFor[[]readChunk](), ",list", readChunksOf(call)},
	"write_chunks":        {reflect.TypeFor[[][]segment](), ",list", writeChunksOf(call)},
	"reply_chunk":         {reflect.TypeFor[[]segment](), ",optional,list", replyChunkOf(call)},
	"written_chunks":      {reflect.TypeFor[[][]segment](), ",list", writeChunksOf(reply)},
	"written_reply_chunk": {reflect.TypeFor[[]segment](), ",optional,list", replyChunkOf(reply)},
	"reply_read_chunks":   {reflect.TypeFor[[]readChunk](), ",list", readChunksOf(reply)},
}

// operation is one of a COMPOUND.
type operation struct {
	Op     string `parquet:"op"`
	Status string `parquet:"status,optional"` // null if the reply does not have it
}

// readChunk is the Read segments of one position.
type readChunk struct {
	Position int64     `parquet:"position"`
	Segments []segment `parquet:"segments,list"`
}

// segment is a piece of memory that one side offers.
type segment struct {
	Handle int64  `parquet:"handle"`
	Length int64  `parquet:"length"`
	Offset uint64 `parquet:"offset"`
}

const element = ".list.element"

// again is the repetition level of the i-th entry of a list: the first one begins what its list stands in.
func again(i int, begins, continues byte) byte {
	if i == 0 {
		return begins
	}
	return continues
}

// operations has the columns of a COMPOUND's operations.
type operations struct {
	*column.Levels
	op       *column.Texts
	statuses *column.Levels
	status   *column.Texts
	without  int // how many rows have none, not yet passed to the levels
}

func newOperations(f *column.File, path string) list {
	ops, statuses := f.Levels(), f.Levels()
	return &operations{ops, f.Texts(path+element+".op", ops), statuses, f.Texts(path+element+".status", statuses), 0}
}

func (c *operations) Nulls(times int) { c.without += times }

// settle tells the levels.
func (c *operations) settle() {
	if c.without > 0 {
		c.Levels.Nulls(c.without)
		c.statuses.Nulls(c.without)
		c.without = 0
	}
}

// listSize is how many bytes an operation takes, about.
const listSize = 16

func (c *operations) append(e *encoder, v *rpc.View) {
	c.settle()
	list := v.Steps()
	for i := range list {
		o, rep := &list[i], again(i, 0, 1)
		c.Value(rep)
		c.op.Add(o.Name)
		if o.Status == "" {
			c.statuses.Null(rep, 1)
		} else {
			c.statuses.Value(rep)
			c.status.Add(o.Status)
		}
	}
	e.size += listSize * len(list)
}

// texts is a list of strings.
type texts struct {
	*column.Levels
	*column.Texts
	field *fields.Field
}

func newTexts(f *column.File, field *fields.Field) list {
	l := f.Levels()
	return &texts{l, f.Texts(field.Name+element, l), field}
}

func (c *texts) append(e *encoder, v *rpc.View) {
	e.value.list, e.value.of = e.value.list[:0], c.field
	c.field.Read(&e.reader, v)
	for i, s := range e.value.list {
		c.Value(again(i, 0, 1))
		c.Add(s)
		e.size += len(s)
	}
	if len(e.value.list) == 0 {
		c.Null(0, 0)
	}
}

// segments has the columns of lists of segments, or of lists of such lists.
type segments struct {
	*column.Levels
	handle, length, offset *column.Ints
}

func newSegments(f *column.File, path string) segments {
	l := f.Levels()
	return segments{l, f.Ints(path+".handle", l), f.Ints(path+".length", l), f.Ints(path+".offset", l)}
}

func (c *segments) add(s *rpcrdma.Segment) {
	c.handle.Add(int64(s.Handle))
	c.length.Add(int64(s.Length))
	c.offset.Add(int64(s.Offset))
}

type messageOf func(*rpc.View) *transaction.Message

func call(v *rpc.View) *transaction.Message  { return &v.Tx.Call }
func reply(v *rpc.View) *transaction.Message { return &v.Tx.Reply }

// readChunks are lists of positions with segments.
type readChunks struct {
	*column.Levels
	message  messageOf
	position *column.Ints
	segments segments
}

func readChunksOf(m messageOf) func(*column.File, string) list {
	return func(f *column.File, path string) list {
		l := f.Levels()
		return &readChunks{l, m, f.Ints(path+element+".position", l), newSegments(f, path+element+".segments"+element)}
	}
}

func (c *readChunks) Nulls(times int) {
	c.Levels.Nulls(times)
	c.segments.Nulls(times)
}

func (c *readChunks) append(e *encoder, v *rpc.View) {
	m := c.message(v)
	if !m.Transport || len(m.Header.Reads) == 0 {
		c.Nulls(1)
		return
	}
	list := m.Header.ReadChunks() // as many positions as there are, and at least one
	for i := range list {
		x, rep := &list[i], again(i, 0, 1)
		c.Value(rep)
		c.position.Add(int64(x.Position))
		if len(x.Segments) == 0 {
			c.segments.Null(rep, 1)
		}
		for j := range x.Segments {
			c.segments.Value(again(j, rep, 2))
			c.segments.add(&x.Segments[j].Segment)
		}
		e.size += 8 + 24*len(x.Segments)
	}
}

// writeChunks are lists of lists of segments.
type writeChunks struct {
	segments
	message messageOf
}

func writeChunksOf(m messageOf) func(*column.File, string) list {
	return func(f *column.File, path string) list { return &writeChunks{newSegments(f, path+element+element), m} }
}

func (c *writeChunks) append(e *encoder, v *rpc.View) {
	m := c.message(v)
	if !m.Transport || len(m.Header.Writes) == 0 {
		c.Nulls(1)
		return
	}
	for i, x := range m.Header.Writes {
		rep := again(i, 0, 1)
		if len(x) == 0 {
			c.Null(rep, 1)
		}
		for j := range x {
			c.Value(again(j, rep, 2))
			c.add(&x[j])
		}
		e.size += 24 * len(x)
	}
}

// replyChunk is the segments of a Reply chunk: null if there is none, an empty list if it has none.
type replyChunk struct {
	segments
	message messageOf
}

func replyChunkOf(m messageOf) func(*column.File, string) list {
	return func(f *column.File, path string) list { return &replyChunk{newSegments(f, path+element), m} }
}

func (c *replyChunk) append(e *encoder, v *rpc.View) {
	m := c.message(v)
	if !m.Transport || !m.Header.HasReply {
		c.Nulls(1)
		return
	}
	x := m.Header.Reply
	if len(x) == 0 {
		c.Null(0, 1)
	}
	for i := range x {
		c.Value(again(i, 0, 1))
		c.add(&x[i])
	}
	e.size += 24 * len(x)
}
