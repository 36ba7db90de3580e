// Package annotate writes captures in which each packet of a transaction has a comment that names the
// transaction.
package annotate

import (
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/ladder"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/analyze/window"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Stats counts what an Annotator did.
type Stats struct {
	Packets   uint64
	Annotated uint64 // with at least one comment
	// Open counts comments on packets that left the window before their
	// transaction ended.
	Open uint64
	// Late counts what was found of packets after they had left.
	Late uint64
	// Dropped counts transactions that a packet belongs to beyond the limit
	// of its comments.
	Dropped uint64
}

// maxComments bounds the comments of one packet.
const maxComments = 32

// maxName bounds what a comment says about a transaction, in bytes: a COMPOUND may
// have a thousand operations, a name 64 KiB, and each packet has a comment.
const maxName = 512

// Annotator holds packets until their transactions have ended, or until there
// is no room for them any more, and writes them with comments.
type Annotator struct {
	w     *capture.Writer
	held  *window.Window[[]mark]
	known map[uint64]*info // transactions that are open, or of which packets are held
	view  rpc.View
	err   error
	stats Stats

	malformed func(*rpc.View) // nil: nobody asks

	b        []byte
	comments []string
}

// mark is what a packet is to a transaction.
type mark struct {
	of     *info
	packet transaction.Packet
	chunk  string // "Write chunk 0"
}

// info is what the comments on packets of a transaction need.
type info struct {
	serial uint64
	xid    uint32
	name   string
	ended  bool
	marks  int // on packets that are held

	// Known at the end.
	status     string
	state      transaction.State
	operations int
	callBytes  int
	replyBytes int
	time       ladder.Timeline
	retransmit int
}

// New makes an Annotator that writes to w and holds at most the given number of bytes; 0 means
// window.DefaultBytes.
func New(w *capture.Writer, bytes int) *Annotator {
	a := &Annotator{w: w, known: make(map[uint64]*info)}
	a.view.Names = &rpc.Names{}
	a.held = window.New(bytes, a.write)
	return a
}

// LimitNames sets how many bytes of names of files are remembered: rpc.Names.Limit.
func (a *Annotator) LimitNames(bytes int) { a.view.Names.Limit = bytes }

// Unwrap sets what opens messages that RPCSEC_GSS protects.
func (a *Annotator) Unwrap(u rpc.Unwrapper) { a.view.Unwrap = u }

// Malformed sets what is said of transactions of which a part could not be decoded.
func (a *Annotator) Malformed(f func(*rpc.View)) { a.malformed = f }

// Options makes a Decoder tell the Annotator what it needs. The Decoder has to
// call Transaction, and must not be Concurrent.
func (a *Annotator) Options(opt *decode.Options) {
	opt.Concurrent = false
	opt.Transactions.OnCompletion = true
	opt.Transactions.Attribute = a.attribute
	opt.Transactions.Withdrawn = a.withdrawn
	opt.Observe(decode.Observer{Packet: func(v *decode.PacketView) { a.held.Add(v.Packet) }})
}

// attribute records what a packet is.
func (a *Annotator) attribute(tx *transaction.Transaction, p *transaction.Packet) {
	marks := a.held.At(p.Ref.Number)
	if marks == nil {
		a.stats.Late++
		return
	}
	x := a.known[tx.Serial()]
	if x == nil {
		x = &info{serial: tx.Serial(), xid: tx.XID, name: openName(tx)}
		a.known[x.serial] = x
	}
	for i := range *marks {
		if m := &(*marks)[i]; m.of == x && m.join(p) {
			return
		}
	}
	if len(*marks) >= maxComments {
		a.stats.Dropped++
		return
	}
	m := mark{of: x, packet: *p}
	if p.Operation > 0 && p.Operation <= len(tx.Operations) {
		m.chunk = chunkName(&tx.Operations[p.Operation-1])
	}
	x.marks++
	*marks = append(*marks, m)
}

// join makes one mark of two for the same packet.
func (m *mark) join(p *transaction.Packet) bool {
	q := &m.packet
	if q.Role != p.Role || q.From != p.From {
		return q.Role == transaction.Nak && p.Role == transaction.Ack
	}
	switch p.Role {
	case transaction.Ack:
		q.AcksCall = q.AcksCall || p.AcksCall
		q.AcksReply = q.AcksReply || p.AcksReply
		if p.Operation != 0 && p.Operation != q.Operation {
			q.Operation = p.Operation
			q.Acked += p.Acked
		}
		return true
	case transaction.Nak, transaction.Congestion:
		if q.Beside && !p.Beside {
			*q = *p
		}
		return true
	}
	return q.Operation == p.Operation && q.Offset == p.Offset && q.Again == p.Again
}

// withdrawn forgets a transaction that turned out to be none.
func (a *Annotator) withdrawn(tx *transaction.Transaction) {
	if x := a.known[tx.Serial()]; x != nil {
		x.ended = true
		if x.marks == 0 {
			delete(a.known, x.serial)
		}
	}
}

// openName is what is known of a transaction by its first words.
func openName(tx *transaction.Transaction) string {
	if !tx.Named {
		return "rpc"
	}
	name := nfs.Name(tx.Program, tx.Version)
	if name == "" {
		return "rpc"
	}
	if p := nfs.Lookup(tx.Program, tx.Version).Procedure(tx.Procedure); p != nil {
		name += " " + p.Name
	}
	return name
}

// chunkNames are indexed by the list; the first ones need no making.
var chunkNames = [...][4]string{
	transaction.ReadList:   {"Read chunk 0", "Read chunk 1", "Read chunk 2", "Read chunk 3"},
	transaction.WriteList:  {"Write chunk 0", "Write chunk 1", "Write chunk 2", "Write chunk 3"},
	transaction.ReplyChunk: {"Reply chunk", "Reply chunk", "Reply chunk", "Reply chunk"},
}

func chunkName(o *transaction.Operation) string {
	switch {
	case o.Index < 0:
		return "Position-Zero Read chunk"
	case int(o.Chunk) < len(chunkNames) && o.Index < len(chunkNames[0]):
		return chunkNames[o.Chunk][o.Index]
	}
	return o.Chunk.String() + " chunk"
}

// Transaction takes a transaction that has ended.
func (a *Annotator) Transaction(tx *transaction.Transaction) {
	v := &a.view
	v.Set(tx)
	if a.malformed != nil && v.Undecoded() {
		a.malformed(v)
	}
	if x := a.known[tx.Serial()]; x != nil {
		x.ended = true
		if x.marks == 0 {
			delete(a.known, x.serial)
		}
		b := text.Program(a.b[:0], v)
		b = append(b, ' ')
		if tx.Named {
			b = text.Operations(b, v)
		}
		if s := len(b); true {
			b = append(b, ' ')
			if b = text.Subject(b, v); len(b) == s+1 {
				b = b[:s]
			}
		}
		a.b = b
		if len(b) > maxName {
			n := maxName
			for n > 0 && !utf8.RuneStart(b[n]) {
				n--
			}
			b = append(b[:n], "…"...)
		}
		x.name = string(b)
		x.status, x.state = text.ShortStatus(v), tx.State
		x.operations = len(tx.Operations) + tx.OperationsLost
		x.callBytes, x.replyBytes = tx.Call.SendBytes, tx.Reply.SendBytes
		x.retransmit = tx.Retransmits
		x.time.Reset(tx)
	}
	v.Learn()
}

// write writes a packet that leaves the window.
func (a *Annotator) write(p *capture.Packet, marks *[]mark) {
	a.stats.Packets++
	a.comments = a.comments[:0]
	for i := range *marks {
		m := &(*marks)[i]
		if !m.of.ended {
			a.stats.Open++
		}
		a.b = m.append(a.b[:0])
		a.comments = append(a.comments, string(a.b))
		if m.of.marks--; m.of.marks == 0 && m.of.ended {
			delete(a.known, m.of.serial)
		}
	}
	if len(a.comments) > 0 {
		a.stats.Annotated++
	}
	clear(*marks)
	*marks = (*marks)[:0]
	if a.err == nil {
		a.err = a.w.WriteComments(p, a.comments)
	}
}

// Next is the number that the next packet will have.
func (a *Annotator) Next() uint64 { return a.held.Next() }

// Release writes the packets with smaller numbers, with what is known of them so far.
func (a *Annotator) Release(before uint64) {
	n := a.stats.Packets
	if a.held.Before(before); a.stats.Packets > n && a.err == nil {
		a.err = a.w.Flush()
	}
}

// Err is the first error of the Writer.
func (a *Annotator) Err() error { return a.err }

// Close writes what is held, after the last transaction.
func (a *Annotator) Close() (Stats, error) {
	a.held.Flush()
	if a.err == nil {
		a.err = a.w.Flush()
	}
	return a.stats, a.err
}
