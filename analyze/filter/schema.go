package filter

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
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

// field is the meaning of a name.
type field struct {
	name    string
	kinds   kindSet
	desc    string
	cost    int             // 0: available at once; more: must be searched for
	symbols func() []string // of kEnum and kFlags
	textual bool            // its symbols have no numbers
	joined  bool            // its values are symbols joined by "+", some with a count: LOOKUP*2+GETATTR
	emit    func(s *sink, v *rpc.View)
	united  bool          // durations need a unit
	blame   bool          // it needs Transaction.Blame
	program *programField // set for fields of a program
}

func (f *field) info() FieldInfo { return FieldInfo{f.name, f.kinds.String(), f.desc} }

func (f *field) symbolList() []string {
	if f.symbols == nil {
		return nil
	}
	return f.symbols()
}

const (
	costView    = 1 // drawn from several messages
	costProgram = 8 // walks messages
)

// endpoint is a queue pair number or a port.
func endpoint(e rdma.End) uint64 {
	if e.QPN != 0 {
		return uint64(e.QPN)
	}
	return uint64(e.Port)
}

func messageType(s *sink, m *transaction.Message) {
	if m.Seen() && m.Transport {
		s.enum(uint32(m.Header.Type), m.Header.Type.String())
	}
}

func credits(s *sink, m *transaction.Message) {
	if m.Transport {
		s.uint(uint64(m.Header.Credits))
	} else {
		s.uint(0)
	}
}

func frame(s *sink, r rdma.Ref) {
	if r.Seen() {
		s.uint(r.Number)
	}
}

// part selects a member of a segment.
type part uint8

const (
	handlePart part = iota
	lengthPart
	offsetPart
)

func segment(s *sink, g *rpcrdma.Segment, p part) {
	switch p {
	case handlePart:
		s.uint(uint64(g.Handle))
	case lengthPart:
		s.uint(uint64(g.Length))
	case offsetPart:
		s.uint(g.Offset)
	}
}

func readSegments(s *sink, m *transaction.Message, p part) {
	if !m.Transport {
		return
	}
	for _, c := range m.Header.ReadChunks() {
		for i := range c.Segments {
			if segment(s, &c.Segments[i].Segment, p); s.stop {
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

func readPositions(s *sink, m *transaction.Message) {
	for _, c := range readChunks(m) {
		if s.uint(uint64(c.Position)); s.stop {
			return
		}
	}
}

func writeSegments(s *sink, m *transaction.Message, p part) {
	if !m.Transport {
		return
	}
	for _, c := range m.Header.Writes {
		for i := range c {
			if segment(s, &c[i], p); s.stop {
				return
			}
		}
	}
}

func writeCount(s *sink, m *transaction.Message) {
	n := 0
	if m.Transport {
		n = len(m.Header.Writes)
	}
	s.count(uint64(n))
}

func replySegments(s *sink, m *transaction.Message, p part) {
	if !m.Transport || !m.Header.HasReply {
		return
	}
	for i := range m.Header.Reply {
		if segment(s, &m.Header.Reply[i], p); s.stop {
			return
		}
	}
}

// replyCount is the number of segments of a Reply chunk; it may have none.
func replyCount(s *sink, m *transaction.Message) {
	if m.Transport && m.Header.HasReply {
		s.uint(uint64(len(m.Header.Reply)))
	}
}

func allHandles(s *sink, v *rpc.View) {
	for _, m := range [...]*transaction.Message{&v.Tx.Call, &v.Tx.Reply} {
		for _, f := range [...]func(*sink, *transaction.Message, part){readSegments, writeSegments, replySegments} {
			if f(s, m, handlePart); s.stop {
				return
			}
		}
	}
}

// operationNames are the names of a COMPOUND's operations, as in View.Operations, but without regard to the
// results.
func operationNames(s *sink, v *rpc.View) {
	var args, res *nfs4.Operations
	name := nfs4.OpName
	switch a := v.Args().(type) {
	case *nfs4.CompoundArgs:
		args = &a.Operations
	case *nfs4.CbCompoundArgs:
		args, name = &a.Operations, nfs4.CbOpName
	}
	switch r := v.Result().(type) {
	case *nfs4.CompoundRes:
		res = &r.Operations
	case *nfs4.CbCompoundRes:
		res, name = &r.Operations, nfs4.CbOpName
	}
	n := 0
	if args != nil {
		for n = range args.Ops {
			if s.symbol(name(args.Ops[n].Number)); s.stop {
				return
			}
		}
		n = len(args.Ops)
	}
	if res != nil {
		for ; n < len(res.Ops); n++ {
			if s.symbol(name(res.Ops[n].Number)); s.stop {
				return
			}
		}
	}
	if args != nil && args.Incomplete && args.FailedOp != 0 && args.FailedAt >= n {
		s.symbol(name(args.FailedOp))
	}
}

// maxListed bounds the distinct operation lists that a sink remembers: a capture may hold any combination.
const maxListed = 1024

// listedOperation emits the operation as listings show it, without allocating for one that was seen before.
func listedOperation(s *sink, v *rpc.View) {
	if !v.Tx.Named {
		return
	}
	s.buf = v.AppendOperation(s.buf[:0])
	name, ok := s.listed[string(s.buf)]
	if !ok {
		if s.listed == nil || len(s.listed) >= maxListed {
			s.listed = map[string]string{}
		}
		name = string(s.buf)
		s.listed[name] = name
	}
	s.symbol(name)
}

func operationStatuses(s *sink, v *rpc.View) {
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
		if s.enum(o.Code, symbol); s.stop {
			return
		}
	}
}

// status is the outcome; it has a number if it is a status of the program.
func status(s *sink, v *rpc.View) {
	if v.ReplyErr == nil && v.Reply().Succeeded() {
		if r, ok := v.Result().(xdr.Status); ok && (v.ResultErr == nil || len(v.ReplyBody().Data) >= 4) {
			s.enum(r.StatusCode())
			return
		}
	}
	if t := v.Status(); t != "" {
		s.symbol(t)
	}
}

// statusColumn is the status as listings show it, for comparisons with "ok", which stands for success of any
// program. A transaction without a readable status has a value too, so that "status != ok" finds it.
var statusColumn = sync.OnceValue(func() *field {
	return &field{
		name: "status", kinds: kEnum,
		symbols: func() []string { return append(slices.Clone(statusSymbols()), "ok") },
		emit: func(s *sink, v *rpc.View) {
			switch {
			case v.Tx.State == transaction.NoReply:
				s.symbol("no reply")
			case v.Status() == "":
				s.symbol("?")
			case !v.Failed():
				s.symbol("ok")
			default:
				status(s, v)
			}
		},
	}
})

func sys(s *sink, v *rpc.View) *oncrpc.Sys {
	if v.CallErr != nil || v.Call().Cred.Flavor != oncrpc.AuthSys || !s.sys.Decode(v.Call().Cred.Body) {
		return nil
	}
	return &s.sys
}

// phase is the field of a phase, under both names.
func phase(ph transaction.Phase, desc string) []field {
	return latencyField(ph.String(), desc, func(s *sink, v *rpc.View) {
		if p, ok := v.Tx.Phases(); ok {
			if d := p.Of(ph); d >= 0 {
				s.duration(d)
			}
		}
	})
}

func latencyField(name, desc string, emit func(s *sink, v *rpc.View)) []field {
	return []field{
		{name: "latency_ns." + name, kinds: kDuration, desc: desc, emit: emit},
		{name: "latency." + name, kinds: kDuration, united: true, desc: "the same as latency_ns." + name, emit: emit},
	}
}

// lostFields are what the time was lost to.
func lostFields() (list []field) {
	add := func(name, desc string, emit func(s *sink, v *rpc.View, b *transaction.Blame)) {
		f := func(s *sink, v *rpc.View) {
			if b := v.Tx.Blame; b != nil {
				emit(s, v, b)
			}
		}
		list = append(list,
			field{name: "lost_ns" + name, kinds: kDuration, desc: desc, emit: f, blame: true},
			field{name: "lost" + name, kinds: kDuration, united: true, desc: "the same as lost_ns" + name, emit: f, blame: true})
	}
	total := func(s *sink, _ *rpc.View, b *transaction.Blame) {
		sum := time.Duration(0)
		for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
			sum += b.Of(c)
		}
		s.duration(sum)
	}
	add("", "the same as lost_ns.total", total)
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		add("."+c.String(), lostTo[c], func(s *sink, _ *rpc.View, b *transaction.Blame) { s.duration(b.Of(c)) })
	}
	add(".total", "time lost to all of these together", total)
	var causes []string
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		causes = append(causes, c.String())
	}
	wait := func(s *sink, v *rpc.View) {
		if v.Tx.Call.Seen() {
			s.duration(v.Tx.Credits)
		}
	}
	slot := func(s *sink, v *rpc.View) {
		if v.Tx.Call.Seen() {
			s.duration(v.Tx.Slots)
		}
	}
	return append(list,
		field{name: "lost.cause", kinds: kEnum, textual: true, desc: "what most was lost to", symbols: fixed(causes...), blame: true, emit: func(s *sink, v *rpc.View) {
			if b := v.Tx.Blame; b != nil && b.Worst() != rdma.CauseRest {
				s.symbol(b.Worst().String())
			}
		}},
		field{name: "credit_wait_ns", kinds: kDuration, desc: "time before the call when all credits were in use: at most so long it waited", emit: wait},
		field{name: "credit_wait", kinds: kDuration, united: true, desc: "the same as credit_wait_ns", emit: wait},
		field{name: "slot_wait_ns", kinds: kDuration, blame: true, desc: "time before the call when all slots of its session were in use: at most so long it waited", emit: slot},
		field{name: "slot_wait", kinds: kDuration, united: true, blame: true, desc: "the same as slot_wait_ns", emit: slot},
	)
}

var lostTo = [rdma.NumCauses]string{
	rdma.CauseNotReady: "time until a receiver was ready", rdma.CauseRecovery: "time until something lost had come again",
	rdma.CauseCongestion: "time that packets came later than before a CNP", rdma.CauseReadSlot: "time when the limit of RDMA Reads was reached",
	rdma.CauseUnknown: "time that may be one of these",
}

func fileField(name, desc string, kinds kindSet, emit func(s *sink, f *rpc.File)) field {
	return field{name: "file." + name, kinds: kinds, desc: desc, cost: costView, emit: func(s *sink, v *rpc.View) {
		if f := v.File(); f != nil {
			emit(s, f)
		}
	}}
}

func message(name, desc string, kinds kindSet, pick func(*transaction.Transaction) *transaction.Message, emit func(*sink, *transaction.Message)) field {
	return field{name: name, kinds: kinds, desc: desc, emit: func(s *sink, v *rpc.View) { emit(s, pick(v.Tx)) }}
}

func callOf(t *transaction.Transaction) *transaction.Message  { return &t.Call }
func replyOf(t *transaction.Transaction) *transaction.Message { return &t.Reply }

func number(name, desc string, kinds kindSet, pick func(t *transaction.Transaction) uint64) field {
	emit := func(s *sink, v *rpc.View) { s.uint(pick(v.Tx)) }
	if kinds&kCount != 0 {
		emit = func(s *sink, v *rpc.View) { s.count(pick(v.Tx)) }
	}
	return field{name: name, kinds: kinds, desc: desc, emit: emit}
}

func segments(prefix, what string, pick func(*transaction.Transaction) *transaction.Message, emit func(*sink, *transaction.Message, part)) (all []field) {
	for p, name := range []string{"handle", "length", "offset"} {
		desc := name + " of " + what
		if p == int(lengthPart) {
			desc += ", in bytes"
		}
		all = append(all, message(prefix+name, desc, kUint, pick, func(s *sink, m *transaction.Message) { emit(s, m, part(p)) }))
	}
	return all
}

func fixed(symbols ...string) func() []string { return func() []string { return symbols } }

const counted = kUint | kCount

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

// statusSymbols are all symbols that "status" can have.
var statusSymbols = sync.OnceValue(func() []string {
	all := slices.Clone(protocols().statuses)
	for n := range oncrpc.AcceptStat(8) {
		all = append(all, n.String())
	}
	for n := range oncrpc.RejectStat(4) {
		all = append(all, n.String())
	}
	for n := range rpcrdma.ErrorCode(128) {
		all = append(all, n.Name(rpcrdma.Version1), n.Name(rpcrdma.Version2))
	}
	all = append(all, "RDMA_ERROR")
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
})

// tunnelTypes are the names of all encapsulations.
func tunnelTypes() (all []string) {
	for t := link.VXLAN; t.String() != ""; t++ {
		all = append(all, t.String())
	}
	return all
}

// outer emits the outer address of a tunnel end: the requester's if other is 0, the responder's if it is 1.
func outer(other rdma.Side) func(*sink, *rpc.View) {
	return func(s *sink, v *rpc.View) {
		if t := v.Tx.Connection.Tunnel; t != nil && t.Ends[0].IsValid() {
			s.addr(t.Ends[v.Tx.From^other])
		}
	}
}

var flavorNames = sync.OnceValue(func() (all []string) {
	for n := range oncrpc.Flavor(16) {
		if s := n.String(); s != "" {
			all = append(all, s)
		}
	}
	return all // pseudo flavors do not stand in headers
})

// schemaFields are the fields of every transaction: the keys of the ndjson schema, joined with dots, and
// convenience names.
var schemaFields = sync.OnceValue(func() []field {
	var all []field
	add := func(f ...field) { all = append(all, f...) }

	add(
		field{name: "schema", kinds: kString, desc: "rpcrdma.transaction/1", emit: func(s *sink, _ *rpc.View) { s.str("rpcrdma.transaction/1") }},
		field{name: "time", kinds: kTime, desc: "first packet of the call", emit: func(s *sink, v *rpc.View) {
			s.at(v.Tx.First().Time)
		}},
		number("xid", "transaction id", kUint, func(t *transaction.Transaction) uint64 { return uint64(t.XID) }),
		number("connection", "number of the connection, from 1", kUint, func(t *transaction.Transaction) uint64 { return uint64(t.Connection.ID) }),
		field{name: "connection_key", kinds: kString, desc: "what identifies the connection in any input", emit: func(s *sink, v *rpc.View) { s.str(s.keys.Of(v.Tx.Connection)) }},
		field{name: "fabric", kinds: kEnum, textual: true, desc: "what carries the connection", symbols: fixed("rocev2", "rocev1", "infiniband", "iwarp", "tcp", "udp"),
			emit: func(s *sink, v *rpc.View) { s.symbol(v.Fabric().String()) }},
		field{name: "client", kinds: kAddr, desc: "address of the requester", emit: func(s *sink, v *rpc.View) { s.addr(v.Tx.Client().Addr) }},
		field{name: "server", kinds: kAddr, desc: "address of the responder", emit: func(s *sink, v *rpc.View) { s.addr(v.Tx.Server().Addr) }},
		number("client_endpoint", "queue pair or port of the requester", kUint, func(t *transaction.Transaction) uint64 { return endpoint(t.Client()) }),
		number("server_endpoint", "queue pair or port of the responder", kUint, func(t *transaction.Transaction) uint64 { return endpoint(t.Server()) }),
		field{name: "direction", kinds: kEnum, textual: true, desc: "backward for callbacks on the same connection", symbols: fixed("forward", "backward"),
			emit: func(s *sink, v *rpc.View) {
				if v.Tx.Backward {
					s.symbol("backward")
				} else {
					s.symbol("forward")
				}
			}},
		field{name: "tunnel.type", kinds: kEnum, textual: true, desc: "outermost wrapping of the packets", symbols: tunnelTypes, emit: func(s *sink, v *rpc.View) {
			if t := v.Tx.Connection.Tunnel; t != nil {
				s.symbol(t.Type)
			}
		}},
		field{name: "tunnel.id", kinds: kUint, desc: "its VNI, key, session or label", emit: func(s *sink, v *rpc.View) {
			if t := v.Tx.Connection.Tunnel; t != nil && t.HasID {
				s.uint(uint64(t.ID))
			}
		}},
		field{name: "tunnel.outer_client", kinds: kAddr, desc: "address of the tunnel's end at the requester's side", emit: outer(0)},
		field{name: "tunnel.outer_server", kinds: kAddr, desc: "address of the tunnel's end at the responder's side", emit: outer(1)},
		field{name: "program", kinds: kEnum, desc: "RPC program", symbols: func() []string { return protocols().programNames },
			emit: func(s *sink, v *rpc.View) {
				if v.Tx.Named {
					name := v.ProgramName()
					if name != "" && name[0] >= '0' && name[0] <= '9' {
						name = ""
					}
					s.enum(v.Tx.Program, name)
				}
			}},
		field{name: "version", kinds: kUint, desc: "version of the program", emit: func(s *sink, v *rpc.View) {
			if v.Tx.Named {
				s.uint(uint64(v.Tx.Version))
			}
		}},
		field{name: "procedure", kinds: kEnum, desc: "RPC procedure", symbols: func() []string { return protocols().procedures },
			emit: func(s *sink, v *rpc.View) {
				if v.Tx.Named {
					name := ""
					if v.Procedure != nil || v.Tx.Procedure == 0 {
						name = v.ProcedureName()
					}
					s.enum(v.Tx.Procedure, name)
				}
			}},
		field{name: "minor_version", kinds: kUint, desc: "minor version of NFSv4", emit: func(s *sink, v *rpc.View) {
			if n, ok := v.MinorVersion(); ok {
				s.uint(uint64(n))
			}
		}},
		field{name: "operations", kinds: counted, desc: "number of operations of a COMPOUND", cost: costView, emit: func(s *sink, v *rpc.View) { s.count(uint64(len(v.Steps()))) }},
		field{name: "operation", kinds: kEnum, textual: true, joined: true, desc: "the operation as listed: a procedure, or what a COMPOUND is for, such as OPEN or LOOKUP+GETATTR",
			symbols: func() []string { return protocols().ops }, cost: costView, emit: listedOperation},
		field{name: "operation_group", kinds: kEnum, textual: true, desc: "the operation that report, -q and rpcrdma-top group by: LOOKUP of LOOKUP+GETATTR",
			symbols: func() []string { return protocols().ops }, cost: costView, emit: func(s *sink, v *rpc.View) {
				if v.Tx.Named {
					s.symbol(v.OperationGroup())
				}
			}},
		field{name: "operations.op", kinds: kEnum, textual: true, desc: "operations of a COMPOUND", symbols: func() []string { return protocols().operations }, emit: operationNames},
		field{name: "operations.status", kinds: kEnum, desc: "their statuses", symbols: statusSymbols, cost: costView, emit: operationStatuses},
		field{name: "status", kinds: kEnum, desc: "outcome: of the program, or failure of RPC or transport", symbols: statusSymbols, emit: status},
		field{name: "gss", kinds: kEnum, textual: true, desc: "how RPCSEC_GSS wraps the messages", symbols: fixed("integrity", "privacy", "init", "unknown"),
			emit: func(s *sink, v *rpc.View) {
				if w := v.Wrapped(); w != "" {
					s.symbol(w)
				}
			}},
		field{name: "gss_opened", kinds: kEnum, textual: true, desc: "what became of wrapped messages with --keytab", symbols: fixed("verified", "decrypted", "prefix", "refused"),
			emit: func(s *sink, v *rpc.View) {
				if o := v.Opening(); o != rpc.NotOpened {
					s.symbol(o.String())
				}
			}},
		field{name: "gss_principal", kinds: kString, desc: "Kerberos principal of the caller, with --keytab", emit: func(s *sink, v *rpc.View) {
			if v.Principal != "" {
				s.str(v.Principal)
			}
		}},
		field{name: "call_frame", kinds: kUint, desc: "last packet of the call", emit: func(s *sink, v *rpc.View) { frame(s, v.Tx.Call.Last) }},
		field{name: "reply_frame", kinds: kUint, desc: "last packet of the reply", emit: func(s *sink, v *rpc.View) { frame(s, v.Tx.Reply.Last) }},
	)
	call := message("call_type", "type of the call's transport header", kEnum, callOf, messageType)
	reply := message("reply_type", "type of the reply's transport header", kEnum, replyOf, messageType)
	call.symbols, reply.symbols = typeNames, typeNames
	add(call, reply,
		message("credits_requested", "credits that the call asks for", kUint, callOf, credits),
		message("credits_granted", "credits that the reply grants", kUint, replyOf, credits),
		message("read_chunks", "number of read chunks of the call", counted, callOf, func(s *sink, m *transaction.Message) { s.count(uint64(len(readChunks(m)))) }),
		message("read_chunks.position", "position of a read chunk in the call", kUint, callOf, readPositions),
		message("read_chunks.segments", "number of segments of all read chunks", counted, callOf, func(s *sink, m *transaction.Message) {
			n := 0
			if m.Transport {
				n = len(m.Header.Reads)
			}
			s.count(uint64(n))
		}),
	)
	add(segments("read_chunks.segments.", "a segment of a read chunk", callOf, readSegments)...)
	add(message("write_chunks", "number of write chunks of the call", counted, callOf, writeCount))
	add(segments("write_chunks.", "a segment of a write chunk", callOf, writeSegments)...)
	add(message("reply_chunk", "number of segments of the reply chunk, if there is one", kUint, callOf, replyCount))
	add(segments("reply_chunk.", "a segment of the reply chunk", callOf, replySegments)...)
	add(message("written_chunks", "number of write chunks in the reply", counted, replyOf, writeCount))
	add(segments("written_chunks.", "a segment of a write chunk in the reply", replyOf, writeSegments)...)
	add(message("written_reply_chunk", "number of segments of the reply chunk in the reply", kUint, replyOf, replyCount))
	add(segments("written_reply_chunk.", "a segment of the reply chunk in the reply", replyOf, replySegments)...)
	add(
		message("reply_read_chunks", "number of read chunks in the reply (version 0)", counted, replyOf, func(s *sink, m *transaction.Message) { s.count(uint64(len(readChunks(m)))) }),
		message("reply_read_chunks.position", "position of a read chunk in the reply", kUint, replyOf, readPositions),
	)
	add(segments("reply_read_chunks.segments.", "a segment of a read chunk in the reply", replyOf, readSegments)...)
	add(
		number("rdma_reads", "RDMA Reads for its chunks", counted, func(t *transaction.Transaction) uint64 { return uint64(t.Reads) }),
		number("rdma_read_bytes", "bytes that they moved", counted, func(t *transaction.Transaction) uint64 { return t.ReadBytes }),
		number("rdma_writes", "RDMA Writes for its chunks", counted, func(t *transaction.Transaction) uint64 { return uint64(t.Writes) }),
		number("rdma_write_bytes", "bytes that they moved", counted, func(t *transaction.Transaction) uint64 { return t.WriteBytes }),
		number("call_bytes", "size of the RPC call in bytes, chunks included", counted, func(t *transaction.Transaction) uint64 { return t.Call.Bytes }),
		number("reply_bytes", "size of the RPC reply in bytes, chunks included", counted, func(t *transaction.Transaction) uint64 { return t.Reply.Bytes }),
		number("retransmits", "packets seen again", counted, func(t *transaction.Transaction) uint64 { return uint64(t.Retransmits) }),
		field{name: "invalidated_handle", kinds: kUint, desc: "handle that the reply invalidated", emit: func(s *sink, v *rpc.View) {
			if v.Tx.Reply.Invalidates {
				s.uint(uint64(v.Tx.Reply.Handle))
			}
		}},
	)
	total := func(s *sink, v *rpc.View) {
		if p, ok := v.Tx.Phases(); ok {
			s.duration(p.Total)
		}
	}
	add(
		field{name: "latency_ns", kinds: kDuration, desc: "the same as latency_ns.total", emit: total},
		field{name: "latency", kinds: kDuration, united: true, desc: "the same as latency_ns.total", emit: total},
	)
	add(phase(transaction.PhaseCall, "call's first packet to its last")...)
	add(phase(transaction.PhasePull, "end of the call to the last Read Response of its chunks")...)
	add(phase(transaction.PhaseWait, "the part of argument_pull before the first Read Request")...)
	add(phase(transaction.PhaseServer, "until the first RDMA Write, or the reply")...)
	add(phase(transaction.PhasePush, "first RDMA Write to the end of the last")...)
	add(phase(transaction.PhaseReply, "until the reply's last packet")...)
	add(latencyField("total", "call's first packet to the reply's last", total)...)
	add(phase(transaction.PhaseAck, "reply's last packet to its acknowledgement")...)
	add(lostFields()...)
	add(
		field{name: "state", kinds: kEnum, textual: true, desc: "whether it was seen whole", symbols: fixed("complete", "no_reply", "no_call", "incomplete"),
			emit: func(s *sink, v *rpc.View) { s.symbol(v.Tx.State.String()) }},
		field{name: "notes", kinds: kString, desc: "what is odd", emit: func(s *sink, v *rpc.View) {
			for _, n := range v.Tx.Notes {
				if s.str(n.String()); s.stop {
					return
				}
			}
		}},
		field{name: "note_codes", kinds: kEnum, textual: true, desc: "stable codes of the notes", symbols: noteCodes, emit: func(s *sink, v *rpc.View) {
			for _, n := range v.Tx.Notes {
				if s.symbol(n.Kind.Code()); s.stop {
					return
				}
			}
		}},
		field{name: "file", kinds: kString, desc: "path, else name, else handle of the file", cost: costView + 1, emit: func(s *sink, v *rpc.View) {
			f := v.File()
			if f == nil || f.Unnamed {
				return
			}
			switch s.buf = v.AppendPath(s.buf[:0]); {
			case len(s.buf) > 0:
				s.bytesText(s.buf)
			case f.Name != nil:
				s.bytesText(f.Name)
			case f.Handle != nil:
				s.buf = hex.AppendEncode(s.buf, f.Handle)
				s.bytesText(s.buf)
			}
		}},
		fileField("filehandle", "handle of the file, or of the directory of file.name", kBytes, func(s *sink, f *rpc.File) {
			if f.Handle != nil {
				s.hex(f.Handle)
			}
		}),
		fileField("name", "name in the call", kString, func(s *sink, f *rpc.File) {
			if f.Name != nil {
				s.bytesText(f.Name)
			}
		}),
		field{name: "file.path", kinds: kString, desc: "path, as far as it is known", cost: costView + 1, emit: func(s *sink, v *rpc.View) {
			if s.buf = v.AppendPath(s.buf[:0]); len(s.buf) > 0 {
				s.bytesText(s.buf)
			}
		}},
		fileField("to", "new name, or target of a symbolic link", kString, func(s *sink, f *rpc.File) {
			if f.To != nil {
				s.bytesText(f.To)
			}
		}),
		fileField("new_filehandle", "handle that the reply gives for the name", kBytes, func(s *sink, f *rpc.File) {
			if f.Result != nil {
				s.hex(f.Result)
			}
		}),
		fileField("offset", "where the range begins", kUint, func(s *sink, f *rpc.File) {
			if f.HasRange {
				s.uint(f.Offset)
			}
		}),
		fileField("count", "bytes asked for, or sent", kUint, func(s *sink, f *rpc.File) {
			if f.HasRange {
				s.uint(f.Count)
			}
		}),
	)
	stable := fileField("stable", "how stable a WRITE is to be", kEnum, func(s *sink, f *rpc.File) {
		if f.Stable != "" {
			s.symbol(f.Stable)
		}
	})
	stable.textual, stable.symbols = true, fixed("UNSTABLE", "DATA_SYNC", "FILE_SYNC", "UNSTABLE4", "DATA_SYNC4", "FILE_SYNC4")
	add(stable,
		fileField("moved", "bytes that the reply says were read or written", kUint, func(s *sink, f *rpc.File) {
			if f.HasMoved {
				s.uint(f.Moved)
			}
		}),
		fileField("eof", "the READ reached the end of the file", kBool, func(s *sink, f *rpc.File) {
			if f.HasMoved {
				s.bool(f.EOF)
			}
		}),
	)

	// Convenience names.
	both := func(s *sink, v *rpc.View) {
		if s.addr(v.Tx.Client().Addr); !s.stop {
			s.addr(v.Tx.Server().Addr)
		}
	}
	for _, name := range []string{"addr", "ip", "host", "net"} {
		add(field{name: name, kinds: kAddr, desc: "client or server", emit: both})
	}
	add(
		field{name: "op", kinds: kEnum, textual: true, desc: "procedure, or an operation of a COMPOUND",
			symbols: func() []string { return protocols().ops }, emit: func(s *sink, v *rpc.View) {
				if p := v.ProcedureName(); p != "" {
					if s.symbol(p); s.stop {
						return
					}
				}
				operationNames(s, v)
			}},
		field{name: "end", kinds: kTime, desc: "last packet of the reply", emit: func(s *sink, v *rpc.View) {
			if r := v.Tx.Reply.Last; r.Seen() {
				s.at(r.Time)
			}
		}},
		field{name: "error", kinds: kBool, desc: "status is a failure", emit: func(s *sink, v *rpc.View) { s.bool(v.Failed()) }},
		field{name: "backward", kinds: kBool, desc: "direction is backward", emit: func(s *sink, v *rpc.View) { s.bool(v.Tx.Backward) }},
		field{name: "endpoint", kinds: kUint, desc: "queue pair or port of either side", emit: func(s *sink, v *rpc.View) {
			if s.uint(endpoint(v.Tx.Client())); !s.stop {
				s.uint(endpoint(v.Tx.Server()))
			}
		}},
		field{name: "port", kinds: kUint, desc: "TCP or UDP port of either side", emit: func(s *sink, v *rpc.View) {
			for _, e := range [...]rdma.End{v.Tx.Client(), v.Tx.Server()} {
				if e.Port != 0 && !s.stop {
					s.uint(uint64(e.Port))
				}
			}
		}},
		field{name: "qp", kinds: kUint, desc: "queue pair of either side", emit: func(s *sink, v *rpc.View) {
			for _, e := range [...]rdma.End{v.Tx.Client(), v.Tx.Server()} {
				if e.QPN != 0 && !s.stop {
					s.uint(uint64(e.QPN))
				}
			}
		}},
		field{name: "handle", kinds: kUint, desc: "handle of any segment, in call or reply", emit: allHandles},
		field{name: "frame", kinds: kUint, desc: "call_frame or reply_frame", emit: func(s *sink, v *rpc.View) {
			if frame(s, v.Tx.Call.Last); !s.stop {
				frame(s, v.Tx.Reply.Last)
			}
		}},
		field{name: "uid", kinds: kUint, desc: "user of AUTH_SYS", emit: func(s *sink, v *rpc.View) {
			if c := sys(s, v); c != nil {
				s.uint(uint64(c.UID))
			}
		}},
		field{name: "gid", kinds: kUint, desc: "groups of AUTH_SYS, the first one and the others", emit: func(s *sink, v *rpc.View) {
			c := sys(s, v)
			if c == nil {
				return
			}
			s.uint(uint64(c.GID))
			for i := 0; i < c.Count && !s.stop; i++ {
				s.uint(uint64(c.GIDs[i]))
			}
		}},
		field{name: "machine", kinds: kString, desc: "machine name of AUTH_SYS", emit: func(s *sink, v *rpc.View) {
			if c := sys(s, v); c != nil {
				s.bytesText(c.Machine)
			}
		}},
		field{name: "rpc.flavor", kinds: kEnum, desc: "flavor of the call's credential", symbols: flavorNames, emit: func(s *sink, v *rpc.View) {
			if v.CallErr == nil {
				s.enum(uint32(v.Call().Cred.Flavor), v.Call().Cred.Flavor.String())
			}
		}},
	)
	return all
})

var schemaByName = sync.OnceValue(func() map[string]*field {
	all := schemaFields()
	m := make(map[string]*field, len(all))
	for i := range all {
		m[all[i].name] = &all[i]
	}
	return m
})

// lookup finds a field. pos is the position of its name in expr.
func lookup(name string, pos int, expr string) (*field, error) {
	lower := strings.ToLower(name)
	if f, ok := schemaByName()[lower]; ok {
		return f, nil
	}
	first, rest, dotted := strings.Cut(name, ".")
	if p := protocols().program(first); p != nil {
		if !dotted {
			return p.whole(), nil
		}
		f, err := p.resolve(rest, pos+len(first)+1, expr)
		if e, ok := errors.AsType[*Error](err); ok && foreign[lower] != nil {
			e.Hint = suggest(foreign[lower], 3)
		}
		return f, err
	}
	return nil, &Error{Expr: expr, Pos: pos, Found: name, Expected: "a field", Hint: unknownHint(lower), Unknown: true}
}

// unknownHint proposes fields for a name that does not exist.
func unknownHint(name string) string {
	if meant := foreign[name]; meant != nil {
		return suggest(meant, 3)
	}
	var found []string
	if _, ok := schemaByName()["file."+name]; ok {
		found = append(found, "file."+name)
	}
	for _, p := range protocols().programs {
		if leaf := p.canonical(name); leaf != "" {
			found = append(found, p.name+"."+leaf)
		}
	}
	for _, f := range schemaFields() {
		if _, last, ok := strings.Cut(f.name, "."); ok && last == name && !contains(found, f.name) {
			found = append(found, f.name)
		}
	}
	if len(found) > 0 {
		return suggest(found, 3)
	}
	var all []string
	for _, f := range schemaFields() {
		all = append(all, f.name)
	}
	for _, p := range protocols().programs {
		all = append(all, p.name)
	}
	return didYouMean(name, all)
}
