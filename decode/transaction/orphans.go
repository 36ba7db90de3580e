package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// orphans has the latest RDMA operations on the memory of one side that no call has asked for.
type orphans struct {
	list [maxOrphans]orphan
	at   int
}

// maxOrphans is how many RDMA operations without a call are remembered of a
// side.
const maxOrphans = 16

// orphan is an RDMA operation whose call was not captured. The reply may still
// name its segment.
type orphan struct {
	set    bool
	gen    uint64
	kind   rdma.OpKind
	from   rdma.Side
	handle uint32
	length uint32
	bytes  uint32
	again  int
	offset uint64
	first  rdma.Ref
	last   rdma.Ref
	data   []byte // of a Write: its start, for a Reply chunk
}

// add remembers an operation that begins. gen tells it from all others.
func (l *orphans) add(op *rdma.Op, gen uint64, ref rdma.Ref) rdma.Tag {
	i := l.at
	l.at = (i + 1) % len(l.list)
	l.list[i] = orphan{
		data: l.list[i].data[:0], set: true, gen: gen, kind: op.Kind, from: op.From,
		handle: op.Handle, offset: op.Offset, length: op.Length, first: ref, last: ref,
	}
	return orphanTagOf(gen, i)
}

// of returns an operation, nil if it is forgotten.
func (l *orphans) of(op *rdma.Op) *orphan {
	if l == nil || kindOf(op.Tag) != orphanTag {
		return nil
	}
	o := &l.list[number(op.Tag)%len(l.list)]
	if o.gen != op.Tag.W0>>numberBits {
		return nil
	}
	return o
}

// take takes payload. It returns by how many bytes the operation has grown.
func (o *orphan) take(op *rdma.Op, f *rdma.Fragment) (grown int) {
	o.last = f.Ref
	o.length = max(o.length, op.Length)
	if f.Again {
		o.again++
		return 0
	}
	if left := headOnly - len(o.data); op.Kind == rdma.Write && left > 0 && f.Offset == o.offset+uint64(o.bytes) && len(o.data) == int(o.bytes) {
		before := cap(o.data)
		o.data = append(o.data, f.Data[:min(len(f.Data), left)]...)
		grown = cap(o.data) - before
	}
	o.bytes += f.Length
	return grown
}

// owned is how many bytes their data take.
func (l *orphans) owned() (n int) {
	for i := range l.list {
		n += cap(l.list[i].data)
	}
	return n
}
