package parquet

import (
	"net/netip"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/analyze/fields"
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
	last      *party // that of partyRows
	partyRows int
	bareRows  int // see flushBare
	places    [rpc.Places]placed
	calls     [32]procedure
	kinds     compound.Kinds
	compounds [compound.Most]operated

	// The bunches: rows of the page that have begun before this one, and how many of these have been appended to the columns of each.
	begun   int
	done    [bunches]int
	calling calling
	framing framing
	acked   bool
	reached delivered
	reader  fields.Reader
}

// maxKept is how many bytes of a name are kept room for: what one hostile message made grow is
// given back.
const maxKept = 1 << 14

// encode appends a row and returns how many bytes it takes uncompressed, about.
func (e *encoder) encode(v *rpc.View) int {
	tx := v.Tx
	const fixed = 256 // what every row takes
	e.size = fixed
	e.reader.Reset()
	c := e.rows
	at := tx.First().Time
	c.time.Add(at)
	c.timeNS.Add(at)
	c.xid.Add(int64(tx.XID))
	e.party(tx)
	e.called(v)
	c.status.Add(v.Status())
	e.rest(v)
	e.file(v)
	e.begun++
	return e.size
}

// procedure is one that consists of no operations, and where its name was written.
type procedure struct {
	*xdr.Procedure
	procedure, operation, group column.Mark
}

// operated is a COMPOUND of a kind, and where what it consists of was written.
type operated struct {
	stamp                       uint64 // of the compound.Kind
	procedure, operation, group column.Mark
	names, statuses             column.Marks
}

// called appends what was called.
func (e *encoder) called(v *rpc.View) {
	c := e.rows
	if k := e.kinds.Of(v); k != nil {
		e.compound(v, k)
		return
	}
	if list := v.Steps(); v.Procedure == nil || len(list) > 0 {
		c.procedure.Add(v.ProcedureName())
		c.operation.Add(e.listing(v))
		c.group.Add(v.OperationGroup())
		if len(list) > 0 {
			e.own(bunchListed)
			e.list(list)
		}
		return
	}
	k := &e.calls[v.Tx.Procedure%uint32(len(e.calls))]
	if k.Procedure != v.Procedure {
		*k = procedure{Procedure: v.Procedure}
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

// compound appends what a COMPOUND of a kind consists of.
func (e *encoder) compound(v *rpc.View, kind *compound.Kind) {
	c := e.rows
	k := &e.compounds[kind.Slot]
	if k.stamp != kind.Stamp {
		*k = operated{stamp: kind.Stamp, names: k.names, statuses: k.statuses} // for their room
		k.names.Forget()
		k.statuses.Forget()
	}
	if !c.procedure.Again(&k.procedure) {
		c.procedure.AddTextMarked(v.ProcedureName(), &k.procedure)
	}
	if !c.operation.Again(&k.operation) {
		c.operation.AddTextMarked(e.listing(v), &k.operation)
	}
	if !c.group.Again(&k.group) {
		c.group.AddTextMarked(v.OperationGroup(), &k.group)
	}
	e.own(bunchListed)
	list, o := v.Steps(), &c.operations
	if !kind.Ended {
		e.list(list)
		return
	}
	e.size += listSize * len(list)
	o.List(len(list))
	if !o.op.AllAgain(&k.names) {
		k.names.Forget()
		for i := range list {
			o.op.AddNext(list[i].Name, &k.names)
		}
	}
	o.status.List(len(list))
	if !o.status.AllAgain(&k.statuses) {
		k.statuses.Forget()
		for i := range list {
			o.status.AddNext(list[i].Status, &k.statuses)
		}
	}
}

// rest appends what follows the status, up to the file.
func (e *encoder) rest(v *rpc.View) {
	tx, c := v.Tx, e.rows
	e.call(v)
	e.frame(framing{tx.Call.TypeName(), tx.Reply.TypeName(), tx.Call.Credits(), tx.Reply.Credits()})
	e.deliver(tx)
	e.chunks(tx)
	if tx.Reads|tx.Writes != 0 || tx.ReadBytes|tx.WriteBytes != 0 {
		e.own(bunchTransfers)
		c.rdmaReads.Add(int64(tx.Reads))
		c.readBytes.Add(int64(tx.ReadBytes))
		c.rdmaWrites.Add(int64(tx.Writes))
		c.writeBytes.Add(int64(tx.WriteBytes))
	}
	c.callBytes.Add(int64(tx.Call.Bytes))
	c.replyBytes.Add(int64(tx.Reply.Bytes))
	if tx.Reply.Invalidates {
		e.own(bunchInvalidated)
		c.invalidated.add(int64(tx.Reply.Handle))
	}
	if w := v.Wrapped(); w != "" || v.Principal != "" || tx.Retransmits != 0 || tx.Credits|tx.Slots != 0 || tx.State != transaction.Complete || len(tx.Notes) > 0 {
		e.own(bunchUnusual)
		c.gss.addOr(w)
		c.opened.addOr(v.Opening().String())
		c.principal.addOr(v.Principal)
		c.again.Add(int64(tx.Retransmits))
		c.creditWait.Add(int64(tx.Credits))
		c.slotWait.Add(int64(tx.Slots))
		c.state.Add(tx.State.String())
		e.notes(tx.Notes)
	}
	e.latency(v)
	for i := range c.others {
		o := &c.others[i]
		if n, ok := o.read(&e.reader, v); ok {
			o.add(int64(n))
		} else {
			o.null()
		}
	}
	e.blame(tx)
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

// listSize is how many bytes an operation takes, about.
const listSize = 16

// list appends the operations of a COMPOUND.
func (e *encoder) list(list []rpc.Step) {
	c := &e.operations
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
	e.size += listSize * len(list)
}

func (e *encoder) chunks(tx *transaction.Transaction) {
	c := e.rows
	if m := &tx.Call; m.Transport && !m.Header.Plain() {
		e.readChunks(bunchReads, &c.reads, m)
		e.writeChunks(bunchWrites, &c.writes, m)
		e.replyChunk(bunchReply, &c.reply, m)
	}
	if m := &tx.Reply; m.Transport && !m.Header.Plain() {
		e.writeChunks(bunchWritten, &c.written, m)
		e.replyChunk(bunchWrittenReply, &c.writtenReply, m)
		e.readChunks(bunchReplyReads, &c.replyReads, m)
	}
}

func (e *encoder) readChunks(g bunch, c *readChunks, m *transaction.Message) {
	list := m.Header.ReadChunks()
	if len(list) == 0 {
		return
	}
	e.own(g)
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

func (e *encoder) writeChunks(g bunch, c *ranges, m *transaction.Message) {
	if len(m.Header.Writes) == 0 {
		return
	}
	e.own(g)
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
func (e *encoder) replyChunk(g bunch, c *ranges, m *transaction.Message) {
	if !m.Header.HasReply {
		return
	}
	e.own(g)
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

// server is the place of a phase among the columns of the latency.
const server = 3

func (e *encoder) latency(v *rpc.View) {
	tx, c, p := v.Tx, &e.rows.latency, e.reader.Phases(v)
	if p == nil {
		e.own(bunchSeen)
		e.own(bunchPhases)
		frame(e.callFrame, tx.Call.Last)
		frame(e.replyFrame, tx.Reply.Last)
		c.null()
		e.rows.total.null()
		e.ack(-1)
		return
	}
	if !p.Divided() {
		e.own(bunchSeen)
		e.own(bunchPhases)
		frame(e.callFrame, tx.Call.Last)
		frame(e.replyFrame, tx.Reply.Last)
		c.null()
		e.rows.total.add(int64(p.Total))
		e.ack(p.Ack)
		return
	}
	e.callFrame.Add(int64(tx.Call.Last.Number))
	e.replyFrame.Add(int64(tx.Reply.Last.Number))
	if p.CallTransfer|p.ArgumentPull|p.PullWait|p.ResultPush|p.ReplyTransfer != 0 {
		e.own(bunchPhases)
		c.list[0].Add(int64(p.CallTransfer))
		c.list[1].Add(int64(p.ArgumentPull))
		c.list[2].Add(int64(p.PullWait))
		c.list[4].Add(int64(p.ResultPush))
		c.list[5].Add(int64(p.ReplyTransfer))
	}
	c.list[server].Add(int64(p.Server))
	e.rows.total.Add(int64(p.Total))
	e.ack(p.Ack)
}

// lostCauses lists the causes that have columns, in the order of these; the total follows.
var lostCauses = [...]rdma.Cause{rdma.CauseNotReady, rdma.CauseRecovery, rdma.CauseCongestion, rdma.CauseReadSlot, rdma.CauseUnknown}

func (e *encoder) blame(tx *transaction.Transaction) {
	c := &e.rows.lost
	if tx.Blame == nil {
		e.own(bunchLost)
		c.null()
		return
	}
	if tx.Blame.Quiet {
		return
	}
	var of [len(lostCauses)]int64
	sum, any := int64(0), int64(0)
	for i, cause := range lostCauses {
		of[i] = int64(tx.Blame.Of(cause))
		sum += of[i]
		any |= of[i]
	}
	if any == 0 {
		return
	}
	e.own(bunchLost)
	c.Value(0)
	for i, d := range of {
		c.list[i].Add(d)
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
	p := v.Names.Of(v.Tx).Place(f.Handle)
	if p == nil || f.Handle == nil || f.Unnamed || f.To != nil || f.HasRange || f.HasMoved || f.Stable != "" || f.EOF {
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
	if p == nil || f.Handle == nil || f.Unnamed {
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
	case f.Name != nil && len(p.Path) > 0 && k.plain && printable.Plain(f.Name): // so is the path of both
		e.path = append(append(append(e.path[:0], p.Path...), '/'), f.Name...)
		e.size += len(f.Name) + len(e.path)
		c.name.bytes(f.Name)
		c.path.bytes(e.path)
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
