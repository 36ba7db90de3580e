// Package rpc decodes the messages of a transaction: the RPC headers, and the arguments and results of the
// program by name.
package rpc

import (
	"errors"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// View decodes one transaction after the other into the same memory. What it
// holds is valid until the next Set, and as long as the transaction.
type View struct {
	Tx *transaction.Transaction

	// Call and Reply are the RPC headers. CallErr and ReplyErr tell how far
	// they could be decoded; ErrNotSeen if there is no message.
	Call              oncrpc.Call
	Reply             oncrpc.Reply
	CallErr, ReplyErr error
	// CallBody and ReplyBody delimit arguments and results.
	CallBody, ReplyBody oncrpc.Body

	// Program and Procedure are nil if they are not known.
	Program   *xdr.Program
	Procedure *xdr.Procedure
	// Args and Result are nil if they could not be decoded at all: not seen,
	// encrypted, or of an unknown procedure. If ArgsErr or ResultErr is set,
	// they hold what came before the error. ArgsCut and ResultCut say that
	// the error is due to the capture, not to the message.
	Args, Result       xdr.Message
	ArgsErr, ResultErr error
	ArgsCut, ResultCut bool
	// ArgsLeft and ResultLeft count bytes that follow what was decoded.
	ArgsLeft, ResultLeft int

	// Names remembers file handles; it may be nil.
	Names *Names

	// Unwrap opens what RPCSEC_GSS has wrapped; it may be nil. CallOpened and ReplyOpened are its results,
	// Principal the name of the caller that created the context, if known.
	Unwrap                  Unwrapper
	CallOpened, ReplyOpened Opened
	Principal               string

	status   xdr.Status // Result, if it is one
	compound bool       // Args and Result are lists of operations
	programs map[uint64]*program
	last     *program
	reader   xdr.Reader
	reduced  []xdr.Reduced
	file     File
	picker   picker
	// Scratch of File and Learn.
	trail    ops.Trail
	act      ops.Act
	outcome  ops.Outcome
	ops      []Operation
	opsDone  bool
	fileDone bool
}

// ErrNotSeen is the error of a message that was not captured.
var ErrNotSeen = errors.New("not captured")

// program keeps the messages that a program's procedures are decoded into.
type program struct {
	key   uint64
	def   *xdr.Program
	procs []messages
}

// messages holds what the arguments and results of a procedure are decoded into. It is made when the procedure is first seen.
type messages struct {
	procedure    *xdr.Procedure
	args, result xdr.Message
	status       xdr.Status // result, if it holds one
	compound     bool       // both are lists of operations
}

// Set decodes a transaction.
func (v *View) Set(tx *transaction.Transaction) {
	v.Tx = tx
	v.Program, v.Procedure = nil, nil
	v.Args, v.Result, v.ArgsErr, v.ResultErr = nil, nil, nil, nil
	v.ArgsCut, v.ResultCut, v.ArgsLeft, v.ResultLeft = false, false, 0, 0
	v.opsDone, v.fileDone, v.compound = false, false, false

	if tx.Call.Seen() && !lacks(&tx.Call) {
		v.CallErr = v.Call.Decode(tx.Call.Payload, tx.Call.PayloadLength)
	} else {
		v.CallErr = ErrNotSeen
	}
	if tx.Reply.Seen() && !lacks(&tx.Reply) && (tx.Reply.Header.Type != rpcrdma.TypeError || !tx.Reply.Transport) {
		v.ReplyErr = v.Reply.Decode(tx.Reply.Payload, tx.Reply.PayloadLength)
	} else {
		v.ReplyErr = ErrNotSeen
	}
	if v.opens() {
		v.unwrap()
	}
	m := v.procedure(tx)
	if m == nil || v.CallErr != nil {
		v.noBodies()
		return
	}
	v.Call.BodyInto(&v.CallBody)
	v.decodeArgs(m)
	if v.ReplyErr != nil {
		v.ReplyBody = oncrpc.Body{}
		return
	}
	v.Reply.BodyInto(v.Call.Protection(), &v.ReplyBody)
	v.decodeResult(m)
}

// noBodies says that neither arguments nor results can be decoded.
func (v *View) noBodies() {
	v.CallBody = oncrpc.Body{} // one by one: else copies of zeros are made first
	v.ReplyBody = oncrpc.Body{}
}

// procedure finds what the transaction calls, and the messages to decode it into; nil if that is not known.
func (v *View) procedure(tx *transaction.Transaction) *messages {
	if !tx.Named {
		return nil
	}
	p := v.last
	if p == nil || p.key != programKey(tx.Program, tx.Version) {
		if p = v.program(tx.Program, tx.Version); p == nil {
			return nil
		}
	}
	if uint64(tx.Procedure) >= uint64(len(p.procs)) {
		v.Program = p.def
		return nil
	}
	m := &p.procs[tx.Procedure]
	if m.args == nil && !m.make(p.def.Procedure(tx.Procedure)) {
		v.Program = p.def
		return nil
	}
	v.Program, v.Procedure, v.compound = p.def, m.procedure, m.compound
	if !m.compound {
		v.ops, v.opsDone = v.ops[:0], true
	}
	return m
}

// make makes the messages of a procedure; nil is none.
func (m *messages) make(p *xdr.Procedure) bool {
	if p == nil {
		return false
	}
	m.procedure, m.args, m.result = p, p.NewArgs(), p.NewResult()
	m.status, _ = m.result.(xdr.Status)
	switch m.args.(type) {
	case *nfs4.CompoundArgs, *nfs4.CbCompoundArgs:
		m.compound = true
	}
	return true
}

func programKey(number, version uint32) uint64 { return uint64(number)<<32 | uint64(version) }

// lacks reports whether the capture cut a message before its RPC header.
func lacks(m *transaction.Message) bool {
	return m.Transport && m.Header.Cut && len(m.Payload) == 0
}

func (v *View) program(number, version uint32) *program {
	key := programKey(number, version)
	p, ok := v.programs[key]
	if !ok {
		def := nfs.Lookup(number, version)
		if def == nil && number >= nfs4.NFS4_CALLBACK && number < 0x60000000 {
			// A callback program: the client takes a transient number.
			def = nfs.Lookup(nfs4.NFS4_CALLBACK, version)
		}
		if v.programs == nil {
			v.programs = make(map[uint64]*program)
		}
		if len(v.programs) >= maxPrograms {
			clear(v.programs)
		}
		if def != nil {
			p = &program{key: key, def: def, procs: make([]messages, len(def.Procedures))}
		}
		v.programs[key] = p
	}
	if p != nil {
		v.last = p
	}
	return p
}

// maxPrograms bounds how many program numbers are remembered.
const maxPrograms = 256

func (v *View) decodeArgs(m *messages) {
	b := &v.CallBody
	data, full := b.Data, b.Length
	if b.Kind != oncrpc.BodyPlain {
		if !readable(b, &v.CallOpened) {
			return
		}
		data, full = v.argsData()
	}
	r := &v.reader
	r.Reset(data, full)
	r.StartAt(uint32(b.Offset))
	if b.Kind == oncrpc.BodyPlain && v.Tx.Call.Transport && !v.Tx.Call.Header.Plain() {
		v.reduceCall(&v.Tx.Call.Header)
	}
	m.args.Decode(r)
	v.Args = m.args
	if r.Failed() {
		v.ArgsCut, v.ArgsErr = v.failure(&v.Tx.Call)
		return
	}
	v.ArgsLeft = r.Remaining()
}

func (v *View) decodeResult(m *messages) {
	b := &v.ReplyBody
	data, full := b.Data, b.Length
	if b.Kind != oncrpc.BodyPlain {
		if !readable(b, &v.ReplyOpened) {
			return
		}
		data, full = v.resultData()
	}
	r := &v.reader
	r.Reset(data, full)
	r.StartAt(uint32(b.Offset))
	if b.Kind == oncrpc.BodyPlain && v.Tx.Reply.Transport && !v.Tx.Reply.Header.Plain() {
		v.reduceReply(&v.Tx.Reply.Header)
	}
	m.result.Decode(r)
	v.Result, v.status = m.result, m.status
	if r.Failed() {
		v.ResultCut, v.ResultErr = v.failure(&v.Tx.Reply)
		return
	}
	v.ResultLeft = r.Remaining()
}

// reduceCall tells the reader which data items of the arguments are in chunks, reduceReply which of the results.
func (v *View) reduceCall(h *rpcrdma.Header) {
	v.reduced = h.ReducedCall(v.reduced[:0])
	v.reader.ReduceCall(v.reduced)
}

func (v *View) reduceReply(h *rpcrdma.Header) {
	if len(h.Reads) > 0 { // the read-read model
		v.reduceCall(h)
		return
	}
	v.reduced = h.ReducedReply(v.reduced[:0])
	v.reader.ReduceReply(v.reduced)
}

// failure is the reader's error, and whether it is due to the capture of the message.
func (v *View) failure(of *transaction.Message) (cut bool, err error) {
	return v.reader.Cut() || of.Cut, clone(v.reader.Err())
}

// readable reports whether a body is arguments or results in the clear, or was
// decrypted.
func readable(b *oncrpc.Body, o *Opened) bool {
	return (b.Kind == oncrpc.BodyPlain || b.Kind == oncrpc.BodyIntegrity || b.Kind == oncrpc.BodyPrivacy && o.clear()) && !b.Malformed
}

// clone copies an error that belongs to the Reader.
func clone(err error) error {
	var e *xdr.Error
	if errors.As(err, &e) {
		c := *e
		return &c
	}
	return err
}

// ProgramName is the program's name, or its number; empty if unknown.
func (v *View) ProgramName() string {
	if !v.Tx.Named {
		return ""
	}
	if v.Program != nil {
		return v.Program.Name
	}
	if name := nfs.Name(v.Tx.Program, v.Tx.Version); name != "" {
		return name
	}
	return strconv.FormatUint(uint64(v.Tx.Program), 10)
}

// ProcedureName is the procedure's name, or its number; empty if unknown.
func (v *View) ProcedureName() string {
	if !v.Tx.Named {
		return ""
	}
	if v.Procedure != nil {
		return v.Procedure.Name
	}
	if v.Tx.Procedure == 0 {
		return "NULL" // of every program (RFC 5531, section 12.1)
	}
	return strconv.FormatUint(uint64(v.Tx.Procedure), 10)
}

// Wrapped names how RPCSEC_GSS wraps arguments and results: "integrity" (they can
// be read), "privacy" (only with the key, see Opening), "init" (tokens of a
// context's creation), "unknown"; empty if nothing is wrapped.
func (v *View) Wrapped() string {
	if v.CallErr != nil {
		return ""
	}
	switch v.Call.Protection().Kind() {
	case oncrpc.BodyIntegrity:
		return "integrity"
	case oncrpc.BodyPrivacy:
		return "privacy"
	case oncrpc.BodyInit:
		return "init"
	case oncrpc.BodyUnknown:
		return "unknown"
	}
	return ""
}

// Status is the outcome by name: that of the program if the RPC was executed
// and its status could be read, the RPC layer's or the transport's failure
// otherwise. It is empty if there is no reply, or if the reply says nothing
// (an encrypted result).
func (v *View) Status() string {
	tx := v.Tx
	if !tx.Reply.Seen() {
		return ""
	}
	if tx.Reply.Transport && tx.Reply.Header.Type == rpcrdma.TypeError {
		h := &tx.Reply.Header
		if n := h.Error.Name(h.Version); n != "" {
			return n
		}
		return "RDMA_ERROR"
	}
	if v.ReplyErr != nil {
		return ""
	}
	if !v.Reply.Succeeded() {
		return v.Reply.Status()
	}
	if v.Result != nil && v.status != nil {
		code, symbol := v.status.StatusCode()
		if data, _ := v.resultData(); v.ResultErr != nil && len(data) < 4 {
			return ""
		}
		return xdr.EnumString(code, symbol)
	}
	if v.ReplyBody.Kind == oncrpc.BodyPrivacy && !v.ReplyOpened.clear() || v.ReplyBody.Kind == oncrpc.BodyUnknown || v.CallErr != nil {
		return ""
	}
	return "SUCCESS"
}

// Succeeded reports whether the reply was decoded as a whole, and its status is success.
func (v *View) Succeeded() bool {
	if v.Result == nil || v.status == nil || v.ReplyErr != nil || v.ResultErr != nil || !v.Reply.Succeeded() {
		return false
	}
	code, _ := v.status.StatusCode()
	return code == 0
}

// Failed reports whether Status is a failure.
func (v *View) Failed() bool {
	tx := v.Tx
	if !tx.Reply.Seen() {
		return false
	}
	if tx.Reply.Transport && tx.Reply.Header.Type == rpcrdma.TypeError {
		return true
	}
	if v.ReplyErr != nil {
		return false
	}
	if !v.Reply.Succeeded() {
		return true
	}
	if v.Result == nil || v.status == nil {
		return false
	}
	if data, _ := v.resultData(); len(data) < 4 {
		return false
	}
	code, _ := v.status.StatusCode()
	return code != 0
}

// Fabric is the fabric of the transaction's connection.
func (v *View) Fabric() rdma.Fabric { return v.Tx.Connection.Fabric }
