package fields

import (
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/digits"
)

// schema is the name of the format whose keys the table lists.
const schema = "rpcrdma.transaction/1"

// Why some formats lack some attributes.
const (
	whyConvenience = "another name for an attribute, or several at once: for expressions only"
	whySchema      = "a file or an entry of the format says itself what it is"
	whyPhases      = "thirty values that nearly always are not there: ndjson has them for those who take the time apart"
	whyMembers     = "an object of which the members are there"
	whyHex         = "what shows text shows xid in hexadecimal; in columns and attributes, it is a number"
	whyTimeNS      = "for engines that round the timestamps of Parquet"
)

func table() []Field {
	list := slices.Concat(identity(), of(OfClean, source()...), of(OfParties, parties()...), called(), frames(), headers(), moved(), times(), outcome(), file(),
		convenient())
	for i := range list {
		f := &list[i]
		f.Attribute = attributes[f.Name]
		for _, x := range exceptions {
			if !slices.ContainsFunc(x.names, f.under) {
				continue
			}
			f.Missing |= x.formats
			if f.Why == "" {
				f.Why = x.why
			} else if f.Why != x.why {
				f.Why += "; " + x.why
			}
		}
	}
	return list
}

// under reports whether a field has a name, or is a member of it if the name ends in a dot.
func (f *Field) under(name string) bool {
	return f.Name == name || strings.HasSuffix(name, ".") && strings.HasPrefix(f.Name, name)
}

// exceptions lists the fields that event formats lack. A name that ends in a dot stands for all members.
var exceptions = []struct {
	formats Format
	why     string
	names   []string
}{
	{Timeline | Journal | OTLP, "lists of pieces of memory are for who looks into one transaction: -e adds them to the journal", []string{
		"read_chunks", "read_chunks.", "write_chunks", "write_chunks.", "reply_chunk", "reply_chunk.", "written_chunks", "written_chunks.",
		"written_reply_chunk", "written_reply_chunk.", "reply_read_chunks", "reply_read_chunks.",
	}},
	{Timeline | Journal, "what is lost is not computed for these: -e adds it to the journal", []string{"lost_ns", "lost_ns.", "slot_wait_ns"}},
	{Timeline, "process, thread, name and category of the slice tell it", []string{
		"connection", "connection_key", "fabric", "client", "server", "client_endpoint", "server_endpoint", "direction",
		"program", "version", "procedure", "operation",
	}},
	{Timeline | OTLP, "slices and spans have times and lengths of their own", []string{
		"time", "latency_ns", "latency_ns.call_transfer", "latency_ns.argument_pull", "latency_ns.server", "latency_ns.result_push",
		"latency_ns.reply_transfer", "latency_ns.total",
	}},
	{Timeline | OTLP, "operations.op has one value for each", []string{"operations"}},
	{OTLP, "the number holds within one capture only; connection_key is sent", []string{"connection"}},
	{OTLP, whyMembers, []string{"file", "lost_ns"}},
}

// attributes has the OTLP names that differ from the key: those of semantic conventions, and early names that are kept.
var attributes = map[string]string{
	"connection_key": "rpcrdma.connection", "client": "client.address", "server": "server.address",
	"program": "onc_rpc.program.name", "version": "onc_rpc.version", "procedure": "onc_rpc.procedure.name", "minor_version": "rpcrdma.nfs.minor_version",
	"call_frame": "rpcrdma.call.frame", "reply_frame": "rpcrdma.reply.frame", "call_bytes": "rpcrdma.call.size", "reply_bytes": "rpcrdma.reply.size",
	"rdma_read_bytes": "rpcrdma.read.size", "rdma_write_bytes": "rpcrdma.write.size", "retransmits": "rpcrdma.retransmitted_packets",
	"notes": "rpcrdma.note_texts", "note_codes": "rpcrdma.notes", "file.path": "file.path", "file.name": "file.name",
}

// identity tells the transaction from others.
func identity() []Field {
	return []Field{
		{Name: "schema", Of: OfKind, Absent: Never, Type: Text, Doc: schema, Read: func(r *Reader, _ *rpc.View) { r.Text(schema) },
			Missing: everything &^ (Filter | NDJSON), Why: whySchema},
		{Name: "time", Absent: Never, Type: Time, Doc: "first packet of the call", Uint: func(_ *Reader, v *rpc.View) (uint64, bool) { return uint64(v.Tx.First().Time), true }},
		{Name: "time_ns", Type: Number, Unit: Nanoseconds, Doc: "time in nanoseconds since 1970", Missing: everything &^ Parquet, Why: whyTimeNS,
			Uint: func(_ *Reader, v *rpc.View) (uint64, bool) { return uint64(v.Tx.First().Time), true }},
		number("xid", "transaction id", Number, None, func(t *transaction.Transaction) uint64 { return uint64(t.XID) }),
		{Name: "xid_hex", Absent: Never, Type: Text, Doc: "xid as the listing and show have it", Missing: everything &^ NDJSON, Why: whyHex,
			Bytes: func(r *Reader, v *rpc.View) []byte {
				r.buf = digits.Hex32(append(r.buf[:0], "0x"...), v.Tx.XID)
				return r.buf
			}},
	}
}

// source is where what is known of it comes from, and what only a kernel knows.
func source() []Field {
	return []Field{
		{Name: "source", Type: Symbol, Doc: "trace if trace events of a kernel are the source; absent for packets", Symbols: fixed("trace"),
			Symbol: func(_ *Reader, v *rpc.View) string {
				if v.Tx.Kernel != nil {
					return "trace"
				}
				return ""
			}},
		{Name: "kernel", Type: Group, Doc: "what a kernel has recorded of it", Missing: everything &^ (NDJSON | Parquet), Why: whyMembers},
		{Name: "kernel.side", Type: Symbol, Doc: "whose kernel: of the requester or of the responder", Symbols: fixed("client", "server"),
			Symbol: func(_ *Reader, v *rpc.View) string {
				switch k := v.Tx.Kernel; {
				case k == nil:
					return ""
				case k.Server:
					return "server"
				}
				return "client"
			}},
		{Name: "kernel.operation", Type: Text, Doc: "what a COMPOUND is for, by the client's statistics", Read: func(r *Reader, v *rpc.View) {
			if k := v.Tx.Kernel; k != nil && k.Operation != "" {
				r.Text(k.Operation)
			}
		}},
		kernelTime("queued", "from the start of the task to the transmission", func(k *transaction.Kernel) time.Duration { return k.Queued }),
		kernelTime("credit_wait", "the part of it from the first look for a credit to the last", func(k *transaction.Kernel) time.Duration { return k.CreditWait }),
		kernelTime("registration", "from the first segment of memory to the complete transport header", func(k *transaction.Kernel) time.Duration { return k.Registration }),
		kernelTime("round_trip", "from the transmission to the reply", func(k *transaction.Kernel) time.Duration { return k.RoundTrip }),
		kernelTime("total", "from the start of the client's task to its end", func(k *transaction.Kernel) time.Duration { return k.Total }),
		kernelTime("wakeup", "until a thread of the server took up the connection", func(k *transaction.Kernel) time.Duration { return k.Wakeup }),
		kernelTime("dispatch", "from the decoded header to the execution; of a callback to the reply", func(k *transaction.Kernel) time.Duration { return k.Dispatch }),
		kernelTime("execution", "execution in the server", func(k *transaction.Kernel) time.Duration { return k.Execution }),
		{Name: "kernel.transmissions", Type: Number, Doc: "how often the client made the header of the call", Uint: func(_ *Reader, v *rpc.View) (uint64, bool) {
			if k := v.Tx.Kernel; k != nil && k.Transmissions > 0 {
				return uint64(k.Transmissions), true
			}
			return 0, false
		}},
	}
}

// parties are who took part.
func parties() []Field {
	return []Field{
		number("connection", "number of the connection, from 1", Number, None, func(t *transaction.Transaction) uint64 { return uint64(t.Connection.ID) }),
		{Name: "connection_key", Absent: Never, Type: Text, Doc: "what identifies the connection in any input", Read: func(r *Reader, v *rpc.View) { r.Text(r.keys.Of(v.Tx.Connection)) }},
		{Name: "fabric", Absent: Never, Type: Symbol, Doc: "what carries the connection", Symbols: fixed("rocev2", "rocev1", "infiniband", "iwarp", "tcp", "udp", "rdma"),
			Symbol: func(_ *Reader, v *rpc.View) string { return v.Fabric().String() }},
		{Name: "client", Absent: Never, Type: Address, Doc: "address of the requester", Read: func(r *Reader, v *rpc.View) { r.Addr(v.Tx.Client().Addr) }},
		{Name: "server", Absent: Never, Type: Address, Doc: "address of the responder", Read: func(r *Reader, v *rpc.View) { r.Addr(v.Tx.Server().Addr) }},
		packets("client_endpoint", "queue pair or port of the requester", Number, None, func(t *transaction.Transaction) uint64 { return endpoint(t.Client()) }),
		packets("server_endpoint", "queue pair or port of the responder", Number, None, func(t *transaction.Transaction) uint64 { return endpoint(t.Server()) }),
		{Name: "direction", Absent: Never, Type: Symbol, Doc: "backward for callbacks on the same connection", Symbols: fixed("forward", "backward"),
			Symbol: func(_ *Reader, v *rpc.View) string {
				if v.Tx.Backward {
					return "backward"
				}
				return "forward"
			}},
		{Name: "tunnel", Type: Group, Doc: "outermost wrapping of the packets", Missing: everything &^ (NDJSON | Parquet), Why: whyMembers},
		{Name: "tunnel.type", Type: Symbol, Doc: "outermost wrapping of the packets", Symbols: tunnelTypes, Symbol: func(_ *Reader, v *rpc.View) string {
			if t := v.Tx.Connection.Tunnel; t != nil {
				return t.Type
			}
			return ""
		}},
		{Name: "tunnel.version", Type: Number, Doc: "version of ERSPAN", Uint: tunnelVersion},
		{Name: "tunnel.id", Type: Number, Doc: "its VNI, key, session or label", Uint: func(_ *Reader, v *rpc.View) (uint64, bool) {
			if t := v.Tx.Connection.Tunnel; t != nil {
				return uint64(t.ID), t.HasID
			}
			return 0, false
		}},
		{Name: "tunnel.outer_client", Type: Address, Doc: "address of the tunnel's end at the requester's side", Read: outer(0)},
		{Name: "tunnel.outer_server", Type: Address, Doc: "address of the tunnel's end at the responder's side", Read: outer(1)},
	}
}

// called is what was called, and with what result.
func called() []Field {
	return []Field{
		{Name: "program", Of: OfProgram, Absent: Empty, Type: Enum, Doc: "RPC program", Words: Programs,
			Read: func(r *Reader, v *rpc.View) {
				if v.Tx.Named {
					name := v.ProgramName()
					if name != "" && name[0] >= '0' && name[0] <= '9' {
						name = ""
					}
					r.Enum(v.Tx.Program, name)
				}
			}},
		{Name: "version", Of: OfProgram, Absent: Zero, Type: Number, Doc: "version of the program", Uint: func(_ *Reader, v *rpc.View) (uint64, bool) { return uint64(v.Tx.Version), v.Tx.Named }},
		{Name: "procedure", Of: OfKind, Absent: Empty, Type: Enum, Doc: "RPC procedure", Words: Procedures,
			Read: func(r *Reader, v *rpc.View) {
				if v.Tx.Named {
					name := ""
					if v.Procedure != nil || v.Tx.Procedure == 0 {
						name = v.ProcedureName()
					}
					r.Enum(v.Tx.Procedure, name)
				}
			}},
		{Name: "minor_version", Of: OfProgram, Type: Number, Doc: "minor version of NFSv4", Uint: func(_ *Reader, v *rpc.View) (uint64, bool) {
			n, ok := v.MinorVersion()
			return uint64(n), ok
		}},
		{Name: "operation", Of: OfKind, Absent: Empty, Type: Symbol, Joined: true, Doc: "the operation as listed: a procedure, or what a COMPOUND is for, such as OPEN or LOOKUP+GETATTR",
			Words: ProceduresAndOperations, Cost: Decoded, Symbol: listedOperation},
		{Name: "operation_group", Of: OfKind, Absent: Empty, Type: Symbol, Doc: "the operation that report, -q and rpcrdma-top group by: LOOKUP of LOOKUP+GETATTR",
			Words: ProceduresAndOperations, Cost: Decoded, Symbol: func(_ *Reader, v *rpc.View) string {
				if v.Tx.Named {
					return v.OperationGroup()
				}
				return ""
			}},
		{Name: "operations", Of: OfKind, Type: Count, Doc: "number of operations of a COMPOUND", Cost: Decoded, Uint: func(_ *Reader, v *rpc.View) (uint64, bool) { return uint64(len(v.Steps())), true }},
		{Name: "operations.op", Of: OfKind, Several: true, Type: Symbol, Doc: "operations of a COMPOUND", Words: Operations, Read: operationNames},
		{Name: "operations.status", Of: OfKind, Several: true, Type: Enum, Doc: "their statuses", Words: Statuses, Cost: Decoded, Read: operationStatuses},
		{Name: "status", Of: OfKind, Absent: Empty, Type: Enum, Doc: "outcome: of the program, or failure of RPC or transport", Words: Statuses, Read: status},
		{Name: "gss", Of: OfProgram, Type: Symbol, Doc: "how RPCSEC_GSS wraps the messages", Symbols: fixed("integrity", "privacy", "init", "unknown"),
			Symbol: func(_ *Reader, v *rpc.View) string { return v.Wrapped() }},
		{Name: "gss_opened", Of: OfProgram, Type: Symbol, Doc: "what became of wrapped messages with --keytab", Symbols: fixed("verified", "decrypted", "prefix", "refused"),
			Symbol: func(_ *Reader, v *rpc.View) string {
				if o := v.Opening(); o != rpc.NotOpened {
					return o.String()
				}
				return ""
			}},
		{Name: "gss_principal", Of: OfProgram, Type: Text, Doc: "Kerberos principal of the caller, with --keytab", Read: func(r *Reader, v *rpc.View) {
			if v.Principal != "" {
				r.Text(v.Principal)
			}
		}},
	}
}

// frames are where it is in the input.
func frames() []Field {
	return []Field{
		{Name: "call_frame", Absent: Null, Type: Number, Doc: "last packet of the call", Recorded: never, Uint: func(_ *Reader, v *rpc.View) (uint64, bool) { return frame(v, v.Tx.Call.Last) }},
		{Name: "reply_frame", Absent: Null, Type: Number, Doc: "last packet of the reply", Recorded: never, Uint: func(_ *Reader, v *rpc.View) (uint64, bool) { return frame(v, v.Tx.Reply.Last) }},
	}
}

// headers are what transport headers say.
func headers() []Field {
	types := []Field{
		message("call_type", "type of the call's transport header", Enum, callOf, messageType),
		message("reply_type", "type of the reply's transport header", Enum, replyOf, messageType),
	}
	for i := range types {
		types[i].Symbols, types[i].Absent = typeNames, Empty
	}
	return slices.Concat(of(OfProgram, append(types,
		recorded(func(k *transaction.Kernel) bool { return k.CallCredits }, counted("credits_requested", "credits that the call asks for", Number, callOf, credits)),
		recorded(func(k *transaction.Kernel) bool { return k.ReplyCredits }, counted("credits_granted", "credits that the reply grants", Number, replyOf, credits)),
	)...), of(OfPlain, chunks()...))
}

// chunks are the chunk lists.
func chunks() []Field {
	return slices.Concat([]Field{
		counted("read_chunks", "number of read chunks of the call", Count, callOf, readCount),
		message("read_chunks.position", "position of a read chunk in the call", Number, callOf, readPositions),
		counted("read_chunks.segments", "number of segments of all read chunks", Count, callOf, readSegmentCount),
	},
		segments("read_chunks.segments.", "a segment of a read chunk", callOf, readSegments),
		[]Field{counted("write_chunks", "number of write chunks of the call", Count, callOf, writeCount)},
		segments("write_chunks.", "a segment of a write chunk", callOf, writeSegments),
		[]Field{orNull(counted("reply_chunk", "number of segments of the reply chunk, if there is one", Number, callOf, replyCount))},
		segments("reply_chunk.", "a segment of the reply chunk", callOf, replySegments),
		[]Field{recorded(func(k *transaction.Kernel) bool { return k.Written }, counted("written_chunks", "number of write chunks in the reply", Count, replyOf, writeCount))},
		segments("written_chunks.", "a segment of a write chunk in the reply", replyOf, writeSegments),
		[]Field{orNull(counted("written_reply_chunk", "number of segments of the reply chunk in the reply", Number, replyOf, replyCount))},
		segments("written_reply_chunk.", "a segment of the reply chunk in the reply", replyOf, replySegments),
		[]Field{
			omitted(counted("reply_read_chunks", "number of read chunks in the reply (version 0)", Count, replyOf, readCount)),
			message("reply_read_chunks.position", "position of a read chunk in the reply", Number, replyOf, readPositions),
			counted("reply_read_chunks.segments", "number of segments of all read chunks in the reply", Count, replyOf, readSegmentCount),
		},
		segments("reply_read_chunks.segments.", "a segment of a read chunk in the reply", replyOf, readSegments))
}

// moved is what was moved.
func moved() []Field {
	list := of(OfPlain,
		packets("rdma_reads", "RDMA Reads for its chunks", Count, None, func(t *transaction.Transaction) uint64 { return uint64(t.Reads) }),
		packets("rdma_read_bytes", "bytes that they moved", Count, Octets, func(t *transaction.Transaction) uint64 { return t.ReadBytes }),
		packets("rdma_writes", "RDMA Writes for its chunks", Count, None, func(t *transaction.Transaction) uint64 { return uint64(t.Writes) }),
		packets("rdma_write_bytes", "bytes that they moved", Count, Octets, func(t *transaction.Transaction) uint64 { return t.WriteBytes }),
	)
	list = append(list,
		Field{Name: "call_bytes", Absent: Never, Type: Count, Unit: Octets, Doc: "size of the RPC call in bytes, chunks included",
			Recorded: func(k *transaction.Kernel) bool { return k.CallBytes },
			Uint: func(_ *Reader, v *rpc.View) (uint64, bool) {
				return v.Tx.Call.Bytes, v.Tx.Kernel == nil || v.Tx.Kernel.CallBytes
			}},
		packets("reply_bytes", "size of the RPC reply in bytes, chunks included", Count, Octets, func(t *transaction.Transaction) uint64 { return t.Reply.Bytes }),
	)
	return append(list, of(OfClean,
		packets("retransmits", "packets seen again", Count, None, func(t *transaction.Transaction) uint64 { return uint64(t.Retransmits) }),
		Field{Name: "invalidated_handle", Type: Number, Doc: "handle that the reply invalidated",
			Uint: func(_ *Reader, v *rpc.View) (uint64, bool) { return uint64(v.Tx.Reply.Handle), v.Tx.Reply.Invalidates }},
	)...)
}

// times are how long it took, and what it lost.
func times() []Field {
	list := []Field{
		{Name: "latency_ns", Absent: Null, Type: Duration, Unit: Nanoseconds, Doc: "the same as latency_ns.total", Uint: total},
		short(phase(transaction.PhaseCall, "call's first packet to its last")),
		short(phase(transaction.PhasePull, "end of the call to the last Read Response of its chunks")),
		short(phase(transaction.PhaseWait, "the part of argument_pull before the first Read Request")),
		phase(transaction.PhaseServer, "until the first RDMA Write, or the reply"),
		short(phase(transaction.PhasePush, "first RDMA Write to the end of the last")),
		short(phase(transaction.PhaseReply, "until the reply's last packet")),
		{Name: "latency_ns.total", Type: Duration, Unit: Nanoseconds, Doc: "call's first packet to the reply's last", Uint: total},
		phase(transaction.PhaseAck, "reply's last packet to its acknowledgement"),
		{Name: "path", Type: Duration, Unit: Nanoseconds, Doc: "the part of the latency when packets were on their way, from what the transport acknowledged", Uint: path},
		{Name: "data_done", Of: OfPlain, Type: Time, Doc: "last Read Response, if the requester read the result after the reply", Uint: dataDone},
		{Name: "first_sent", Of: OfClean, Type: Time, Doc: "when the call was sent first, if that was on a connection before", Uint: firstSent},
		{Name: "app_latency", Type: Duration, Unit: Nanoseconds, Doc: "first sending of the call to data_done, or to the reply's last packet", Uint: func(_ *Reader, v *rpc.View) (uint64, bool) {
			d, ok := v.Tx.AppLatency()
			return uint64(d), ok
		}},
	}
	list = append(list, of(OfClean,
		waited("credit_wait_ns", "time before the call when all credits were in use: at most so long it waited", false, func(t *transaction.Transaction) time.Duration { return t.Credits }),
		waited("slot_wait_ns", "time before the call when all slots of its session were in use: at most so long it waited", true, func(t *transaction.Transaction) time.Duration { return t.Slots }),
		lost("", "the same as lost_ns.total", totalLost),
	)...)
	var causes []string
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		list = append(list, lost("."+c.String(), lostTo[c], func(b *transaction.Blame) time.Duration { return b.Of(c) }))
		causes = append(causes, c.String())
	}
	list = append(list, lost(".total", "time lost to all of these together", totalLost))
	return append(append(list, lostPhases(causes)...),
		Field{Name: "lost.cause", Type: Symbol, Doc: "what most was lost to", Symbols: fixed(causes...), Blame: true, Symbol: worst,
			Missing: everything &^ Filter, Why: whyConvenience},
	)
}

// outcome is how it went.
func outcome() []Field {
	return []Field{
		{Name: "state", Of: OfClean, Absent: Never, Type: Symbol, Doc: "whether it was seen whole", Symbols: fixed("complete", "no_reply", "no_call", "incomplete"),
			Symbol: func(_ *Reader, v *rpc.View) string { return v.Tx.State.String() }},
		{Name: "call_delivery", Of: OfProgram, Absent: Never, Type: Symbol, Doc: "whether the call reached the responder's adapter", Symbols: transaction.Deliveries,
			Symbol: func(_ *Reader, v *rpc.View) string { return v.Tx.CallDelivery().String() }},
		{Name: "reply_delivery", Of: OfProgram, Absent: Never, Type: Symbol, Doc: "whether the reply, and the data before it, reached the requester's adapter",
			Symbols: transaction.Deliveries, Symbol: func(_ *Reader, v *rpc.View) string { return v.Tx.ReplyDelivery().String() }},
		{Name: "notes", Several: true, Of: OfClean, Absent: Never, Type: Text, Doc: "what is odd", Read: func(r *Reader, v *rpc.View) {
			for _, n := range v.Tx.Notes {
				if r.Text(n.String()); r.Stopped() {
					return
				}
			}
		}},
		{Name: "note_codes", Several: true, Of: OfClean, Absent: Never, Type: Symbol, Doc: "stable codes of the notes", Symbols: noteCodes, Read: func(r *Reader, v *rpc.View) {
			for _, n := range v.Tx.Notes {
				if r.Symbol(n.Kind.Code()); r.Stopped() {
					return
				}
			}
		}},
	}
}

// file is the file that it was about.
func file() []Field {
	list := []Field{
		{Name: "file", Type: Text, Doc: "path, else name, else handle of the file", Cost: Resolved, Bytes: fileName},
		fileBytes("filehandle", "handle of the file, or of the directory of file.name", Bytes, func(f *rpc.File) []byte { return f.Handle }),
		fileBytes("name", "name in the call", Text, func(f *rpc.File) []byte { return f.Name }),
		{Name: "file.path", Type: Text, Doc: "path, as far as it is known", Cost: Resolved, Bytes: (*Reader).Path},
		fileBytes("to", "new name, or target of a symbolic link", Text, func(f *rpc.File) []byte { return f.To }),
		fileBytes("new_filehandle", "handle that the reply gives for the name", Bytes, func(f *rpc.File) []byte { return f.Result }),
		wide(fileNumber("offset", "where the range begins", Number, Octets, func(f *rpc.File) (uint64, bool) { return f.Offset, f.HasRange })),
		wide(fileNumber("count", "bytes asked for, or sent", Number, Octets, func(f *rpc.File) (uint64, bool) { return f.Count, f.HasRange })),
		{Name: "file.stable", Type: Symbol, Doc: "how stable a WRITE is to be", Cost: Decoded,
			Symbols: fixed("UNSTABLE", "DATA_SYNC", "FILE_SYNC", "UNSTABLE4", "DATA_SYNC4", "FILE_SYNC4"),
			Symbol: func(_ *Reader, v *rpc.View) string {
				if f := v.File(); f != nil {
					return f.Stable
				}
				return ""
			}},
		fileNumber("moved", "bytes that the reply says were read or written", Number, Octets, func(f *rpc.File) (uint64, bool) { return f.Moved, f.HasMoved }),
		fileNumber("eof", "the READ reached the end of the file", Boolean, None, func(f *rpc.File) (uint64, bool) {
			if f.EOF {
				return 1, f.HasMoved
			}
			return 0, f.HasMoved
		}),
	}
	for i := range list {
		switch list[i].Name {
		case "file", "file.filehandle", "file.name", "file.path", "file.new_filehandle":
		default:
			list[i].Of = OfBare
		}
	}
	return list
}

// convenient are names for expressions.
func convenient() []Field {
	list := []Field{
		{Name: "addr", Type: Address, Doc: "client or server", Read: bothAddresses},
		{Name: "ip", Type: Address, Doc: "client or server", Read: bothAddresses},
		{Name: "host", Type: Address, Doc: "client or server", Read: bothAddresses},
		{Name: "net", Type: Address, Doc: "client or server", Read: bothAddresses},
		{Name: "op", Type: Symbol, Doc: "procedure, or an operation of a COMPOUND",
			Words: ProceduresAndOperations, Read: func(r *Reader, v *rpc.View) {
				if p := v.ProcedureName(); p != "" {
					if r.Symbol(p); r.Stopped() {
						return
					}
				}
				operationNames(r, v)
			}},
		{Name: "end", Type: Time, Doc: "last packet of the reply", Read: func(r *Reader, v *rpc.View) {
			if last := v.Tx.Reply.Last; last.Seen() {
				r.Time(last.Time)
			}
		}},
		{Name: "error", Type: Boolean, Doc: "status is a failure, or the reply was lost", Read: func(r *Reader, v *rpc.View) { r.Bool(v.Failed()) }},
		{Name: "backward", Type: Boolean, Doc: "direction is backward", Read: func(r *Reader, v *rpc.View) { r.Bool(v.Tx.Backward) }},
		{Name: "endpoint", Type: Number, Doc: "queue pair or port of either side", Read: func(r *Reader, v *rpc.View) {
			if r.Uint(endpoint(v.Tx.Client())); !r.Stopped() {
				r.Uint(endpoint(v.Tx.Server()))
			}
		}},
		{Name: "port", Type: Number, Doc: "TCP or UDP port of either side", Read: func(r *Reader, v *rpc.View) {
			for _, e := range [...]rdma.End{v.Tx.Client(), v.Tx.Server()} {
				if e.Port != 0 && !r.Stopped() {
					r.Uint(uint64(e.Port))
				}
			}
		}},
		{Name: "qp", Type: Number, Doc: "queue pair of either side", Read: func(r *Reader, v *rpc.View) {
			for _, e := range [...]rdma.End{v.Tx.Client(), v.Tx.Server()} {
				if e.QPN != 0 && !r.Stopped() {
					r.Uint(uint64(e.QPN))
				}
			}
		}},
		{Name: "handle", Type: Number, Doc: "handle of any segment, in call or reply", Read: allHandles},
		{Name: "frame", Type: Number, Doc: "call_frame or reply_frame", Read: func(r *Reader, v *rpc.View) {
			for _, m := range [...]*transaction.Message{&v.Tx.Call, &v.Tx.Reply} {
				if n, ok := frame(v, m.Last); ok && !r.Stopped() {
					r.Uint(n)
				}
			}
		}},
		{Name: "uid", Type: Number, Doc: "user of AUTH_SYS", Read: func(r *Reader, v *rpc.View) {
			if c := sys(r, v); c != nil {
				r.Uint(uint64(c.UID))
			}
		}},
		{Name: "gid", Type: Number, Doc: "groups of AUTH_SYS, the first one and the others", Read: func(r *Reader, v *rpc.View) {
			c := sys(r, v)
			if c == nil {
				return
			}
			r.Uint(uint64(c.GID))
			for i := 0; i < c.Count && !r.Stopped(); i++ {
				r.Uint(uint64(c.GIDs[i]))
			}
		}},
		{Name: "machine", Type: Text, Doc: "machine name of AUTH_SYS", Read: func(r *Reader, v *rpc.View) {
			if c := sys(r, v); c != nil {
				r.TextBytes(c.Machine)
			}
		}},
		{Name: "rpc.flavor", Type: Enum, Doc: "flavor of the call's credential", Symbols: flavorNames, Read: func(r *Reader, v *rpc.View) {
			if v.CallErr == nil {
				r.Enum(uint32(v.Call().Cred.Flavor), v.Call().Cred.Flavor.String())
			}
		}},
	}
	for i := range list {
		list[i].Missing, list[i].Why = everything&^Filter, whyConvenience
	}
	return list
}
