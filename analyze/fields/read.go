package fields

import (
	"encoding/hex"
	"time"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// endpoint is a queue pair number or a port.
func endpoint(e rdma.End) uint64 {
	if e.QPN != 0 {
		return uint64(e.QPN)
	}
	return uint64(e.Port)
}

func messageType(r *Reader, m *transaction.Message) {
	if m.Seen() && m.Transport && m.Header.Fixed() {
		r.Enum(uint32(m.Header.Type), m.Header.Type.String())
	}
}

func credits(m *transaction.Message) (uint64, bool) { return uint64(m.Credits()), true }

func frame(v *rpc.View, at rdma.Ref) (uint64, bool) {
	return at.Number, at.Seen() && v.Tx.Kernel == nil
}

// never is for attributes that no kernel records.
func never(*transaction.Kernel) bool { return false }

// recorded is an attribute that a kernel has not recorded of all transactions.
func recorded(known func(*transaction.Kernel) bool, f Field) Field {
	read := f.Uint
	f.Recorded = known
	f.Uint = func(r *Reader, v *rpc.View) (uint64, bool) {
		if k := v.Tx.Kernel; k != nil && !known(k) {
			return 0, false
		}
		return read(r, v)
	}
	return f
}

// packets is a number that packets alone tell.
func packets(name, doc string, typ Type, unit Unit, pick func(*transaction.Transaction) uint64) Field {
	return Field{Name: name, Absent: Never, Type: typ, Unit: unit, Doc: doc, Recorded: never, Uint: func(_ *Reader, v *rpc.View) (uint64, bool) {
		return pick(v.Tx), v.Tx.Kernel == nil
	}}
}

// kernelTime is a time that a kernel has recorded.
func kernelTime(name, doc string, pick func(*transaction.Kernel) time.Duration) Field {
	return Field{Name: "kernel." + name + "_ns", Type: Duration, Unit: Nanoseconds, Doc: doc, Uint: func(_ *Reader, v *rpc.View) (uint64, bool) {
		k := v.Tx.Kernel
		if k == nil {
			return 0, false
		}
		d := pick(k)
		return uint64(d), d >= 0
	}}
}

// part selects a member of a segment.
type part uint8

const (
	handlePart part = iota
	lengthPart
	offsetPart
)

func segment(r *Reader, g *rpcrdma.Segment, p part) {
	switch p {
	case handlePart:
		r.Uint(uint64(g.Handle))
	case lengthPart:
		r.Uint(uint64(g.Length))
	case offsetPart:
		r.Uint(g.Offset)
	}
}

func readSegments(r *Reader, m *transaction.Message, p part) {
	if !m.Transport {
		return
	}
	for _, c := range m.Header.ReadChunks() {
		for i := range c.Segments {
			if segment(r, &c.Segments[i].Segment, p); r.Stopped() {
				return
			}
		}
	}
}

func readChunks(m *transaction.Message) []rpcrdma.ReadChunk {
	if !m.Transport {
		return nil
	}
	return m.Header.ReadChunks()
}

func readPositions(r *Reader, m *transaction.Message) {
	for _, c := range readChunks(m) {
		if r.Uint(uint64(c.Position)); r.Stopped() {
			return
		}
	}
}

func writeSegments(r *Reader, m *transaction.Message, p part) {
	if !m.Transport {
		return
	}
	for _, c := range m.Header.Writes {
		for i := range c {
			if segment(r, &c[i], p); r.Stopped() {
				return
			}
		}
	}
}

func writeCount(m *transaction.Message) (uint64, bool) {
	if !m.Transport {
		return 0, true
	}
	return uint64(len(m.Header.Writes)), true
}

func replySegments(r *Reader, m *transaction.Message, p part) {
	if !m.Transport || !m.Header.HasReply {
		return
	}
	for i := range m.Header.Reply {
		if segment(r, &m.Header.Reply[i], p); r.Stopped() {
			return
		}
	}
}

// replyCount is the number of segments of a Reply chunk; it may have none.
func replyCount(m *transaction.Message) (uint64, bool) {
	return uint64(len(m.Header.Reply)), m.Transport && m.Header.HasReply
}

func allHandles(r *Reader, v *rpc.View) {
	for _, m := range [...]*transaction.Message{&v.Tx.Call, &v.Tx.Reply} {
		for _, f := range [...]func(*Reader, *transaction.Message, part){readSegments, writeSegments, replySegments} {
			if f(r, m, handlePart); r.Stopped() {
				return
			}
		}
	}
}

// operationNames are the names of a COMPOUND's operations, as in View.Operations, but without regard to the
// results.
func operationNames(r *Reader, v *rpc.View) {
	var args, res *nfs4.Operations
	name := nfs4.OpName
	switch a := v.Args().(type) {
	case *nfs4.CompoundArgs:
		args = &a.Operations
	case *nfs4.CbCompoundArgs:
		args, name = &a.Operations, nfs4.CbOpName
	}
	switch o := v.Result().(type) {
	case *nfs4.CompoundRes:
		res = &o.Operations
	case *nfs4.CbCompoundRes:
		res, name = &o.Operations, nfs4.CbOpName
	}
	n := 0
	if args != nil {
		for n = range args.Ops {
			if r.Symbol(name(args.Ops[n].Number)); r.Stopped() {
				return
			}
		}
		n = len(args.Ops)
	}
	if res != nil {
		for ; n < len(res.Ops); n++ {
			if r.Symbol(name(res.Ops[n].Number)); r.Stopped() {
				return
			}
		}
	}
	if args != nil && args.Incomplete && args.FailedOp != 0 && args.FailedAt >= n {
		r.Symbol(name(args.FailedOp))
	}
}

// maxListed bounds the distinct operation lists that a Reader remembers: a capture may hold any combination.
const maxListed = 1024

// listedOperation is the operation as listings show it, without allocating for one that was seen before.
func listedOperation(r *Reader, v *rpc.View) string {
	if !v.Tx.Named {
		return ""
	}
	r.buf = v.AppendOperation(r.buf[:0])
	name, ok := r.listed[string(r.buf)]
	if !ok {
		if r.listed == nil || len(r.listed) >= maxListed {
			r.listed = map[string]string{}
		}
		name = string(r.buf)
		r.listed[name] = name
	}
	return name
}

func operationStatuses(r *Reader, v *rpc.View) {
	ops := v.Steps()
	for i := range ops {
		o := &ops[i]
		if o.Status == "" {
			continue
		}
		symbol := ""
		if c := o.Status[0]; c < '0' || c > '9' {
			symbol = o.Status
		}
		if r.Enum(o.Code, symbol); r.Stopped() {
			return
		}
	}
}

// status is the outcome; it has a number if it is a status of the program.
func status(r *Reader, v *rpc.View) {
	if v.ReplyErr == nil && v.Reply().Succeeded() {
		if result, ok := v.Result().(xdr.Status); ok && (v.ResultErr == nil || len(v.ReplyBody().Data) >= 4) {
			r.Enum(result.StatusCode())
			return
		}
	}
	if t := v.Status(); t != "" {
		r.Symbol(t)
	}
}

func sys(r *Reader, v *rpc.View) *oncrpc.Sys {
	if v.CallErr != nil || v.Call().Cred.Flavor != oncrpc.AuthSys || !r.sys.Decode(v.Call().Cred.Body) {
		return nil
	}
	return &r.sys
}

func readCount(m *transaction.Message) (uint64, bool) { return uint64(len(readChunks(m))), true }

func readSegmentCount(m *transaction.Message) (uint64, bool) {
	if !m.Transport {
		return 0, true
	}
	return uint64(len(m.Header.Reads)), true
}

func bothAddresses(r *Reader, v *rpc.View) {
	if r.Addr(v.Tx.Client().Addr); !r.Stopped() {
		r.Addr(v.Tx.Server().Addr)
	}
}

func total(r *Reader, v *rpc.View) (uint64, bool) {
	if p := r.Phases(v); p != nil {
		return uint64(p.Total), true
	}
	return 0, false
}

func path(r *Reader, v *rpc.View) (uint64, bool) {
	if p := r.Phases(v); p != nil {
		d, ok := v.Tx.PathOf(p)
		return uint64(d), ok
	}
	return 0, false
}

func dataDone(_ *Reader, v *rpc.View) (uint64, bool) {
	last := v.Tx.DataDone()
	return uint64(last.Time), last.Seen() && last != v.Tx.Reply.Last
}

func firstSent(_ *Reader, v *rpc.View) (uint64, bool) {
	first := v.Tx.FirstSent()
	return uint64(first), first != v.Tx.Call.First.Time
}

// phase is the attribute of a phase.
func phase(ph transaction.Phase, doc string) Field {
	return Field{Name: "latency_ns." + ph.String(), Type: Duration, Unit: Nanoseconds, Doc: doc, Uint: func(r *Reader, v *rpc.View) (uint64, bool) {
		if p := r.Phases(v); p != nil {
			d := p.Of(ph)
			return uint64(d), d >= 0
		}
		return 0, false
	}}
}

// lost is an attribute of what the time was lost to.
func lost(name, doc string, read func(*transaction.Blame) time.Duration) Field {
	return Field{Name: "lost_ns" + name, Of: OfClean, Absent: Null, Type: Duration, Unit: Nanoseconds, Doc: doc, Blame: true, Uint: func(_ *Reader, v *rpc.View) (uint64, bool) {
		b := v.Tx.Blame
		if b == nil {
			return 0, false
		}
		return uint64(read(b)), true
	}}
}

func totalLost(b *transaction.Blame) (sum time.Duration) {
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		sum += b.Of(c)
	}
	return sum
}

func worst(_ *Reader, v *rpc.View) string {
	if b := v.Tx.Blame; b != nil && b.Worst() != rdma.CauseRest {
		return b.Worst().String()
	}
	return ""
}

var lostTo = [rdma.NumCauses]string{
	rdma.CauseNotReady: "time until a receiver was ready", rdma.CauseRecovery: "time until something lost had come again",
	rdma.CauseCongestion: "time that packets came later than before a CNP", rdma.CauseReadSlot: "time when the limit of RDMA Reads was reached",
	rdma.CauseUnknown: "time that may be one of these",
}

// lostPhases are the parts of each phase that were lost.
func lostPhases(causes []string) []Field {
	list := []Field{{Name: "lost_ns.phases", Doc: "the parts of the phases that were lost"}}
	for ph := range transaction.Parts() {
		list = append(list, Field{Name: "lost_ns.phases." + ph.String(), Doc: "the part of " + ph.String() + " that was lost"})
		for i, cause := range causes {
			c := rdma.CauseRest + 1 + rdma.Cause(i)
			f := lost(".phases."+ph.String()+"."+cause, lostTo[c]+", of "+ph.String(), func(b *transaction.Blame) time.Duration { return b.Shares[ph][c] })
			f.Absent = Omitted
			list = append(list, f)
		}
	}
	for i := range list {
		list[i].Missing, list[i].Why = everything&^NDJSON, whyPhases
	}
	return list
}

// waited is a time before the call.
func waited(name, doc string, blame bool, of func(*transaction.Transaction) time.Duration) Field {
	return Field{Name: name, Absent: Zero, Type: Duration, Unit: Nanoseconds, Doc: doc, Blame: blame, Recorded: never, Uint: func(_ *Reader, v *rpc.View) (uint64, bool) {
		return uint64(of(v.Tx)), v.Tx.Call.Seen() && v.Tx.Kernel == nil
	}}
}

// fileNumber is a number of the file.
func fileNumber(name, doc string, typ Type, unit Unit, read func(*rpc.File) (uint64, bool)) Field {
	return Field{Name: "file." + name, Type: typ, Unit: unit, Doc: doc, Cost: Decoded, Uint: func(r *Reader, v *rpc.View) (uint64, bool) {
		if f := v.File(); f != nil {
			return read(f)
		}
		return 0, false
	}}
}

// fileBytes is a name or a handle of the file.
func fileBytes(name, doc string, typ Type, read func(*rpc.File) []byte) Field {
	return Field{Name: "file." + name, Type: typ, Doc: doc, Cost: Decoded, Bytes: func(r *Reader, v *rpc.View) []byte {
		if f := v.File(); f != nil {
			return read(f)
		}
		return nil
	}}
}

// Path is the path of the file, as far as it is known; nil if it is not.
func (r *Reader) Path(v *rpc.View) []byte {
	if !r.looked {
		r.looked = true
		r.path = v.AppendPath(r.path[:0])
	}
	if len(r.path) == 0 {
		return nil
	}
	return r.path
}

// fileName is the path, else the name, else the handle.
func fileName(r *Reader, v *rpc.View) []byte {
	f := v.File()
	if f == nil || f.Unnamed {
		return nil
	}
	switch path := r.Path(v); {
	case path != nil:
		return path
	case f.Name != nil:
		return f.Name
	case f.Handle != nil:
		r.buf = hex.AppendEncode(r.buf[:0], f.Handle)
		return r.buf
	}
	return nil
}

type messageOf func(*transaction.Transaction) *transaction.Message

func callOf(t *transaction.Transaction) *transaction.Message  { return &t.Call }
func replyOf(t *transaction.Transaction) *transaction.Message { return &t.Reply }

func message(name, doc string, typ Type, pick messageOf, read func(*Reader, *transaction.Message)) Field {
	return Field{Name: name, Type: typ, Doc: doc, Several: typ == Number, Read: func(r *Reader, v *rpc.View) { read(r, pick(v.Tx)) }}
}

// counted is a number of a message.
func counted(name, doc string, typ Type, pick messageOf, read func(*transaction.Message) (uint64, bool)) Field {
	return Field{Name: name, Absent: Never, Type: typ, Doc: doc, Uint: func(_ *Reader, v *rpc.View) (uint64, bool) { return read(pick(v.Tx)) }}
}

// number is a number that is always there.
func number(name, doc string, typ Type, unit Unit, pick func(*transaction.Transaction) uint64) Field {
	return Field{Name: name, Absent: Never, Type: typ, Unit: unit, Doc: doc, Uint: func(_ *Reader, v *rpc.View) (uint64, bool) { return pick(v.Tx), true }}
}

func segments(prefix, what string, pick messageOf, read func(*Reader, *transaction.Message, part)) (all []Field) {
	for p, name := range []string{"handle", "length", "offset"} {
		f := message(prefix+name, name+" of "+what, Number, pick, func(r *Reader, m *transaction.Message) { read(r, m, part(p)) })
		if part(p) == lengthPart {
			f.Unit, f.Doc = Octets, f.Doc+", in bytes"
		}
		all = append(all, f)
	}
	return all
}

func of(s Scope, list ...Field) []Field {
	for i := range list {
		list[i].Of = s
	}
	return list
}

// short is a phase that takes no time if the messages are short.
func short(f Field) Field {
	f.Of = OfShort
	return f
}

func orNull(f Field) Field {
	f.Absent = Null
	return f
}

func wide(f Field) Field {
	f.Wide = true
	return f
}

func omitted(f Field) Field {
	f.Absent = Omitted
	return f
}

func fixed(symbols ...string) func() []string { return func() []string { return symbols } }

func noteCodes() (all []string) {
	for k := range transaction.NoteKinds() {
		all = append(all, k.Code())
	}
	return all
}

func typeNames() (all []string) {
	for t := range rpcrdma.Type(32) {
		if n := t.String(); n != "" {
			all = append(all, n)
		}
	}
	return all
}

// tunnelTypes are the names of all encapsulations.
func tunnelTypes() (all []string) {
	for t := link.VXLAN; t.String() != ""; t++ {
		all = append(all, t.String())
	}
	return all
}

func tunnelVersion(_ *Reader, v *rpc.View) (uint64, bool) {
	if t := v.Tx.Connection.Tunnel; t != nil {
		return uint64(t.Version), t.Version != 0
	}
	return 0, false
}

// outer emits the outer address of a tunnel end: the requester's if other is 0, the responder's if it is 1.
func outer(other rdma.Side) func(*Reader, *rpc.View) {
	return func(r *Reader, v *rpc.View) {
		if t := v.Tx.Connection.Tunnel; t != nil && t.Ends[0].IsValid() {
			r.Addr(t.Ends[v.Tx.From^other])
		}
	}
}

func flavorNames() (all []string) {
	for n := range oncrpc.Flavor(16) {
		if s := n.String(); s != "" {
			all = append(all, s)
		}
	}
	return all // pseudo flavors do not stand in headers
}
