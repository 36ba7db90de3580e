package fields

import (
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// schema is the name of the format whose keys the table lists.
const schema = "rpcrdma.transaction/1"

// Why some formats lack some attributes.
const (
	whyConvenience = "another name for an attribute, or several at once: for expressions only"
	whySchema      = "the columns of a file have one schema, which is not a value"
	whyPhases      = "thirty values that nearly always are not there: ndjson has them for those who take the time apart"
	whyMembers     = "an object; filters test its members"
	whyTimeNS      = "for engines that round the timestamps of Parquet"
)

func table() []Field {
	return slices.Concat(parties(), called(), headers(), moved(), times(), outcome(), file(), convenient())
}

// parties are who took part.
func parties() []Field {
	return []Field{
		{Name: "schema", Type: Text, Doc: schema, Read: func(r *Reader, _ *rpc.View) { r.Text(schema) },
			Missing: Parquet, Why: whySchema},
		{Name: "time", Type: Time, Doc: "first packet of the call", Read: func(r *Reader, v *rpc.View) {
			r.Time(v.Tx.First().Time)
		}},
		{Name: "time_ns", Type: Number, Unit: Nanoseconds, Doc: "time in nanoseconds since 1970", Missing: Filter | NDJSON, Why: whyTimeNS,
			Read: func(r *Reader, v *rpc.View) { r.Uint(uint64(v.Tx.First().Time)) }},
		number("xid", "transaction id", Number, None, func(t *transaction.Transaction) uint64 { return uint64(t.XID) }),
		number("connection", "number of the connection, from 1", Number, None, func(t *transaction.Transaction) uint64 { return uint64(t.Connection.ID) }),
		{Name: "connection_key", Type: Text, Doc: "what identifies the connection in any input", Read: func(r *Reader, v *rpc.View) { r.Text(r.keys.Of(v.Tx.Connection)) }},
		{Name: "fabric", Type: Symbol, Doc: "what carries the connection", Symbols: fixed("rocev2", "rocev1", "infiniband", "iwarp", "tcp", "udp"),
			Read: func(r *Reader, v *rpc.View) { r.Symbol(v.Fabric().String()) }},
		{Name: "client", Type: Address, Doc: "address of the requester", Read: func(r *Reader, v *rpc.View) { r.Addr(v.Tx.Client().Addr) }},
		{Name: "server", Type: Address, Doc: "address of the responder", Read: func(r *Reader, v *rpc.View) { r.Addr(v.Tx.Server().Addr) }},
		number("client_endpoint", "queue pair or port of the requester", Number, None, func(t *transaction.Transaction) uint64 { return endpoint(t.Client()) }),
		number("server_endpoint", "queue pair or port of the responder", Number, None, func(t *transaction.Transaction) uint64 { return endpoint(t.Server()) }),
		{Name: "direction", Type: Symbol, Doc: "backward for callbacks on the same connection", Symbols: fixed("forward", "backward"),
			Read: func(r *Reader, v *rpc.View) {
				if v.Tx.Backward {
					r.Symbol("backward")
				} else {
					r.Symbol("forward")
				}
			}},
		{Name: "tunnel", Type: Group, Doc: "outermost wrapping of the packets", Missing: Filter, Why: whyMembers},
		{Name: "tunnel.type", Type: Symbol, Doc: "outermost wrapping of the packets", Symbols: tunnelTypes, Read: func(r *Reader, v *rpc.View) {
			if t := v.Tx.Connection.Tunnel; t != nil {
				r.Symbol(t.Type)
			}
		}},
		{Name: "tunnel.version", Type: Number, Doc: "version of ERSPAN", Read: tunnelVersion},
		{Name: "tunnel.id", Type: Number, Doc: "its VNI, key, session or label", Read: func(r *Reader, v *rpc.View) {
			if t := v.Tx.Connection.Tunnel; t != nil && t.HasID {
				r.Uint(uint64(t.ID))
			}
		}},
		{Name: "tunnel.outer_client", Type: Address, Doc: "address of the tunnel's end at the requester's side", Read: outer(0)},
		{Name: "tunnel.outer_server", Type: Address, Doc: "address of the tunnel's end at the responder's side", Read: outer(1)},
	}
}

// called is what was called, and with what result.
func called() []Field {
	return []Field{
		{Name: "program", Type: Enum, Doc: "RPC program", Words: Programs,
			Read: func(r *Reader, v *rpc.View) {
				if v.Tx.Named {
					name := v.ProgramName()
					if name != "" && name[0] >= '0' && name[0] <= '9' {
						name = ""
					}
					r.Enum(v.Tx.Program, name)
				}
			}},
		{Name: "version", Type: Number, Doc: "version of the program", Read: func(r *Reader, v *rpc.View) {
			if v.Tx.Named {
				r.Uint(uint64(v.Tx.Version))
			}
		}},
		{Name: "procedure", Type: Enum, Doc: "RPC procedure", Words: Procedures,
			Read: func(r *Reader, v *rpc.View) {
				if v.Tx.Named {
					name := ""
					if v.Procedure != nil || v.Tx.Procedure == 0 {
						name = v.ProcedureName()
					}
					r.Enum(v.Tx.Procedure, name)
				}
			}},
		{Name: "minor_version", Type: Number, Doc: "minor version of NFSv4", Read: func(r *Reader, v *rpc.View) {
			if n, ok := v.MinorVersion(); ok {
				r.Uint(uint64(n))
			}
		}},
		{Name: "operations", Type: Count, Doc: "number of operations of a COMPOUND", Cost: Decoded, Read: func(r *Reader, v *rpc.View) { r.Count(uint64(len(v.Steps()))) }},
		{Name: "operation", Type: Symbol, Joined: true, Doc: "the operation as listed: a procedure, or what a COMPOUND is for, such as OPEN or LOOKUP+GETATTR",
			Words: ProceduresAndOperations, Cost: Decoded, Read: listedOperation},
		{Name: "operation_group", Type: Symbol, Doc: "the operation that report, -q and rpcrdma-top group by: LOOKUP of LOOKUP+GETATTR",
			Words: ProceduresAndOperations, Cost: Decoded, Read: func(r *Reader, v *rpc.View) {
				if v.Tx.Named {
					r.Symbol(v.OperationGroup())
				}
			}},
		{Name: "operations.op", Type: Symbol, Doc: "operations of a COMPOUND", Words: Operations, Read: operationNames},
		{Name: "operations.status", Type: Enum, Doc: "their statuses", Words: Statuses, Cost: Decoded, Read: operationStatuses},
		{Name: "status", Type: Enum, Doc: "outcome: of the program, or failure of RPC or transport", Words: Statuses, Read: status},
		{Name: "gss", Type: Symbol, Doc: "how RPCSEC_GSS wraps the messages", Symbols: fixed("integrity", "privacy", "init", "unknown"),
			Read: func(r *Reader, v *rpc.View) {
				if w := v.Wrapped(); w != "" {
					r.Symbol(w)
				}
			}},
		{Name: "gss_opened", Type: Symbol, Doc: "what became of wrapped messages with --keytab", Symbols: fixed("verified", "decrypted", "prefix", "refused"),
			Read: func(r *Reader, v *rpc.View) {
				if o := v.Opening(); o != rpc.NotOpened {
					r.Symbol(o.String())
				}
			}},
		{Name: "gss_principal", Type: Text, Doc: "Kerberos principal of the caller, with --keytab", Read: func(r *Reader, v *rpc.View) {
			if v.Principal != "" {
				r.Text(v.Principal)
			}
		}},
		{Name: "call_frame", Type: Number, Doc: "last packet of the call", Read: func(r *Reader, v *rpc.View) { frame(r, v.Tx.Call.Last) }},
		{Name: "reply_frame", Type: Number, Doc: "last packet of the reply", Read: func(r *Reader, v *rpc.View) { frame(r, v.Tx.Reply.Last) }},
	}
}

// headers are what transport headers say.
func headers() []Field {
	call := message("call_type", "type of the call's transport header", Enum, callOf, messageType)
	reply := message("reply_type", "type of the reply's transport header", Enum, replyOf, messageType)
	call.Symbols, reply.Symbols = typeNames, typeNames
	return slices.Concat([]Field{
		call, reply,
		message("credits_requested", "credits that the call asks for", Number, callOf, credits),
		message("credits_granted", "credits that the reply grants", Number, replyOf, credits),
		message("read_chunks", "number of read chunks of the call", Count, callOf, readCount),
		message("read_chunks.position", "position of a read chunk in the call", Number, callOf, readPositions),
		message("read_chunks.segments", "number of segments of all read chunks", Count, callOf, readSegmentCount),
	},
		segments("read_chunks.segments.", "a segment of a read chunk", callOf, readSegments),
		[]Field{message("write_chunks", "number of write chunks of the call", Count, callOf, writeCount)},
		segments("write_chunks.", "a segment of a write chunk", callOf, writeSegments),
		[]Field{message("reply_chunk", "number of segments of the reply chunk, if there is one", Number, callOf, replyCount)},
		segments("reply_chunk.", "a segment of the reply chunk", callOf, replySegments),
		[]Field{message("written_chunks", "number of write chunks in the reply", Count, replyOf, writeCount)},
		segments("written_chunks.", "a segment of a write chunk in the reply", replyOf, writeSegments),
		[]Field{message("written_reply_chunk", "number of segments of the reply chunk in the reply", Number, replyOf, replyCount)},
		segments("written_reply_chunk.", "a segment of the reply chunk in the reply", replyOf, replySegments),
		[]Field{
			message("reply_read_chunks", "number of read chunks in the reply (version 0)", Count, replyOf, readCount),
			message("reply_read_chunks.position", "position of a read chunk in the reply", Number, replyOf, readPositions),
			message("reply_read_chunks.segments", "number of segments of all read chunks in the reply", Count, replyOf, readSegmentCount),
		},
		segments("reply_read_chunks.segments.", "a segment of a read chunk in the reply", replyOf, readSegments))
}

// moved is what was moved.
func moved() []Field {
	return []Field{
		number("rdma_reads", "RDMA Reads for its chunks", Count, None, func(t *transaction.Transaction) uint64 { return uint64(t.Reads) }),
		number("rdma_read_bytes", "bytes that they moved", Count, Octets, func(t *transaction.Transaction) uint64 { return t.ReadBytes }),
		number("rdma_writes", "RDMA Writes for its chunks", Count, None, func(t *transaction.Transaction) uint64 { return uint64(t.Writes) }),
		number("rdma_write_bytes", "bytes that they moved", Count, Octets, func(t *transaction.Transaction) uint64 { return t.WriteBytes }),
		number("call_bytes", "size of the RPC call in bytes, chunks included", Count, Octets, func(t *transaction.Transaction) uint64 { return t.Call.Bytes }),
		number("reply_bytes", "size of the RPC reply in bytes, chunks included", Count, Octets, func(t *transaction.Transaction) uint64 { return t.Reply.Bytes }),
		number("retransmits", "packets seen again", Count, None, func(t *transaction.Transaction) uint64 { return uint64(t.Retransmits) }),
		{Name: "invalidated_handle", Type: Number, Doc: "handle that the reply invalidated", Read: func(r *Reader, v *rpc.View) {
			if v.Tx.Reply.Invalidates {
				r.Uint(uint64(v.Tx.Reply.Handle))
			}
		}},
	}
}

// times are how long it took, and what it lost.
func times() []Field {
	list := []Field{
		{Name: "latency_ns", Type: Duration, Unit: Nanoseconds, Doc: "the same as latency_ns.total", Read: total},
		phase(transaction.PhaseCall, "call's first packet to its last"),
		phase(transaction.PhasePull, "end of the call to the last Read Response of its chunks"),
		phase(transaction.PhaseWait, "the part of argument_pull before the first Read Request"),
		phase(transaction.PhaseServer, "until the first RDMA Write, or the reply"),
		phase(transaction.PhasePush, "first RDMA Write to the end of the last"),
		phase(transaction.PhaseReply, "until the reply's last packet"),
		{Name: "latency_ns.total", Type: Duration, Unit: Nanoseconds, Doc: "call's first packet to the reply's last", Read: total},
		phase(transaction.PhaseAck, "reply's last packet to its acknowledgement"),
		lost("", "the same as lost_ns.total", totalLost),
	}
	var causes []string
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		list = append(list, lost("."+c.String(), lostTo[c], func(r *Reader, b *transaction.Blame) { r.Duration(b.Of(c)) }))
		causes = append(causes, c.String())
	}
	list = append(list, lost(".total", "time lost to all of these together", totalLost))
	return append(append(list, lostPhases(causes)...),
		Field{Name: "lost.cause", Type: Symbol, Doc: "what most was lost to", Symbols: fixed(causes...), Blame: true, Read: worst,
			Missing: NDJSON | Parquet, Why: whyConvenience},
		waited("credit_wait_ns", "time before the call when all credits were in use: at most so long it waited", false, func(t *transaction.Transaction) time.Duration { return t.Credits }),
		waited("slot_wait_ns", "time before the call when all slots of its session were in use: at most so long it waited", true, func(t *transaction.Transaction) time.Duration { return t.Slots }),
	)
}

// outcome is how it went.
func outcome() []Field {
	return []Field{
		{Name: "state", Type: Symbol, Doc: "whether it was seen whole", Symbols: fixed("complete", "no_reply", "no_call", "incomplete"),
			Read: func(r *Reader, v *rpc.View) { r.Symbol(v.Tx.State.String()) }},
		{Name: "call_delivery", Type: Symbol, Doc: "whether the call reached the responder's adapter", Symbols: transaction.Deliveries,
			Read: func(r *Reader, v *rpc.View) { r.Symbol(v.Tx.CallDelivery().String()) }},
		{Name: "reply_delivery", Type: Symbol, Doc: "whether the reply, and the data before it, reached the requester's adapter", Symbols: transaction.Deliveries,
			Read: func(r *Reader, v *rpc.View) { r.Symbol(v.Tx.ReplyDelivery().String()) }},
		{Name: "notes", Type: Text, Doc: "what is odd", Read: func(r *Reader, v *rpc.View) {
			for _, n := range v.Tx.Notes {
				if r.Text(n.String()); r.Stopped() {
					return
				}
			}
		}},
		{Name: "note_codes", Type: Symbol, Doc: "stable codes of the notes", Symbols: noteCodes, Read: func(r *Reader, v *rpc.View) {
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
	return []Field{
		{Name: "file", Type: Text, Doc: "path, else name, else handle of the file", Cost: Resolved, Read: fileName},
		fileField("filehandle", "handle of the file, or of the directory of file.name", Bytes, func(r *Reader, f *rpc.File) {
			if f.Handle != nil {
				r.Hex(f.Handle)
			}
		}),
		fileField("name", "name in the call", Text, func(r *Reader, f *rpc.File) {
			if f.Name != nil {
				r.TextBytes(f.Name)
			}
		}),
		{Name: "file.path", Type: Text, Doc: "path, as far as it is known", Cost: Resolved, Read: filePath},
		fileField("to", "new name, or target of a symbolic link", Text, func(r *Reader, f *rpc.File) {
			if f.To != nil {
				r.TextBytes(f.To)
			}
		}),
		fileField("new_filehandle", "handle that the reply gives for the name", Bytes, func(r *Reader, f *rpc.File) {
			if f.Result != nil {
				r.Hex(f.Result)
			}
		}),
		inBytes(fileField("offset", "where the range begins", Number, func(r *Reader, f *rpc.File) {
			if f.HasRange {
				r.Uint(f.Offset)
			}
		})),
		inBytes(fileField("count", "bytes asked for, or sent", Number, func(r *Reader, f *rpc.File) {
			if f.HasRange {
				r.Uint(f.Count)
			}
		})),
		symbols(fileField("stable", "how stable a WRITE is to be", Symbol, func(r *Reader, f *rpc.File) {
			if f.Stable != "" {
				r.Symbol(f.Stable)
			}
		}), "UNSTABLE", "DATA_SYNC", "FILE_SYNC", "UNSTABLE4", "DATA_SYNC4", "FILE_SYNC4"),
		inBytes(fileField("moved", "bytes that the reply says were read or written", Number, func(r *Reader, f *rpc.File) {
			if f.HasMoved {
				r.Uint(f.Moved)
			}
		})),
		fileField("eof", "the READ reached the end of the file", Boolean, func(r *Reader, f *rpc.File) {
			if f.HasMoved {
				r.Bool(f.EOF)
			}
		}),
	}
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
			if frame(r, v.Tx.Call.Last); !r.Stopped() {
				frame(r, v.Tx.Reply.Last)
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
		list[i].Missing, list[i].Why = NDJSON|Parquet, whyConvenience
	}
	return list
}
