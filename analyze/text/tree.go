package text

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Tree shows transactions in full: timeline, transport headers with their
// chunks, RDMA operations, RPC headers, arguments and results.
type Tree struct {
	// Level is how much is shown: 0 only what Hex asks for, 1 a compact form that shortens long lists and
	// values, 2 everything.
	Level int
	Hex   bool // also show the bytes of the messages
	Width int  // columns of a line; 0 means 120
	Color bool

	fields fields
}

func (t *Tree) width() int {
	if t.Width <= 0 {
		return defaultWidth
	}
	return t.Width
}

func (t *Tree) full() bool { return t.Level > 1 }

// Append appends the lines that follow the transaction's line.
func (t *Tree) Append(b []byte, v *rpc.View) []byte {
	if t.Level > 0 {
		b = t.connection(b, v)
		b = t.timeline(b, v.Tx)
		b = t.message(b, v, &v.Tx.Call, false)
		b = t.operations(b, v.Tx)
		b = t.message(b, v, &v.Tx.Reply, true)
		b = t.body(b, v)
		b = t.notes(b, v.Tx)
	}
	if t.Hex {
		b = t.bytes(b, v)
	}
	return b
}

func (t *Tree) heading(b []byte, s string) []byte {
	b = append(b, "  "...)
	return Paint(b, t.Color, ColorBold, s)
}

func (t *Tree) connection(b []byte, v *rpc.View) []byte {
	tx := v.Tx
	c := tx.Connection
	b = t.heading(b, "Connection ")
	b = strconv.AppendInt(b, int64(c.ID), 10)
	b = append(b, ": "...)
	b = append(b, c.Fabric.String()...)
	if tx.Backward {
		b = append(b, ", backward"...)
	} else {
		b = append(b, ", forward"...)
	}
	b = append(b, ", "...)
	b = appendEnd(b, tx.Client())
	b = append(b, " > "...)
	b = appendEnd(b, tx.Server())
	b = append(b, '\n')
	if c.Tunnel != nil {
		b = t.heading(b, "Tunnel: ")
		b = Tunnel(b, c.Tunnel, tx.From)
		b = append(b, '\n')
	}
	b = t.heading(b, "Transaction: ")
	b = append(b, tx.State.String()...)
	b = append(b, ", from "...)
	b = timestamp(b, tx.First())
	b = append(b, " UTC"...)
	if tx.Retransmits > 0 {
		b = append(b, ", "...)
		b = strconv.AppendInt(b, int64(tx.Retransmits), 10)
		b = append(b, " packets seen again"...)
	}
	if d := tx.CallDelivery(); tx.State == transaction.NoReply && d != transaction.DeliveryUnknown {
		b = append(b, ", call "...)
		b = append(b, delivered(d)...)
	}
	b = append(b, '\n')
	if f := v.File(); f != nil && (f.Handle != nil || f.Result != nil) {
		b = t.heading(b, "File:")
		if p := v.AppendPath(nil); len(p) > 0 {
			b = append(b, ' ')
			b, _ = Safe(b, p)
		}
		if f.Handle != nil {
			b = append(b, ' ')
			b = Handle(b, f.Handle)
			if f.Name != nil || f.Unnamed {
				b = append(b, " (directory)"...)
			}
		}
		if f.Result != nil {
			b = append(b, ", found "...)
			b = Handle(b, f.Result)
		}
		b = append(b, '\n')
	}
	return b
}

// Tunnel appends the encapsulation of a connection; client is the client's side.
func Tunnel(b []byte, t *rdma.Tunnel, client rdma.Side) []byte {
	b = append(b, t.Type...)
	if t.Version != 0 {
		b = append(b, " type "...)
		b = append(b, "III"[:min(t.Version, 3)]...)
	}
	if t.HasID {
		b = append(b, ' ')
		b = strconv.AppendUint(b, uint64(t.ID), 10)
	}
	if t.Ends[0].IsValid() {
		b = append(b, ", "...)
		b = append(b, t.Ends[client].String()...)
		b = append(b, " > "...)
		b = append(b, t.Ends[client.Other()].String()...)
	}
	return b
}

// Network appends the type and the identifier of an encapsulation, without the addresses of its ends: packets of one network may
// come from several.
func Network(b []byte, t *rdma.Tunnel) []byte {
	x := *t
	x.Ends = [2]netip.Addr{}
	return Tunnel(b, &x, 0)
}

// NetworkName tells networks apart for readers: Network, or that there is no tunnel.
func NetworkName(t *rdma.Tunnel) string {
	if t == nil {
		return "no tunnel"
	}
	return string(Network(nil, t))
}

func appendEnd(b []byte, e rdma.End) []byte {
	b = append(b, addrText(e)...)
	switch {
	case e.QPN != 0:
		b = append(b, " QP "...)
		b = hexNumber(b, uint64(e.QPN), 2)
	case e.Port != 0:
		b = append(b, " port "...)
		b = strconv.AppendUint(b, uint64(e.Port), 10)
	default:
		b = append(b, " QP unknown"...)
	}
	return b
}

// frames appends the packets from first to last.
func frames(b []byte, first, last rdma.Ref) []byte {
	switch {
	case !last.Seen():
		return append(b, '-')
	case !first.Seen() || first.Number == last.Number:
		b = append(b, "frame "...)
		return strconv.AppendUint(b, last.Number, 10)
	}
	b = append(b, "frames "...)
	b = strconv.AppendUint(b, first.Number, 10)
	b = append(b, '-')
	return strconv.AppendUint(b, last.Number, 10)
}

const (
	phaseWidth    = 16
	durationWidth = 8
)

// timeline writes the phases of the latency.
func (t *Tree) timeline(b []byte, tx *transaction.Transaction) []byte {
	p, ok := tx.Phases()
	if !ok {
		return b
	}
	b = t.heading(b, "Timeline:\n")
	if p.Divided() {
		b = t.parts(b, tx, &p)
	}
	b = t.phase(b, "total", p.Total)
	b = frames(b, tx.Call.First, tx.Reply.Last)
	if !p.Divided() {
		b = append(b, ": "...)
		b = append(b, Lack(tx.Lacks())...)
		b = append(b, ", so the phases are not known"...)
	}
	b = append(b, '\n')
	if x := tx.Blame; x != nil {
		for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
			if d := x.Of(c); d > 0 {
				b = t.phase(b, "of it", d)
				b = append(b, "lost to "...)
				b = append(b, strings.ReplaceAll(c.String(), "_", " ")...)
				b = append(b, '\n')
			}
		}
	}
	if tx.Credits > 0 {
		b = t.phase(b, "before", tx.Credits)
		b = append(b, "all credits in use, until a reply freed the one of this call\n"...)
	}
	if tx.Slots > 0 {
		b = t.phase(b, "before", tx.Slots)
		b = append(b, "all slots of the session in use, until a reply freed one for this call\n"...)
	}
	if k := tx.Kernel; k != nil {
		b = t.kernel(b, k)
	}
	if p.Ack >= 0 {
		b = t.phase(b, transaction.PhaseAck.String(), p.Ack)
		b = frames(b, rdma.Ref{}, tx.Times.Ack)
		b = append(b, " acknowledges the reply\n"...)
	}
	return b
}

// kernel writes the times that a kernel has recorded.
func (t *Tree) kernel(b []byte, k *transaction.Kernel) []byte {
	for _, x := range [...]struct {
		d    time.Duration
		name string
		what string
	}{
		{k.Queued, "queued", "in the client, before it was sent"},
		{k.CreditWait, "credit wait", "of that, until it had a credit"},
		{k.Registration, "registration", "of its memory"},
		{k.RoundTrip, "round trip", "as the client has it"},
		{k.Total, "task", "from its start to its end in the client"},
		{k.Wakeup, "wakeup", "until a thread of the server took up the connection"},
		{k.Dispatch, "dispatch", "from the decoded header to the execution"},
		{k.Execution, "execution", "in the server"},
	} {
		if x.d >= 0 {
			b = t.phase(b, x.name, x.d)
			b = append(append(b, x.what...), '\n')
		}
	}
	return b
}

// Lack says what the capture lacks to know the phases of a transaction; empty if it lacks nothing.
func Lack(x transaction.Lack) string {
	switch x {
	case transaction.LackLists:
		return "the chunk lists of the call were cut"
	case transaction.LackReads:
		return "its RDMA Reads were not captured"
	case transaction.LackWrites:
		return "its RDMA Writes were not captured"
	case transaction.LackPackets:
		return "a kernel recorded it, without packets"
	}
	return ""
}

// parts writes the phases that sum to the total.
func (t *Tree) parts(b []byte, tx *transaction.Transaction, p *transaction.Phases) []byte {
	b = t.phase(b, transaction.PhaseCall.String(), p.CallTransfer)
	b = frames(b, tx.Call.First, tx.Call.Last)
	b = append(b, '\n')
	b = t.phase(b, transaction.PhasePull.String(), p.ArgumentPull)
	if tx.Times.LastRead.Seen() {
		b = frames(b, tx.Times.FirstRead, tx.Times.LastRead)
		b = append(b, ": "...)
		b = moved(b, tx.Reads, tx.ReadBytes, "RDMA Read")
		b = append(b, ", "...)
		b = append(b, transaction.PhaseWait.String()...)
		b = append(b, ' ')
		b = units.AppendDuration(b, p.PullWait)
	} else {
		b = append(b, '-')
	}
	b = append(b, '\n')
	b = t.phase(b, transaction.PhaseServer.String(), p.Server)
	b = append(b, "-\n"...)
	b = t.phase(b, transaction.PhasePush.String(), p.ResultPush)
	if tx.Times.LastPush.Seen() {
		b = frames(b, tx.Times.FirstPush, tx.Times.LastPush)
		b = append(b, ": "...)
		b = moved(b, tx.Writes, tx.WriteBytes, "RDMA Write")
	} else {
		b = append(b, '-')
	}
	b = append(b, '\n')
	b = t.phase(b, transaction.PhaseReply.String(), p.ReplyTransfer)
	b = frames(b, tx.Reply.First, tx.Reply.Last)
	b = append(b, '\n')
	return b
}

func (t *Tree) phase(b []byte, name string, d time.Duration) []byte {
	b = append(b, "    "...)
	b = append(b, name...)
	b = t.spaces(b, phaseWidth-len(name))
	var digits [32]byte
	s := units.AppendDuration(digits[:0], d)
	width := 0
	for _, c := range s {
		if c&0xc0 != 0x80 {
			width++
		}
	}
	b = t.spaces(b, durationWidth-width)
	b = append(b, s...)
	return append(b, "  "...)
}

// moved appends "3 RDMA Reads of 61440 bytes".
func moved(b []byte, n int, bytes uint64, what string) []byte {
	b = append(units.AppendPlural(b, n, what), " of "...)
	b = strconv.AppendUint(b, bytes, 10)
	return append(b, " bytes"...)
}

// message writes a call or reply: Send, transport header, chunks, RPC header.
func (t *Tree) message(b []byte, v *rpc.View, m *transaction.Message, reply bool) []byte {
	name := "Call: "
	if reply {
		name = "Reply: "
	}
	b = t.heading(b, name)
	if !m.Seen() {
		return append(b, "not captured\n"...)
	}
	b = frames(b, m.First, m.Last)
	k := v.Tx.Kernel
	if k != nil {
		b = append(b, ", recorded by a kernel"...)
	}
	if m.Transport && k == nil {
		b = append(b, ", Send of "...)
		b = strconv.AppendInt(b, int64(m.SendBytes), 10)
		b = append(b, " bytes"...)
		if m.Cut {
			b = append(b, " (cut by the capture)"...)
		}
		if m.Invalidates {
			b = append(b, ", invalidates handle "...)
			b = hexNumber(b, uint64(m.Handle), 8)
		}
	}
	if k == nil && (!m.Transport || !m.Header.Cut) || k != nil && !reply && k.CallBytes {
		b = append(b, ", RPC message of "...)
		b = strconv.AppendUint(b, m.Bytes, 10)
		b = append(b, " bytes"...)
	}
	b = append(b, '\n')
	if m.Transport {
		b = t.header(b, v.Tx, &m.Header, reply)
	}
	if reply && v.ReplyErr != rpc.ErrNotSeen {
		b = t.rpcReply(b, v)
	} else if !reply && v.CallErr != rpc.ErrNotSeen {
		b = t.rpcCall(b, v)
	}
	return b
}

func (t *Tree) failure(b []byte, err error, cut bool) []byte {
	if err == nil {
		return b
	}
	b = append(b, "    "...)
	if cut {
		b = append(b, "(cut by the capture: "...)
	} else {
		b = append(b, "(malformed: "...)
	}
	b = append(b, err.Error()...)
	return append(b, ")\n"...)
}

// credits writes those that a header asks for or grants, if that is known.
func credits(b []byte, tx *transaction.Transaction, h *rpcrdma.Header, reply bool) []byte {
	k := tx.Kernel
	switch {
	case h.Version == rpcrdma.Version0:
		return b
	case reply && (k == nil || k.ReplyCredits):
		b = append(b, ", credits granted "...)
	case !reply && (k == nil || k.CallCredits):
		b = append(b, ", credits requested "...)
	default:
		return b
	}
	return strconv.AppendUint(b, uint64(h.Credits), 10)
}

// header writes the transport header with its chunks.
func (t *Tree) header(b []byte, tx *transaction.Transaction, h *rpcrdma.Header, reply bool) []byte {
	b = append(b, "    rpcrdma: xid "...)
	b = hexNumber(b, uint64(h.XID), 8)
	if !h.Fixed() {
		if h.Length >= 8 {
			b = append(b, ", version "...)
			b = strconv.AppendUint(b, uint64(h.Version), 10)
		}
		if tx.Kernel != nil {
			return append(credits(b, tx, h, reply), '\n')
		}
		return append(b, " (cut by the capture)\n"...)
	}
	b = append(b, ", version "...)
	b = strconv.AppendUint(b, uint64(h.Version), 10)
	b = credits(b, tx, h, reply)
	b = append(b, ", "...)
	if s := h.Type.String(); s != "" {
		b = append(b, s...)
	} else {
		b = append(b, "type "...)
		b = strconv.AppendUint(b, uint64(h.Type), 10)
	}
	b = append(b, ", "...)
	b = strconv.AppendInt(b, int64(h.Length), 10)
	b = append(b, " bytes"...)
	if h.Type == rpcrdma.TypeMsgP {
		b = append(b, ", align "...)
		b = strconv.AppendUint(b, uint64(h.Align), 10)
		b = append(b, ", threshold "...)
		b = strconv.AppendUint(b, uint64(h.Threshold), 10)
	}
	if h.Type == rpcrdma.TypeError {
		b = append(b, ", error "...)
		if s := h.Error.Name(h.Version); s != "" {
			b = append(b, s...)
		} else {
			b = strconv.AppendUint(b, uint64(h.Error), 10)
		}
		b = append(b, ' ')
		b = strconv.AppendUint(b, uint64(h.Low), 10)
		b = append(b, '-')
		b = strconv.AppendUint(b, uint64(h.High), 10)
	}
	if h.Cut {
		b = append(b, " (cut by the capture)"...)
	}
	b = append(b, '\n')
	start := len(b)
	b = append(b, "    encoding key: "...)
	empty := len(b)
	if b = h.AppendKey(b); len(b) == empty || h.Cut {
		b = b[:start]
	} else {
		b = append(b, '\n')
	}
	if h.InvalidateHandle != 0 {
		b = append(b, "    may invalidate handle "...)
		b = hexNumber(b, uint64(h.InvalidateHandle), 8)
		b = append(b, '\n')
	}
	if h.Version == rpcrdma.Version2 && len(h.Call) > 0 {
		b = t.readChunk(b, tx, "Call chunk", -1, h.PositionZero(), reply)
	}
	for i, c := range h.ReadChunks() {
		name := "Read chunk"
		if c.Position == 0 && h.Version != rpcrdma.Version2 {
			name = "Position-Zero Read chunk"
		}
		b = t.readChunk(b, tx, name, i, c, reply)
	}
	for i, c := range h.Writes {
		b = t.writeChunk(b, tx, "Write chunk", transaction.WriteList, i, c, reply)
	}
	if h.HasReply {
		b = t.writeChunk(b, tx, "Reply chunk", transaction.ReplyChunk, 0, h.Reply, reply)
	}
	return b
}

// How many segments of a chunk, and how many RDMA operations, the short form shows.
const (
	maxSegments   = 16
	maxOperations = 8
)

func (t *Tree) readChunk(b []byte, tx *transaction.Transaction, name string, index int, c rpcrdma.ReadChunk, reply bool) []byte {
	b = append(b, "    "...)
	b = append(b, name...)
	if index >= 0 && c.Position != 0 {
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(index), 10)
		b = append(b, " at position "...)
		b = strconv.AppendUint(b, uint64(c.Position), 10)
	}
	b = append(b, ": "...)
	b = segments(b, len(c.Segments), c.Length)
	b = append(b, '\n')
	for i := range c.Segments {
		if b = t.rest(b, i, len(c.Segments), maxSegments); !t.full() && i >= maxSegments {
			break
		}
		s := c.Segments[i].Segment
		b = t.segment(b, i, s)
		if !reply {
			b = append(b, ", read "...)
			b = strconv.AppendUint(b, movedOf(tx, transaction.ReadList, max(index, 0), s), 10)
		}
		b = append(b, '\n')
	}
	return b
}

func (t *Tree) writeChunk(b []byte, tx *transaction.Transaction, name string, kind transaction.ChunkKind, index int, c rpcrdma.WriteChunk, reply bool) []byte {
	b = append(b, "    "...)
	b = append(b, name...)
	if kind == transaction.WriteList {
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(index), 10)
	}
	b = append(b, ": "...)
	b = segments(b, len(c), c.Length())
	if reply {
		b = append(b, " used"...)
	}
	b = append(b, '\n')
	for i, s := range c {
		if b = t.rest(b, i, len(c), maxSegments); !t.full() && i >= maxSegments {
			break
		}
		b = t.segment(b, i, s)
		if !reply {
			b = append(b, ", written "...)
			b = strconv.AppendUint(b, movedOf(tx, kind, index, s), 10)
		}
		b = append(b, '\n')
	}
	return b
}

// rest says how many of total are omitted if i is the first one beyond most.
func (t *Tree) rest(b []byte, i, total, most int) []byte {
	if t.full() || i != most {
		return b
	}
	b = append(b, "      … "...)
	b = strconv.AppendInt(b, int64(total-i), 10)
	return append(b, " more (-vv shows all)\n"...)
}

func segments(b []byte, n int, bytes uint64) []byte {
	b = append(units.AppendPlural(b, n, "segment"), ", "...)
	b = strconv.AppendUint(b, bytes, 10)
	return append(b, " bytes"...)
}

func (t *Tree) segment(b []byte, i int, s rpcrdma.Segment) []byte {
	b = append(b, "      ["...)
	b = strconv.AppendInt(b, int64(i), 10)
	b = append(b, "] handle "...)
	b = hexNumber(b, uint64(s.Handle), 8)
	b = append(b, ", offset "...)
	b = hexNumber(b, s.Offset, 16)
	b = append(b, ", length "...)
	return strconv.AppendUint(b, uint64(s.Length), 10)
}

// movedOf is how many bytes RDMA operations moved to or from a segment.
func movedOf(tx *transaction.Transaction, kind transaction.ChunkKind, chunk int, s rpcrdma.Segment) uint64 {
	var n uint64
	for i := range tx.Operations {
		o := &tx.Operations[i]
		if o.Chunk == kind && (o.Index == chunk || kind == transaction.ReplyChunk) && o.Handle == s.Handle &&
			o.Offset >= s.Offset && o.Offset-s.Offset < max(uint64(s.Length), 1) {
			n += uint64(o.Bytes)
		}
	}
	return n
}

// operations writes the RDMA operations that served the chunks.
func (t *Tree) operations(b []byte, tx *transaction.Transaction) []byte {
	if len(tx.Operations) == 0 {
		return b
	}
	b = t.heading(b, "RDMA operations: ")
	if tx.Reads > 0 {
		b = moved(b, tx.Reads, tx.ReadBytes, "Read")
	}
	if tx.Writes > 0 {
		if tx.Reads > 0 {
			b = append(b, ", "...)
		}
		b = moved(b, tx.Writes, tx.WriteBytes, "Write")
	}
	b = append(b, '\n')
	start := tx.First().Time
	for i := range tx.Operations {
		if b = t.rest(b, i, len(tx.Operations), maxOperations); !t.full() && i >= maxOperations {
			break
		}
		o := &tx.Operations[i]
		b = append(b, "      "...)
		kind := "Write "
		if o.Kind == rdma.Read {
			kind = "Read  "
		}
		b = append(b, kind...)
		b = append(b, o.Chunk.String()...)
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(o.Index), 10)
		b = append(b, "] handle "...)
		b = hexNumber(b, uint64(o.Handle), 8)
		b = append(b, ", offset "...)
		b = hexNumber(b, o.Offset, 16)
		b = append(b, ", "...)
		b = strconv.AppendUint(b, uint64(o.Bytes), 10)
		if o.Bytes != o.Length {
			b = append(b, " of "...)
			b = strconv.AppendUint(b, uint64(o.Length), 10)
		}
		b = append(b, " bytes, "...)
		b = frames(b, o.First, o.Last)
		b = append(b, ", "...)
		if o.First.Time >= start { // those of a call that was not captured are before the reply
			b = append(b, '+')
		}
		b = units.AppendDuration(b, time.Duration(o.First.Time-start))
		if o.Again > 0 {
			b = append(b, ", "...)
			b = strconv.AppendInt(b, int64(o.Again), 10)
			b = append(b, " packets seen again"...)
		}
		b = append(b, '\n')
	}
	if tx.OperationsLost > 0 {
		b = append(b, "      … "...)
		b = strconv.AppendInt(b, int64(tx.OperationsLost), 10)
		b = append(b, " more were not kept\n"...)
	}
	return b
}

// body writes arguments and results; those of a COMPOUND by operation.
func (t *Tree) body(b []byte, v *rpc.View) []byte {
	if ops := v.Operations(); len(ops) > 0 {
		return t.compound(b, v, ops)
	}
	if v.Args() != nil {
		b = t.part(b, v, "Arguments", v.Args(), v.ArgsErr, v.ArgsCut, v.ArgsLeft)
		b = nonsense(b, v.ArgsContradiction())
	}
	if v.Result() != nil {
		b = t.part(b, v, "Results", v.Result(), v.ResultErr, v.ResultCut, v.ResultLeft)
		b = nonsense(b, v.Contradiction())
	}
	return b
}

// nonsense says why a part of a message makes no sense, if it makes none.
func nonsense(b []byte, why string) []byte {
	if why == "" {
		return b
	}
	b = append(b, "    (malformed: "...)
	b = append(b, why...)
	return append(b, ")\n"...)
}

func (t *Tree) part(b []byte, v *rpc.View, name string, m xdr.Message, err error, cut bool, left int) []byte {
	f := &t.fields
	f.reset(t.full())
	m.Walk(f)
	f.until(err)
	if len(f.nodes) == 0 && err == nil {
		return b
	}
	b = t.heading(b, name)
	b = append(b, " of "...)
	b = Program(b, v)
	b = append(b, ' ')
	b = append(b, v.ProcedureName()...)
	b = append(b, ":\n"...)
	b = t.layout(b, f, 4)
	b = t.failure(b, err, cut)
	return t.left(b, left)
}

func (t *Tree) left(b []byte, n int) []byte {
	if n == 0 {
		return b
	}
	b = append(b, "    ("...)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, " bytes follow)\n"...)
}

func (t *Tree) compound(b []byte, v *rpc.View, ops []rpc.Operation) []byte {
	b = t.heading(b, "Operations of ")
	b = Program(b, v)
	b = append(b, ' ')
	b = append(b, v.ProcedureName()...)
	f := &t.fields
	// The fields of a COMPOUND outside its operations.
	f.reset(false)
	if tag := compoundTag(v); len(tag) > 0 {
		f.String("tag", tag)
		b = append(b, ", "...)
		b = t.row(b, f, 0, 1, 0, 4)
	}
	b = append(b, ":\n"...)
	for i := range ops {
		o := &ops[i]
		b = append(b, "    ["...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, "] "...)
		b = Paint(b, t.Color, ColorBold, o.Name)
		b = append(b, ' ')
		switch {
		case o.Status != "" && o.Code != 0:
			b = Paint(b, t.Color, ColorRed, o.Status)
		case o.Status != "":
			b = append(b, o.Status...)
		case v.Tx.Reply.Seen() && v.Result() != nil:
			b = append(b, "(not executed)"...)
		}
		if o.Answer != "" {
			b = append(b, " (the reply has "...)
			b = append(b, o.Answer...)
			b = append(b, ')')
		}
		b = append(b, '\n')
		if o.Args != nil {
			f.reset(t.full())
			o.Args.Walk(f)
			b = t.layout(b, f, 8)
		}
		if o.Result != nil {
			f.reset(t.full())
			o.Result.Walk(f)
			if f.trim() {
				b = append(b, "      =\n"...)
				b = t.layout(b, f, 8)
			}
		}
	}
	b = t.failure(b, v.ArgsErr, v.ArgsCut)
	b = t.failure(b, v.ResultErr, v.ResultCut)
	b = nonsense(b, v.Contradiction())
	return t.left(t.left(b, v.ArgsLeft), v.ResultLeft)
}

// trim removes the status, which is shown next to the operation's name. It reports whether anything is left.
func (f *fields) trim() bool {
	f.close()
	if len(f.nodes) > 0 && f.nodes[0].leaf && strings.HasSuffix(f.nodes[0].name, "status") {
		f.nodes[0].leaf = false
		f.nodes = f.nodes[1:]
		for i := range f.nodes {
			f.nodes[i].end--
		}
	}
	return len(f.nodes) > 0
}

func (t *Tree) notes(b []byte, tx *transaction.Transaction) []byte {
	if len(tx.Notes) == 0 {
		return b
	}
	b = t.heading(b, "Notes:\n")
	for _, n := range tx.Notes {
		b = append(b, "    "...)
		b, _ = Safe(b, []byte(n.String()))
		b = append(b, '\n')
	}
	return b
}
