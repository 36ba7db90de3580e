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
	if m.Seen() && m.Transport {
		r.Enum(uint32(m.Header.Type), m.Header.Type.String())
	}
}

func credits(r *Reader, m *transaction.Message) {
	if m.Transport {
		r.Uint(uint64(m.Header.Credits))
	} else {
		r.Uint(0)
	}
}

func frame(r *Reader, at rdma.Ref) {
	if at.Seen() {
		r.Uint(at.Number)
	}
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

func writeCount(r *Reader, m *transaction.Message) {
	n := 0
	if m.Transport {
		n = len(m.Header.Writes)
	}
	r.Count(uint64(n))
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
func replyCount(r *Reader, m *transaction.Message) {
	if m.Transport && m.Header.HasReply {
		r.Uint(uint64(len(m.Header.Reply)))
	}
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

// listedOperation emits the operation as listings show it, without allocating for one that was seen before.
func listedOperation(r *Reader, v *rpc.View) {
	if !v.Tx.Named {
		return
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
	r.Symbol(name)
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

func readCount(r *Reader, m *transaction.Message) { r.Count(uint64(len(readChunks(m)))) }

func readSegmentCount(r *Reader, m *transaction.Message) {
	n := 0
	if m.Transport {
		n = len(m.Header.Reads)
	}
	r.Count(uint64(n))
}

func bothAddresses(r *Reader, v *rpc.View) {
	if r.Addr(v.Tx.Client().Addr); !r.Stopped() {
		r.Addr(v.Tx.Server().Addr)
	}
}

func total(r *Reader, v *rpc.View) {
	if p, ok := v.Tx.Phases(); ok {
		r.Duration(p.Total)
	}
}

// phase is the attribute of a phase.
func phase(ph transaction.Phase, doc string) Field {
	return Field{Name: "latency_ns." + ph.String(), Type: Duration, Unit: Nanoseconds, Doc: doc, Read: func(r *Reader, v *rpc.View) {
		if p, ok := v.Tx.Phases(); ok {
			if d := p.Of(ph); d >= 0 {
				r.Duration(d)
			}
		}
	}}
}

// lost is an attribute of what the time was lost to.
func lost(name, doc string, read func(*Reader, *transaction.Blame)) Field {
	return Field{Name: "lost_ns" + name, Type: Duration, Unit: Nanoseconds, Doc: doc, Blame: true, Read: func(r *Reader, v *rpc.View) {
		if b := v.Tx.Blame; b != nil {
			read(r, b)
		}
	}}
}

func totalLost(r *Reader, b *transaction.Blame) {
	sum := time.Duration(0)
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		sum += b.Of(c)
	}
	r.Duration(sum)
}

func worst(r *Reader, v *rpc.View) {
	if b := v.Tx.Blame; b != nil && b.Worst() != rdma.CauseRest {
		r.Symbol(b.Worst().String())
	}
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
			list = append(list, lost(".phases."+ph.String()+"."+cause, lostTo[c]+", of "+ph.String(), func(r *Reader, b *transaction.Blame) {
				if d := b.Shares[ph][c]; d != 0 {
					r.Duration(d)
				}
			}))
		}
	}
	for i := range list {
		list[i].Missing, list[i].Why = Filter|Parquet, whyPhases
	}
	return list
}

// waited is a time before the call.
func waited(name, doc string, blame bool, of func(*transaction.Transaction) time.Duration) Field {
	return Field{Name: name, Type: Duration, Unit: Nanoseconds, Doc: doc, Blame: blame, Read: func(r *Reader, v *rpc.View) {
		if v.Tx.Call.Seen() {
			r.Duration(of(v.Tx))
		}
	}}
}

func fileField(name, doc string, typ Type, read func(r *Reader, f *rpc.File)) Field {
	return Field{Name: "file." + name, Type: typ, Doc: doc, Cost: Decoded, Read: func(r *Reader, v *rpc.View) {
		if f := v.File(); f != nil {
			read(r, f)
		}
	}}
}

// filePath is the path, as far as it is known.
func filePath(r *Reader, v *rpc.View) {
	if r.buf = v.AppendPath(r.buf[:0]); len(r.buf) > 0 {
		r.TextBytes(r.buf)
	}
}

// fileName is the path, else the name, else the handle.
func fileName(r *Reader, v *rpc.View) {
	f := v.File()
	if f == nil || f.Unnamed {
		return
	}
	switch r.buf = v.AppendPath(r.buf[:0]); {
	case len(r.buf) > 0:
		r.TextBytes(r.buf)
	case f.Name != nil:
		r.TextBytes(f.Name)
	case f.Handle != nil:
		r.buf = hex.AppendEncode(r.buf, f.Handle)
		r.TextBytes(r.buf)
	}
}

type messageOf func(*transaction.Transaction) *transaction.Message

func callOf(t *transaction.Transaction) *transaction.Message  { return &t.Call }
func replyOf(t *transaction.Transaction) *transaction.Message { return &t.Reply }

func message(name, doc string, typ Type, pick messageOf, read func(*Reader, *transaction.Message)) Field {
	return Field{Name: name, Type: typ, Doc: doc, Read: func(r *Reader, v *rpc.View) { read(r, pick(v.Tx)) }}
}

// number is an attribute that is a Number or a Count.
func number(name, doc string, typ Type, unit Unit, pick func(*transaction.Transaction) uint64) Field {
	read := func(r *Reader, v *rpc.View) { r.Uint(pick(v.Tx)) }
	if typ == Count {
		read = func(r *Reader, v *rpc.View) { r.Count(pick(v.Tx)) }
	}
	return Field{Name: name, Type: typ, Unit: unit, Doc: doc, Read: read}
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

func inBytes(f Field) Field {
	f.Unit = Octets
	return f
}

func symbols(f Field, list ...string) Field {
	f.Symbols = fixed(list...)
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

func tunnelVersion(r *Reader, v *rpc.View) {
	if t := v.Tx.Connection.Tunnel; t != nil && t.Version != 0 {
		r.Uint(uint64(t.Version))
	}
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
