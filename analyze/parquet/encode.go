package parquet

import (
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/parquet/column"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// encoder appends one transaction after the other to the columns.
type encoder struct {
	*rows
	addrs  map[netip.Addr]string
	listed map[string]string // operations as listed
	keys   rpc.ConnectionKeys
	listB  []byte
	text   []byte // a name
	path   []byte
	size   int // bytes of the row, about

	parties   [64]party
	last      *party   // that of partyRows
	alike     likeness // that of usualRows
	partyRows int
	usualRows int
	bareRows  int // see flushBare
	places    [rpc.Places]placed
	calls     [32]called
}

// maxKept is how many bytes of a name are kept room for: what one hostile message made grow is
// given back.
const maxKept = 1 << 14

// encode appends a row and returns how many bytes it takes uncompressed, about.
func (e *encoder) encode(v *rpc.View) int {
	tx := v.Tx
	const fixed = 256 // what every row takes
	e.size = fixed
	c := e.rows
	at := tx.First().Time
	c.time.Add(at)
	c.timeNS.Add(at)
	c.xid.Add(int64(tx.XID))
	e.party(tx)
	e.called(v)
	c.status.Add(v.Status())
	if !e.usual(v) {
		e.any(v)
	}
	e.file(v)
	return e.size
}

// called is a procedure that consists of no operations, and where its name was written.
type called struct {
	*xdr.Procedure
	procedure, operation, group column.Mark
}

// called appends what was called.
func (e *encoder) called(v *rpc.View) {
	c := e.rows
	if v.Procedure == nil || len(v.Steps()) > 0 {
		c.procedure.Add(v.ProcedureName())
		c.operation.Add(e.listing(v))
		c.group.Add(v.OperationGroup())
		return
	}
	k := &e.calls[v.Tx.Procedure%uint32(len(e.calls))]
	if k.Procedure != v.Procedure {
		*k = called{Procedure: v.Procedure}
	}
	if !c.procedure.Again(&k.procedure) {
		c.procedure.AddTextMarked(k.Name, &k.procedure)
	}
	if !c.operation.Again(&k.operation) {
		c.operation.AddTextMarked(k.Name, &k.operation)
	}
	if !c.group.Again(&k.group) {
		c.group.AddTextMarked(k.Name, &k.group)
	}
}

// any appends what usual counts.
func (e *encoder) any(v *rpc.View) {
	tx, c := v.Tx, e.rows
	e.flushUsual()
	c.program.Add(v.ProgramName())
	c.version.Add(int64(tx.Version))
	if minor, ok := v.MinorVersion(); ok {
		c.minor.add(int64(minor))
	} else {
		c.minor.null()
	}
	e.compound(v)
	c.gss.addOr(v.Wrapped())
	frame(c.callFrame, tx.Call.Last)
	frame(c.replyFrame, tx.Reply.Last)
	c.callType.Add(tx.Call.TypeName())
	c.replyType.Add(tx.Reply.TypeName())
	c.requested.Add(int64(tx.Call.Credits()))
	c.granted.Add(int64(tx.Reply.Credits()))
	e.chunks(tx)
	c.rdmaReads.Add(int64(tx.Reads))
	c.readBytes.Add(int64(tx.ReadBytes))
	c.rdmaWrites.Add(int64(tx.Writes))
	c.writeBytes.Add(int64(tx.WriteBytes))
	c.callBytes.Add(int64(tx.Call.Bytes))
	c.replyBytes.Add(int64(tx.Reply.Bytes))
	c.again.Add(int64(tx.Retransmits))
	if tx.Reply.Invalidates {
		c.invalidated.add(int64(tx.Reply.Handle))
	} else {
		c.invalidated.null()
	}
	e.latency(tx)
	e.blame(tx)
	c.state.Add(tx.State.String())
	e.notes(tx.Notes)
}

func frame(c optionalInt, r rdma.Ref) {
	if r.Seen() {
		c.add(int64(r.Number))
	} else {
		c.null()
	}
}

// again is the repetition level of the i-th entry of a list: the first one begins what its list stands in.
func again(i int, begins, continues byte) byte {
	if i == 0 {
		return begins
	}
	return continues
}

func (e *encoder) compound(v *rpc.View) {
	c := &e.operations
	list := v.Steps()
	if len(list) == 0 {
		c.Null(0, 0)
		c.status.null()
	}
	for i := range list {
		o, rep := &list[i], again(i, 0, 1)
		c.Value(rep)
		c.op.Add(o.Name)
		if o.Status == "" {
			c.status.Null(rep, 1)
		} else {
			c.status.Value(rep)
			c.status.Add(o.Status)
		}
	}
	e.size += 16 * len(list)
}

func (e *encoder) chunks(tx *transaction.Transaction) {
	c := e.rows
	e.readChunks(&c.reads, &tx.Call)
	e.writeChunks(&c.writes, &tx.Call)
	e.replyChunk(&c.reply, &tx.Call)
	e.writeChunks(&c.written, &tx.Reply)
	e.replyChunk(&c.writtenReply, &tx.Reply)
	e.readChunks(&c.replyReads, &tx.Reply)
}

func (e *encoder) readChunks(c *readChunks, m *transaction.Message) {
	if !m.Transport || len(m.Header.Reads) == 0 && len(m.Header.Call) == 0 {
		c.Null(0, 0)
		c.segments.Null(0, 0)
		return
	}
	list := m.Header.ReadChunks()
	if len(list) == 0 {
		c.Null(0, 0)
		c.segments.Null(0, 0)
	}
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

func (e *encoder) writeChunks(c *ranges, m *transaction.Message) {
	if !m.Transport || len(m.Header.Writes) == 0 {
		c.Null(0, 0)
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

// replyChunk writes the segments of a Reply chunk: null if there is none, an empty list if it has none.
func (e *encoder) replyChunk(c *ranges, m *transaction.Message) {
	if !m.Transport || !m.Header.HasReply {
		c.Null(0, 0)
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

func (c *ranges) add(s *rpcrdma.Segment) {
	c.handle.Add(int64(s.Handle))
	c.length.Add(int64(s.Length))
	c.offset.Add(int64(s.Offset))
}

// server and whole are the places of two phases among the columns of the latency.
const (
	server = 3
	whole  = 6
)

func (e *encoder) latency(tx *transaction.Transaction) {
	c := &e.rows.latency
	p, ok := tx.Phases()
	if !ok {
		c.null()
		e.ack.null()
		return
	}
	c.Value(0)
	for i, d := range [...]time.Duration{p.CallTransfer, p.ArgumentPull, p.PullWait, p.Server, p.ResultPush, p.ReplyTransfer, p.Total} {
		c.list[i].Add(int64(d))
	}
	if p.Ack >= 0 {
		e.ack.add(int64(p.Ack))
	} else {
		e.ack.null()
	}
}

// lostCauses lists the causes that have columns, in the order of these; the total follows.
var lostCauses = [...]rdma.Cause{rdma.CauseNotReady, rdma.CauseRecovery, rdma.CauseCongestion, rdma.CauseReadSlot, rdma.CauseUnknown}

func (e *encoder) blame(tx *transaction.Transaction) {
	c := &e.lost
	e.creditWait.Add(int64(tx.Credits))
	e.slotWait.Add(int64(tx.Slots))
	if tx.Blame == nil {
		c.null()
		return
	}
	c.Value(0)
	if tx.Blame.Quiet {
		for _, x := range c.list {
			x.Add(0)
		}
		return
	}
	sum := int64(0)
	for i, cause := range lostCauses {
		d := int64(tx.Blame.Of(cause))
		c.list[i].Add(d)
		sum += d
	}
	c.list[len(lostCauses)].Add(sum)
}

func (e *encoder) notes(list []transaction.Note) {
	if len(list) == 0 {
		e.rows.notes.Null(0, 0)
		e.codes.Null(0, 0)
	}
	for i, n := range list {
		s, code, rep := n.String(), n.Kind.Code(), again(i, 0, 1)
		e.rows.notes.Value(rep)
		e.rows.notes.Add(s)
		e.codes.Value(rep)
		e.codes.Add(code)
		e.size += len(s) + len(code)
	}
}

func (e *encoder) file(v *rpc.View) {
	c := &e.rows.file
	f := v.File()
	if f == nil {
		f = &noFile
	}
	p := v.Names.Place(f.Handle)
	if p == nil || f.Handle == nil || f.To != nil || f.HasRange || f.HasMoved || f.Stable != "" || f.EOF {
		e.flushBare()
		if f.Handle == nil {
			c.handle.null()
		} else {
			c.handle.Value(0)
		}
		e.bytesOf(f)
	} else {
		e.bareRows++
	}
	e.fileAt(v, f, p)
	e.handle(c.result, f.Result)
	if cap(e.path) > maxKept {
		e.path = nil
	}
	if cap(e.text) > maxKept {
		e.text = nil
	}
}

// placed is a file that transactions were about lately, and where its handle and its path were written.
type placed struct {
	stamp        uint64 // of the rpc.Place
	plain        bool   // the path is ASCII
	handle, path column.Mark
}

// fileAt appends the handle, the name and the path of a file. That it has a handle has been said.
func (e *encoder) fileAt(v *rpc.View, f *rpc.File, p *rpc.Place) {
	c := &e.rows.file
	if p == nil || f.Handle == nil {
		if f.Handle != nil {
			e.size += 2 * len(f.Handle)
			c.handle.AddBytes(f.Handle)
		}
		e.path = v.AppendPath(e.path[:0])
		e.name(c.name, f.Name, f.Name != nil)
		e.name(c.path, e.path, len(e.path) > 0)
		return
	}
	k := &e.places[uint(p.Slot)%rpc.Places]
	if k.stamp != p.Stamp {
		*k = placed{stamp: p.Stamp, plain: printable.Plain(p.Path)}
	}
	e.size += 2 * len(f.Handle)
	if !c.handle.Again(&k.handle) {
		c.handle.AddMarked(f.Handle, &k.handle)
	}
	switch {
	case f.Name != nil:
		e.name(c.name, f.Name, true)
		if len(p.Path) == 0 {
			e.name(c.path, f.Name, len(f.Name) > 0)
			return
		}
		e.path = append(append(append(e.path[:0], p.Path...), '/'), f.Name...)
		e.name(c.path, e.path, true)
	case len(p.Path) == 0:
		c.name.null()
		c.path.null()
	case !k.plain:
		c.name.null()
		e.name(c.path, p.Path, true)
	default:
		c.name.null()
		e.size += len(p.Path)
		c.path.Value(0)
		if !c.path.Again(&k.path) {
			c.path.AddMarked(p.Path, &k.path)
		}
	}
}

// bytesOf appends the new name of a file, and the bytes of it that were read or written.
func (e *encoder) bytesOf(f *rpc.File) {
	c := &e.rows.file
	e.name(c.to, f.To, f.To != nil)
	if f.HasRange {
		c.offset.add(int64(f.Offset))
		c.count.add(int64(f.Count))
	} else {
		c.offset.null()
		c.count.null()
	}
	if f.HasMoved {
		c.moved.add(int64(f.Moved))
	} else {
		c.moved.null()
	}
	c.stable.addOr(f.Stable)
	if f.EOF {
		c.eof.Value(0)
		c.eof.Add(true)
	} else {
		c.eof.Null(0, 0)
	}
}

// flushBare appends the rows that have a handle, and nothing of bytesOf.
func (e *encoder) flushBare() {
	n, c := e.bareRows, &e.rows.file
	if n == 0 {
		return
	}
	e.bareRows = 0
	c.handle.Values(n)
	for _, l := range [...]*column.Levels{c.to.Levels, c.offset.Levels, c.count.Levels, c.moved.Levels, c.stable.Levels, c.eof.Levels} {
		l.Nulls(n)
	}
}

var noFile rpc.File

func (e *encoder) handle(c optionalText, b []byte) {
	if b == nil {
		c.null()
		return
	}
	e.size += 2 * len(b)
	c.bytes(b)
}

// name appends a name; each byte that is no UTF-8 becomes U+FFFD.
func (e *encoder) name(c optionalText, b []byte, is bool) {
	if !is {
		c.null()
		return
	}
	if !printable.Plain(b) && !utf8.Valid(b) {
		t := e.text[:0]
		for len(b) > 0 {
			r, n := utf8.DecodeRune(b)
			if r == utf8.RuneError && n == 1 {
				t = utf8.AppendRune(t, utf8.RuneError)
			} else {
				t = append(t, b[:n]...)
			}
			b = b[n:]
		}
		e.text, b = t, t
	}
	e.size += len(b)
	c.bytes(b)
}

// listing is the operation as listed.
func (e *encoder) listing(v *rpc.View) string {
	e.listB = v.AppendOperation(e.listB[:0])
	s, ok := e.listed[string(e.listB)]
	if !ok {
		if e.listed == nil || len(e.listed) > 4096 {
			e.listed = make(map[string]string)
		}
		s = string(e.listB)
		e.listed[s] = s
	}
	return s
}

// addr is the text of an address.
func (e *encoder) addr(a netip.Addr) string {
	s, ok := e.addrs[a]
	if !ok {
		if e.addrs == nil || len(e.addrs) > 4096 {
			e.addrs = make(map[netip.Addr]string)
		}
		s = link.AddrString(a)
		e.addrs[a] = s
	}
	return s
}
