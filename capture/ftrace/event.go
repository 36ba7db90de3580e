package ftrace

import (
	"bytes"
	"net/netip"
	"strings"
)

// Kind is an event that the fields of Event know. All others are Other.
type Kind uint8

// Events of sunrpc and rpcrdma.
const (
	Other Kind = iota
	// Of a client.
	Threshold     // xprtrdma_inline_thresh: a connection was set up
	ChunkRead     // xprtrdma_chunk_read: a segment of a Read chunk was registered
	ChunkWrite    // xprtrdma_chunk_write
	ChunkReply    // xprtrdma_chunk_reply
	Marshal       // xprtrdma_marshal: the transport header of a call is complete
	Reply         // xprtrdma_reply: a reply has come
	Latency       // rpc_stats_latency: the end of a call
	Granted       // xprt_get_cong: the call looks for a credit; the last time with success
	Found         // xprt_lookup_rqst: the reply was matched, on a transport
	CallbackCall  // xprtrdma_cb_call
	CallbackReply // xprtrdma_cb_reply
	// Of a server.
	Dequeued     // svc_xprt_dequeue: a thread takes a transport with work
	ReadSegment  // svcrdma_decode_rseg: of the header at hand
	WriteSegment // svcrdma_decode_wseg
	Request      // svcrdma_decode_rqst: the header at hand is decoded
	Process      // svc_process: the execution begins
	Served       // svc_stats_latency: it has ended
	Returned     // svcrdma_encode_wseg: what was written to a segment
	Operation    // nfsd_compound_status: an operation of a COMPOUND was executed
	// Of a client, again.
	Failed          // nfs_xdr_status: a reply of NFSv2 or NFSv3 has an error
	FailedOperation // nfs4_xdr_status: an operation has failed in a COMPOUND
	// Transport is no event of a kernel, but what sysfs tells of a transport of a client: its number, its type (Program), the server and its
	// own address. Counter is none either, but a counter of an RDMA device (Program, Procedure) that has grown since the last second.
	Transport
	Counter
	numKinds
)

// Level is how many events are taken: those of lower levels, too.
type Level uint8

// Levels.
const (
	Calls      Level = iota + 1 // the ends of calls, with their times
	Chunks                      // transport headers, chunks, credits, waits
	Operations                  // the operations of each COMPOUND in the server
)

// ParseLevel reads the name of a level.
func ParseLevel(s string) (Level, bool) {
	for l := Calls; l <= Operations; l++ {
		if l.String() == s {
			return l, true
		}
	}
	return 0, false
}

func (l Level) String() string { return [...]string{"", "calls", "chunks", "operations"}[l] }

// Known is an event that the fields of Event know.
type Known struct {
	Kind         Kind
	Level        Level
	System, Name string
	Only         string // what nothing else tells
}

// Events are all of them. What comes first in the life of a call stands first.
var Events = []Known{
	{Threshold, Calls, "rpcrdma", "xprtrdma_inline_thresh", "the addresses of a client's connections"},
	{Granted, Chunks, "sunrpc", "xprt_get_cong", "how long calls of a client waited for a credit"},
	{ChunkRead, Chunks, "rpcrdma", "xprtrdma_chunk_read", "the Read chunks of a client's calls"},
	{ChunkWrite, Chunks, "rpcrdma", "xprtrdma_chunk_write", "the Write chunks of a client's calls"},
	{ChunkReply, Chunks, "rpcrdma", "xprtrdma_chunk_reply", "the Reply chunks of a client's calls"},
	{Marshal, Chunks, "rpcrdma", "xprtrdma_marshal", "the calls of a client"},
	{Found, Chunks, "sunrpc", "xprt_lookup_rqst", "which server a client calls"},
	{Reply, Chunks, "rpcrdma", "xprtrdma_reply", "the replies to a client"},
	{Latency, Calls, "sunrpc", "rpc_stats_latency", "the procedure and the times of a client's calls"},
	{CallbackCall, Calls, "rpcrdma", "xprtrdma_cb_call", "callbacks to a client"},
	{CallbackReply, Calls, "rpcrdma", "xprtrdma_cb_reply", "the client's replies to callbacks"},
	{Dequeued, Chunks, "sunrpc", "svc_xprt_dequeue", "how long calls waited for a thread of the server"},
	{ReadSegment, Chunks, "rpcrdma", "svcrdma_decode_rseg", "the Read chunks of calls to the server"},
	{WriteSegment, Chunks, "rpcrdma", "svcrdma_decode_wseg", "the Write and Reply chunks of calls to the server"},
	{Request, Chunks, "rpcrdma", "svcrdma_decode_rqst", "the calls to the server"},
	{Process, Calls, "sunrpc", "svc_process", "the procedure of calls to the server, and their client"},
	{Served, Calls, "sunrpc", "svc_stats_latency", "the replies of the server"},
	{Returned, Chunks, "rpcrdma", "svcrdma_encode_wseg", "the bytes that the server returned in chunks"},
	{Operation, Operations, "nfsd", "nfsd_compound_status", "the operations of a COMPOUND in the server, and their status"},
	{Failed, Calls, "nfs", "nfs_xdr_status", "errors in replies of NFSv2 and NFSv3 to a client"},
	{FailedOperation, Calls, "nfs4", "nfs4_xdr_status", "errors in replies of NFSv4 to a client"},
}

// kinds are the events by their names.
var kinds = func() map[string]Kind {
	m := make(map[string]Kind)
	for _, k := range Events {
		m[k.Name] = k.Kind
	}
	return m
}()

// Seen is a set of fields of an Event.
type Seen uint32

// Fields of an Event.
const (
	XID        Seen = 1 << iota
	Task            // Task, Client
	Times           // Backlog, RoundTrip, Execute
	Execution       // Executed
	Waited          // Wakeup
	Credits         // Credits
	Header          // Header
	Message         // Head, Pages, Tail
	Memory          // Handle, Length, Offset
	Completion      // Queue, Completion
	Number          // Segment
	Connected       // Transport
	Outcome         // Status
	Numbered        // Operation
	Place           // Index, Count
)

// Event is one line. Name and Rest share its memory.
type Event struct {
	Time   int64  // of the traced machine's trace clock, in nanoseconds since its zero
	Thread uint32 // 0: the line does not say
	Name   []byte
	Rest   []byte // what follows the name
	Kind   Kind

	Seen         Seen   // which of the numbers below there are
	XID          uint32 // in host order, as the kernel shows it
	Task, Client uint32 // numbers of rpc_task and rpc_clnt
	// Backlog, RoundTrip, Execute and Executed, Wakeup in microseconds.
	Backlog, RoundTrip, Execute uint64
	Executed, Wakeup            uint64
	Credits, Header             uint32
	Head, Pages, Tail           uint32 // parts of an RPC message in bytes
	Handle, Length              uint32
	Offset                      uint64
	Position, Segment           uint32 // of a Read chunk; of a segment in its chunk
	Queue, Completion           uint32 // cq.id, cid
	More                        bool   // further segments of the chunk follow
	Transport                   uint32 // number of a client's transport
	Status, Operation           uint32 // of NFS; the number of an operation of NFSv4
	Grown                       uint64 // by how much a Counter has
	Index, Count                uint32 // place of an operation in its COMPOUND, from 1; how many the COMPOUND has
	Program, Procedure          []byte // as the kernel calls them: nfsv4, READ; nfsd, COMPOUND; for Request the type of the header
	Version                     uint32
	// Peer is the other end, Local this one; not valid if the line does not say. The port may be 0.
	Peer, Local netip.AddrPort
	ReadList    []byte // how the arguments travel: inline, pullup, mapped, read list, *read list
}

// Has reports whether all of the fields are there.
func (e *Event) Has(s Seen) bool { return e.Seen&s == s }

// Parse reads one line. The name of the task may hold blanks, colons and brackets, so the line is taken apart at the CPU number:
// "[000] ".
func (e *Event) Parse(line []byte) bool {
	for at := 0; ; {
		i := bytes.Index(line[at:], []byte("] "))
		if i < 0 {
			return false
		}
		i += at
		at = i + 2
		j := i - 1
		for j >= 0 && isDigit(line[j]) {
			j--
		}
		if j < 0 || j == i-1 || line[j] != '[' {
			continue
		}
		*e = Event{Thread: thread(line[:j])}
		if e.afterCPU(line[i+2:]) {
			e.Kind = kinds[string(e.Name)]
			if e.Kind != Other {
				e.fields()
			}
			return true
		}
	}
}

// thread is the number at the end of "nfsd-225   " or "nfsd 225 ".
func thread(b []byte) uint32 {
	b = bytes.TrimRight(b, " \t")
	i := len(b)
	for i > 0 && isDigit(b[i-1]) {
		i--
	}
	n, _ := decimal(b[i:])
	return uint32(n)
}

// afterCPU parses what follows the CPU number: flags, which may be missing, time, name and fields.
func (e *Event) afterCPU(rest []byte) bool {
	first, rest := word(rest)
	t, ok := parseTime(first)
	if !ok {
		first, rest = word(rest)
		if t, ok = parseTime(first); !ok {
			return false
		}
	}
	name, rest := word(rest)
	name, ok = bytes.CutSuffix(name, []byte(":"))
	if i := bytes.IndexByte(name, ':'); i >= 0 { // as perf shows it
		name = name[i+1:]
	}
	e.Time, e.Name, e.Rest = t, name, rest
	return ok && len(name) > 0
}

// fields reads what follows the name.
func (e *Event) fields() {
	if e.Kind == Latency { // all three, or none
		e.Backlog, e.RoundTrip = maxMicros, maxMicros
	}
	for rest := e.Rest; ; {
		var w []byte
		if w, rest = word(rest); len(w) == 0 {
			return
		}
		switch e.Kind {
		case ChunkRead, ChunkWrite, ChunkReply, ReadSegment, WriteSegment, Returned:
			if e.memory(w) {
				e.More = bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), []byte("(more)"))
				continue
			}
		case Threshold:
			if peer, ok := endpoint(w); ok && !e.Local.IsValid() {
				e.Local = peer
			} else if ok && !e.Peer.IsValid() {
				e.Peer = peer
			}
			continue
		}
		i := bytes.IndexAny(w, "=:")
		if i < 0 {
			continue
		}
		key, value := w[:i], w[i+1:]
		e.field(key, value)
		switch {
		case e.Kind == Marshal && string(key) == "xdr":
			rest = bytes.TrimLeft(rest, " \t")
			e.ReadList, _, _ = bytes.Cut(rest, []byte("/"))
			return
		case e.Kind == Operation && string(key) == "op": // op=2/4 OP_PUTFH status=0
			at, of, _ := bytes.Cut(value, []byte("/"))
			if e.number(0, &e.Index, at) {
				e.number(Place, &e.Count, of)
			}
			e.Procedure, rest = word(rest)
		case (e.Kind == Latency || e.Kind == Failed) && string(key) == "xid":
			e.Program, rest = word(rest)
			e.Procedure, rest = word(rest)
			e.splitProgram()
		}
	}
}

// splitProgram takes "nfsaclv3" apart.
func (e *Event) splitProgram() {
	if i := bytes.LastIndexByte(e.Program, 'v'); i > 0 {
		if n, ok := decimal(e.Program[i+1:]); ok && n < 1<<32 {
			e.Program, e.Version = e.Program[:i], uint32(n)
		}
	}
}

// field takes one field.
func (e *Event) field(key, value []byte) {
	switch string(key) {
	case "xid":
		e.number(XID, &e.XID, value)
	case "task":
		task, client, _ := bytes.Cut(value, []byte("@"))
		a, ok1 := hexadecimal(task)
		b, ok2 := hexadecimal(client)
		e.see(Task, ok1 && ok2 && a < 1<<32 && b < 1<<32)
		e.Task, e.Client = uint32(a), uint32(b)
	case "backlog":
		e.micros(0, &e.Backlog, value)
	case "rtt":
		e.micros(0, &e.RoundTrip, value)
	case "execute":
		e.micros(Times, &e.Execute, value)
	case "execute-us":
		e.micros(Execution, &e.Executed, value)
	case "wakeup-us":
		e.micros(Waited, &e.Wakeup, value)
	case "credits":
		e.number(Credits, &e.Credits, value)
	case "hdr", "hdrlen":
		e.number(Header, &e.Header, value)
	case "xdr":
		head, rest, _ := bytes.Cut(value, []byte("/"))
		pages, tail, _ := bytes.Cut(rest, []byte("/"))
		if e.number(0, &e.Head, head) && e.number(0, &e.Pages, pages) {
			e.number(Message, &e.Tail, tail)
		}
	case "pos", "position":
		e.number(0, &e.Position, value)
	case "segno":
		e.number(Number, &e.Segment, value)
	case "cq.id":
		e.number(0, &e.Queue, value)
	case "cid":
		e.number(Completion, &e.Completion, value)
	case "vers":
		e.number(0, &e.Version, value)
	case "service":
		e.Program = value
	case "proc":
		e.Procedure = value
	case "peer", "addr", "client":
		e.Peer, _ = endpoint(value)
	case "server":
		e.Local, _ = endpoint(value)
	default:
		e.outcome(key, value)
	}
}

// outcome takes a field of an event that tells how a call ended, or what of it was executed.
func (e *Event) outcome(key, value []byte) {
	switch string(key) {
	case "xprt_id":
		e.number(Connected, &e.Transport, value)
	case "error", "status": // printed as the negative number of an error, or as it is
		if e.Kind == Failed || e.Kind == FailedOperation || e.Kind == Operation {
			e.number(Outcome, &e.Status, bytes.TrimPrefix(value, []byte("-")))
		}
	case "operation":
		e.number(Numbered, &e.Operation, value)
	}
}

// memory reads "131072@0xd126803108b00000:0x00000a08": length, offset, handle.
func (e *Event) memory(w []byte) bool {
	length, rest, _ := bytes.Cut(w, []byte("@"))
	offset, handle, ok := bytes.Cut(rest, []byte(":"))
	if !ok {
		return false
	}
	n, ok1 := decimal(length)
	at, ok2 := prefixed(offset)
	h, ok3 := prefixed(handle)
	if !ok1 || !ok2 || !ok3 || n >= 1<<32 || h >= 1<<32 {
		return false
	}
	e.Length, e.Offset, e.Handle = uint32(n), at, uint32(h)
	e.Seen |= Memory
	return true
}

// number takes a number of 32 bits, with which a field is complete.
func (e *Event) number(s Seen, to *uint32, value []byte) bool {
	n, ok := prefixed(bytes.TrimRight(value, ",:"))
	if ok = ok && n < 1<<32; ok {
		*to = uint32(n)
	}
	return e.see(s, ok)
}

// maxMicros is the longest time, in microseconds, that a number of nanoseconds holds.
const maxMicros = 1 << 62 / 1000

func (e *Event) micros(s Seen, to *uint64, value []byte) {
	n, ok := decimal(value)
	if ok = ok && n < maxMicros; ok {
		*to = n
	} else {
		*to = maxMicros // Times is not there then
	}
	e.see(s, ok && (s != Times || e.Backlog < maxMicros && e.RoundTrip < maxMicros))
}

func (e *Event) see(s Seen, ok bool) bool {
	if ok {
		e.Seen |= s
	}
	return ok
}

// endpoint reads an address with or without a port, IPv6 in brackets or not.
func endpoint(b []byte) (netip.AddrPort, bool) {
	if len(b) > 64 {
		return netip.AddrPort{}, false
	}
	s := string(b)
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return netip.AddrPortFrom(a.Unmap().WithZone(""), 0), true
	}
	// peer=[192.0.2.1]:20049
	if i := strings.LastIndexByte(s, ':'); i > 0 {
		port, ok := decimal([]byte(s[i+1:]))
		a, err := netip.ParseAddr(strings.Trim(s[:i], "[]"))
		if err == nil && ok && port < 1<<16 {
			return netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port)), true
		}
	}
	return netip.AddrPort{}, false
}

func word(s []byte) (first, rest []byte) {
	s = bytes.TrimLeft(s, " \t")
	for i, c := range s {
		if c == ' ' || c == '\t' {
			return s[:i], s[i:]
		}
	}
	return s, nil
}

// parseTime reads "24.048435:", seconds with up to nine decimals.
func parseTime(s []byte) (int64, bool) {
	s, ok := bytes.CutSuffix(s, []byte(":"))
	if !ok {
		return 0, false
	}
	sec, frac, ok := bytes.Cut(s, []byte("."))
	n, ok1 := decimal(sec)
	f, ok2 := decimal(frac)
	if !ok || !ok1 || !ok2 || len(frac) > 9 || n > 1<<62/1_000_000_000 {
		return 0, false
	}
	for i := len(frac); i < 9; i++ {
		f *= 10
	}
	return int64(n)*1e9 + int64(f), true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// prefixed reads a decimal number, or a hexadecimal one after 0x.
func prefixed(b []byte) (uint64, bool) {
	if rest, ok := bytes.CutPrefix(b, []byte("0x")); ok {
		return hexadecimal(rest)
	}
	return decimal(b)
}

func decimal(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

func hexadecimal(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	for _, c := range b {
		switch {
		case isDigit(c):
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return n, true
}

// services are names of programs that differ between the kernel's servers and transactions.
var services = [...][2]string{{"nfsd", "nfs"}, {"lockd", "nlm"}, {"statd", "nsm"}, {"nfs4_cb", "nfs_cb"}}

// ProgramName gives a program that the kernel names the name that it has in transactions.
func ProgramName(kernel string) string {
	for _, s := range services {
		if s[0] == kernel {
			return s[1]
		}
	}
	return kernel
}

// ServiceName is the name that the kernel's server gives to a program.
func ServiceName(program string) string {
	for _, s := range services {
		if s[1] == program {
			return s[0]
		}
	}
	return program
}
