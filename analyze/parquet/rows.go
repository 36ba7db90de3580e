package parquet

import (
	"io"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/parquet/column"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// rows are the columns of a file of transactions: those of Row.
type rows struct {
	time, timeNS, xid, connection            *column.Ints
	key, fabric, client, server              *column.Texts
	clientEndpoint, serverEndpoint           *column.Ints
	tunnel                                   tunnel
	direction, program                       *column.Texts
	version                                  *column.Ints
	procedure, operation, group              *column.Texts
	minor                                    optionalInt
	operations                               operations
	status                                   *column.Texts
	gss, opened, principal                   optionalText
	callFrame, replyFrame                    optionalInt
	callType, replyType                      *column.Texts
	requested, granted                       *column.Ints
	reads, replyReads                        readChunks
	writes, written                          ranges
	reply, writtenReply                      ranges
	rdmaReads, readBytes, rdmaWrites         *column.Ints
	writeBytes, callBytes, replyBytes, again *column.Ints
	invalidated                              optionalInt
	latency                                  group
	total, ack                               optionalInt
	lost                                     group
	creditWait, slotWait                     *column.Ints
	state, callDelivery, replyDelivery       *column.Texts
	notes, codes                             texts
	others                                   []numbers
	file                                     struct {
		handle, name, path, to, result, stable optionalText
		offset, count, moved                   optionalInt
		eof                                    optionalBool
	}
}

// numbers is the column of an attribute that is a number, or null, and is appended as the table of attributes reads it.
type numbers struct {
	optionalInt
	read func(*fields.Reader, *rpc.View) (uint64, bool)
}

// schema is made once: it takes as long as a thousand rows.
var schema = sync.OnceValue(column.SchemaOf[Row])

// newRows makes the file and its columns.
func newRows(to io.Writer, opt column.Options) (*column.File, *rows) {
	f := column.New(to, schema(), opt)
	ints := func(path string) *column.Ints { return f.Ints(path, nil) }
	strings := func(path string) *column.Texts { return f.Texts(path, nil) }
	maybeInt := func(path string) optionalInt {
		l := f.Levels()
		return optionalInt{l, f.Ints(path, l)}
	}
	maybeText := func(path string) optionalText {
		l := f.Levels()
		return optionalText{l, f.Texts(path, l)}
	}
	members := func(of string, names ...string) group {
		g := group{Levels: f.Levels()}
		for _, n := range names {
			g.list = append(g.list, f.Ints(of+"."+n, g.Levels))
		}
		return g
	}
	pieces := func(path string) ranges {
		l := f.Levels()
		return ranges{l, f.Ints(path+".handle", l), f.Ints(path+".length", l), f.Ints(path+".offset", l)}
	}
	chunks := func(path string) readChunks {
		l := f.Levels()
		return readChunks{l, f.Ints(path+".list.element.position", l), pieces(path + ".list.element.segments.list.element")}
	}
	list := func(path string) texts {
		l := f.Levels()
		return texts{l, f.Texts(path+".list.element", l)}
	}
	r := &rows{
		time: ints("time").Delta(), timeNS: ints("time_ns").Delta(), xid: ints("xid").Delta(), connection: ints("connection"),
		key: strings("connection_key"), fabric: strings("fabric"), client: strings("client"), server: strings("server"),
		clientEndpoint: ints("client_endpoint"), serverEndpoint: ints("server_endpoint"), direction: strings("direction"),
		tunnel: tunnel{
			maybeText("tunnel.type"), maybeInt("tunnel.version"), maybeInt("tunnel.id"), maybeText("tunnel.outer_client"), maybeText("tunnel.outer_server"),
		},
		program: strings("program"), version: ints("version"), procedure: strings("procedure"), operation: strings("operation"),
		group: strings("operation_group"), minor: maybeInt("minor_version"), status: strings("status"), gss: maybeText("gss"),
		opened: maybeText("gss_opened"), principal: maybeText("gss_principal"),
		callFrame: maybeInt("call_frame"), replyFrame: maybeInt("reply_frame"), callType: strings("call_type"), replyType: strings("reply_type"),
		requested: ints("credits_requested"), granted: ints("credits_granted"),
		reads: chunks("read_chunks"), writes: pieces("write_chunks.list.element.list.element"), reply: pieces("reply_chunk.list.element"),
		written: pieces("written_chunks.list.element.list.element"), writtenReply: pieces("written_reply_chunk.list.element"),
		replyReads: chunks("reply_read_chunks"), rdmaReads: ints("rdma_reads"), readBytes: ints("rdma_read_bytes"),
		rdmaWrites: ints("rdma_writes"), writeBytes: ints("rdma_write_bytes"), callBytes: ints("call_bytes"), replyBytes: ints("reply_bytes"),
		again: ints("retransmits"), invalidated: maybeInt("invalidated_handle"),
		latency: members("latency_ns", "call_transfer", "argument_pull", "pull_wait", "server", "result_push", "reply_transfer"),
		total:   maybeInt("latency_ns.total"),
		ack:     maybeInt("latency_ns.ack"),
		lost:    members("lost_ns", "receiver_not_ready", "recovery", "congestion", "read_slot", "unknown", "total"),

		creditWait: ints("credit_wait_ns"), slotWait: ints("slot_wait_ns"), state: strings("state"),
		callDelivery: strings("call_delivery"), replyDelivery: strings("reply_delivery"), notes: list("notes"), codes: list("note_codes"),
	}
	ops, statuses := f.Levels(), f.Levels()
	r.operations = operations{
		ops, f.Texts("operations.list.element.op", ops), optionalText{statuses, f.Texts("operations.list.element.status", statuses)},
	}
	r.callFrame.Delta()
	r.replyFrame.Delta()
	x := &r.file
	x.handle, x.name, x.path, x.to = maybeText("file.filehandle"), maybeText("file.name"), maybeText("file.path"), maybeText("file.to")
	x.result, x.stable = maybeText("file.new_filehandle"), maybeText("file.stable")
	x.offset, x.count, x.moved = maybeInt("file.offset"), maybeInt("file.count"), maybeInt("file.moved")
	x.handle.Hex()
	x.result.Hex()
	l := f.Levels()
	x.eof = optionalBool{l, f.Bools("file.eof", l)}
	for _, a := range fields.All() {
		if a.Uint != nil && a.In(fields.Parquet) && f.Lacks(a.Name) {
			c := maybeInt(a.Name)
			c.Delta()
			r.others = append(r.others, numbers{c, a.Uint})
		}
	}
	f.Ready()
	return f, r
}

// optionalInt is a column whose value may be null.
type optionalInt struct {
	*column.Levels
	*column.Ints
}

func (c optionalInt) add(v int64) {
	c.Value(0)
	c.Add(v)
}

func (c optionalInt) null() { c.Null(0, 0) }

// repeat appends a value n times, or null if it is not known.
func (c optionalInt) repeat(v int64, known bool, n int) {
	if !known {
		c.Nulls(n)
		return
	}
	c.Values(n)
	c.Repeat(v, n)
}

type optionalText struct {
	*column.Levels
	*column.Texts
}

func (c optionalText) add(s string) {
	c.Value(0)
	c.Add(s)
}

// addOr writes null instead of an empty string.
func (c optionalText) addOr(s string) {
	if s == "" {
		c.null()
		return
	}
	c.add(s)
}

func (c optionalText) bytes(b []byte) {
	c.Value(0)
	c.AddBytes(b)
}

func (c optionalText) null() { c.Null(0, 0) }

// repeat appends a text n times, or null if it is empty.
func (c optionalText) repeat(s string, n int) {
	if s == "" {
		c.Nulls(n)
		return
	}
	c.Values(n)
	c.Repeat(s, n)
}

// tunnel has the columns of a wrapping.
type tunnel struct {
	kind           optionalText
	version, id    optionalInt
	client, server optionalText
}

// repeat appends the wrapping of n rows; from is the client's side.
func (c *tunnel) repeat(t *rdma.Tunnel, from rdma.Side, n int) {
	if t == nil {
		t = &rdma.Tunnel{}
	}
	ends := [2]string{}
	if t.Ends[0].IsValid() {
		ends = [2]string{t.Ends[from].String(), t.Ends[from.Other()].String()}
	}
	c.kind.repeat(t.Type, n)
	c.version.repeat(int64(t.Version), t.Version != 0, n)
	c.id.repeat(int64(t.ID), t.HasID, n)
	c.client.repeat(ends[0], n)
	c.server.repeat(ends[1], n)
}

type optionalBool struct {
	*column.Levels
	*column.Bools
}

// group is columns that are null together.
type group struct {
	*column.Levels
	list []*column.Ints
}

func (g *group) null() { g.Null(0, 0) }

// operations has the columns of a COMPOUND's operations.
type operations struct {
	*column.Levels
	op     *column.Texts
	status optionalText
}

// texts is a list of strings.
type texts struct {
	*column.Levels
	*column.Texts
}

// ranges are lists of segments, or lists of such lists.
type ranges struct {
	*column.Levels
	handle, length, offset *column.Ints
}

// readChunks are lists of positions with segments.
type readChunks struct {
	*column.Levels
	position *column.Ints
	segments ranges
}
