package parquet

import (
	"encoding/hex"
	"net/netip"
	"unicode/utf8"
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// encoder fills one Row after the other from transactions. What a Row points
// to is the encoder's and is used again for the next one.
type encoder struct {
	row    Row
	addrs  map[netip.Addr]string
	listed map[string]string // operations as listed
	keys   rpc.ConnectionKeys
	listB  []byte

	// What optional columns point to. The columns of an absent value are nil.
	minor, callFrame, replyFrame, invalidated int64
	phases                                    [8]int64
	lost                                      [rdma.NumCauses]int64
	fileOffset, fileCount                     uint64
	fileMoved                                 int64
	eof                                       bool
	names                                     [5]string

	text              []byte // names and handles of the row
	path              []byte
	reads, replyReads []ReadChunk
	segments          []Segment // of all chunks of the row
	writes, written   [][]Segment
	operations        []Operation
	notes, codes      []string
	size              int // bytes of the row, about
}

// maxKept is how many segments, operations or bytes of text are kept for the
// next row: what one hostile message made grow is given back.
const maxKept = 1 << 14

// encode fills the row and returns how many bytes it takes uncompressed,
// about.
func (e *encoder) encode(v *rpc.View) int {
	tx := v.Tx
	e.reset(tx)
	r := &e.row
	client, server := tx.Client(), tx.Server()
	*r = Row{
		Time: tx.First().Time, TimeNS: tx.First().Time, XID: int64(tx.XID), Connection: int64(tx.Connection.ID),
		ConnectionKey: e.keys.Of(tx.Connection),
		Fabric:        tx.Connection.Fabric.String(), Client: e.addr(client.Addr), Server: e.addr(server.Addr),
		ClientEndpoint: int64(client.Number()), ServerEndpoint: int64(server.Number()), Direction: "forward",
		Program: v.ProgramName(), Version: int64(tx.Version), Procedure: v.ProcedureName(),
		Operation: e.operation(v), OperationGroup: v.OperationGroup(),
		Status: v.Status(), GSS: v.Wrapped(),
		CallType: tx.Call.TypeName(), ReplyType: tx.Reply.TypeName(),
		CreditsRequested: int64(tx.Call.Credits()), CreditsGranted: int64(tx.Reply.Credits()),
		Reads: int64(tx.Reads), ReadBytes: int64(tx.ReadBytes), Writes: int64(tx.Writes), WriteBytes: int64(tx.WriteBytes),
		CallBytes: int64(tx.Call.Bytes), ReplyBytes: int64(tx.Reply.Bytes), Retransmits: int64(tx.Retransmits),
		State: tx.State.String(),
	}
	if tx.Backward {
		r.Direction = "backward"
	}
	if minor, ok := v.MinorVersion(); ok {
		e.minor = int64(minor)
		r.MinorVersion = &e.minor
	}
	for _, o := range v.Operations() {
		e.operations = append(e.operations, Operation{Op: o.Name, Status: o.Status})
	}
	r.Operations = e.operations
	if tx.Call.Last.Seen() {
		e.callFrame = int64(tx.Call.Last.Number)
		r.CallFrame = &e.callFrame
	}
	if tx.Reply.Last.Seen() {
		e.replyFrame = int64(tx.Reply.Last.Number)
		r.ReplyFrame = &e.replyFrame
	}
	e.chunks(tx)
	if tx.Reply.Invalidates {
		e.invalidated = int64(tx.Reply.Handle)
		r.InvalidatedHandle = &e.invalidated
	}
	e.latency(tx)
	e.blame(tx)
	if f := v.File(); f != nil {
		e.file(v, f)
	}
	for _, n := range tx.Notes {
		s, code := n.String(), n.Kind.Code()
		e.notes, e.codes = append(e.notes, s), append(e.codes, code)
		e.size += len(s) + len(code)
	}
	r.Notes, r.NoteCodes = e.notes, e.codes
	const fixed = 256 // what every row takes
	return fixed + e.size + len(e.text) + 24*len(e.segments) + 8*len(e.reads) + 16*len(e.operations)
}

func (e *encoder) reset(tx *transaction.Transaction) {
	if cap(e.text) > maxKept {
		e.text = nil
	}
	if cap(e.operations) > maxKept {
		e.operations = nil
	}
	e.text, e.operations, e.size = e.text[:0], e.operations[:0], 0
	e.notes, e.codes = e.notes[:0], e.codes[:0]
	e.reads, e.replyReads = reuse(e.reads), reuse(e.replyReads)
	e.writes, e.written = reuse(e.writes), reuse(e.written)
	// All segments of a row share one slice, which must not move while the
	// chunks point into it.
	n := count(&tx.Call) + count(&tx.Reply)
	if n > cap(e.segments) || cap(e.segments) > maxKept {
		e.segments = make([]Segment, 0, n)
	}
	e.segments = e.segments[:0]
}

func reuse[T any](s []T) []T {
	if cap(s) > maxKept {
		return nil
	}
	return s[:0]
}

// count is how many segments a message's lists have.
func count(m *transaction.Message) int {
	if !m.Transport {
		return 0
	}
	n := len(m.Header.Reads) + len(m.Header.Reply)
	for _, c := range m.Header.Writes {
		n += len(c)
	}
	return n
}

func (e *encoder) chunks(tx *transaction.Transaction) {
	r := &e.row
	if m := &tx.Call; m.Transport {
		e.reads = e.readChunks(e.reads, m)
		e.writes = e.writeChunks(e.writes, m)
		if m.Header.HasReply {
			r.ReplyChunk = e.chunk(m.Header.Reply)
		}
	}
	if m := &tx.Reply; m.Transport {
		e.replyReads = e.readChunks(e.replyReads, m)
		e.written = e.writeChunks(e.written, m)
		if m.Header.HasReply {
			r.WrittenReplyChunk = e.chunk(m.Header.Reply)
		}
	}
	r.ReadChunks, r.WriteChunks, r.WrittenChunks, r.ReplyReadChunks = e.reads, e.writes, e.written, e.replyReads
}

func (e *encoder) readChunks(list []ReadChunk, m *transaction.Message) []ReadChunk {
	for _, c := range m.Header.ReadChunks() {
		start := len(e.segments)
		for i := range c.Segments {
			e.segment(c.Segments[i].Segment)
		}
		list = append(list, ReadChunk{Position: int64(c.Position), Segments: e.segments[start:len(e.segments):len(e.segments)]})
	}
	return list
}

func (e *encoder) writeChunks(list [][]Segment, m *transaction.Message) [][]Segment {
	for _, c := range m.Header.Writes {
		list = append(list, e.chunk(c))
	}
	return list
}

// chunk returns the segments of a chunk; not nil, even if there are none.
func (e *encoder) chunk(c rpcrdma.WriteChunk) []Segment {
	start := len(e.segments)
	for i := range c {
		e.segment(c[i])
	}
	if len(c) == 0 {
		return []Segment{}
	}
	return e.segments[start:len(e.segments):len(e.segments)]
}

func (e *encoder) segment(s rpcrdma.Segment) {
	e.segments = append(e.segments, Segment{Handle: int64(s.Handle), Length: int64(s.Length), Offset: s.Offset})
}

func (e *encoder) latency(tx *transaction.Transaction) {
	p, ok := tx.Phases()
	if !ok {
		return
	}
	e.phases = [8]int64{
		int64(p.CallTransfer), int64(p.ArgumentPull), int64(p.PullWait), int64(p.Server),
		int64(p.ResultPush), int64(p.ReplyTransfer), int64(p.Total), int64(p.Ack),
	}
	n := &e.phases
	e.row.Latency = Latency{
		CallTransfer: &n[0], ArgumentPull: &n[1], PullWait: &n[2], Server: &n[3],
		ResultPush: &n[4], ReplyTransfer: &n[5], Total: &n[6],
	}
	if p.Ack >= 0 {
		e.row.Latency.Ack = &n[7]
	}
}

func (e *encoder) blame(tx *transaction.Transaction) {
	e.row.CreditWait, e.row.SlotWait = int64(tx.Credits), int64(tx.Slots)
	if tx.Blame == nil {
		return
	}
	e.lost = [rdma.NumCauses]int64{}
	n := &e.lost // the total where the rest would be
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		n[c] = int64(tx.Blame.Of(c))
		n[rdma.CauseRest] += n[c]
	}
	e.row.Lost = Lost{
		NotReady: &n[rdma.CauseNotReady], Recovery: &n[rdma.CauseRecovery], Congestion: &n[rdma.CauseCongestion],
		ReadSlot: &n[rdma.CauseReadSlot], Unknown: &n[rdma.CauseUnknown], Total: &n[rdma.CauseRest],
	}
}

func (e *encoder) file(v *rpc.View, f *rpc.File) {
	// Strings point into e.text, which therefore gets its room first: bytes
	// that are no UTF-8 grow to three each, and handles double.
	e.path = v.AppendPath(e.path[:0])
	if cap(e.path) > maxKept {
		defer func() { e.path = nil }()
	}
	if need := 3*(len(f.Name)+len(e.path)+len(f.To)) + 2*(len(f.Handle)+len(f.Result)); need > cap(e.text) {
		e.text = make([]byte, 0, need)
	}
	out := &e.row.File
	if f.Handle != nil {
		out.Handle = e.hex(0, f.Handle)
	}
	if f.Name != nil {
		out.Name = e.utf8(1, f.Name)
	}
	if len(e.path) > 0 {
		out.Path = e.utf8(2, e.path)
	}
	if f.To != nil {
		out.To = e.utf8(3, f.To)
	}
	if f.Result != nil {
		out.NewHandle = e.hex(4, f.Result)
	}
	if f.HasRange {
		e.fileOffset, e.fileCount = f.Offset, f.Count
		out.Offset, out.Count = &e.fileOffset, &e.fileCount
	}
	if f.HasMoved {
		e.fileMoved = int64(f.Moved)
		out.Moved = &e.fileMoved
	}
	out.Stable = f.Stable
	if f.EOF {
		e.eof = true
		out.EOF = &e.eof
	}
}

func (e *encoder) hex(i int, b []byte) *string {
	start := len(e.text)
	e.text = hex.AppendEncode(e.text, b)
	return e.view(i, start)
}

// utf8 copies a name; each byte that is no UTF-8 becomes U+FFFD.
func (e *encoder) utf8(i int, b []byte) *string {
	start := len(e.text)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			e.text = utf8.AppendRune(e.text, utf8.RuneError)
		} else {
			e.text = append(e.text, b[:n]...)
		}
		b = b[n:]
	}
	return e.view(i, start)
}

// view makes a string of what was appended to the text. The text is not
// changed before the row has been written.
func (e *encoder) view(i, start int) *string {
	b := e.text[start:]
	e.names[i] = unsafe.String(unsafe.SliceData(b), len(b))
	return &e.names[i]
}

// addr is the text of an address.
// operation is the operation as listed.
func (e *encoder) operation(v *rpc.View) string {
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
