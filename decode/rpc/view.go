// Package rpc decodes the messages of a transaction: the RPC headers, and the arguments and results of the
// program by name.
package rpc

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// View decodes one transaction after the other into the same memory. What it
// holds is valid until the next Set, and as long as the transaction.
//
// The messages of a clean transaction (see Set) are decoded when a method asks for them. So only one goroutine at a time may use a
// View, even to read it.
type View struct {
	Tx *transaction.Transaction

	// CallErr and ReplyErr tell how far the RPC headers could be decoded; ErrNotSeen if there is no message.
	CallErr, ReplyErr error

	// Program and Procedure are nil if they are not known.
	Program   *xdr.Program
	Procedure *xdr.Procedure
	// If ArgsErr or ResultErr is set, Args or Result holds what came before the error. ArgsCut and ResultCut say that
	// the error is due to the capture, not to the message.
	ArgsErr, ResultErr error
	ArgsCut, ResultCut bool
	// ArgsUndefined and ResultUndefined say that a boolean was neither 0 nor 1, or that an enumeration had a value that its type
	// does not define. They are known once Args or Result was called.
	ArgsUndefined, ResultUndefined bool
	// ArgsLeft and ResultLeft count bytes that follow what was decoded.
	ArgsLeft, ResultLeft int

	// Names remembers file handles; it may be nil.
	Names *Names

	// Unwrap opens what RPCSEC_GSS has wrapped; it may be nil. CallOpened and ReplyOpened are its results,
	// Principal the name of the caller that created the context, if known.
	Unwrap                  Unwrapper
	CallOpened, ReplyOpened Opened
	Principal               string

	// What the methods of the same names return; pending says what of it has to be decoded first.
	call                oncrpc.Call
	reply               oncrpc.Reply
	callBody, replyBody oncrpc.Body
	args, result        xdr.Message
	pending             pending

	// projection has taken the transaction if clean is set: what it is decoded into.
	projection projection
	clean      *messages

	status   xdr.Status // the results, if they are one
	compound bool       // arguments and results are lists of operations
	gives    bool       // the results give a file handle
	file     File
	picker   picker
	ops      []Operation
	steps    []Step
	opsDone  bool
	opsMore  bool // see MoreOperations
	fileDone bool
}

// ErrNotSeen is the error of a message that was not captured.
var ErrNotSeen = errors.New("not captured")

// Set takes a transaction. If it is clean, which is for projection to say, its messages are checked now and decoded on demand. The
// messages of all others are decoded now.
func (v *View) Set(tx *transaction.Transaction) {
	b := &v.projection
	if !b.set(tx) {
		v.SetAll(tx)
		return
	}
	if v.clean == nil {
		v.setClean()
	}
	p := b.catalog.last.def
	v.Tx, v.Program, v.Procedure, v.clean = tx, p, b.Procedure, b.messages
	v.pending = pendingCall | pendingReply | pendingArgs | pendingResult
	v.ArgsLeft, v.ResultLeft = b.argsLeft, b.resultLeft
	v.ArgsUndefined, v.ResultUndefined = false, false
	v.ops, v.opsDone, v.fileDone, v.compound = v.ops[:0], !b.Compound, false, b.Compound
}

// SetAll is Set for a caller that needs all arguments and results: it decodes them now.
func (v *View) SetAll(tx *transaction.Transaction) {
	v.Tx = tx
	v.clean, v.pending = nil, 0
	v.Program, v.Procedure = nil, nil
	v.args, v.result, v.ArgsErr, v.ResultErr = nil, nil, nil, nil
	v.ArgsCut, v.ResultCut, v.ArgsLeft, v.ResultLeft = false, false, 0, 0
	v.ArgsUndefined, v.ResultUndefined = false, false
	v.opsDone, v.fileDone, v.compound = false, false, false

	if tx.Call.Seen() && !lacks(tx, &tx.Call) {
		v.CallErr = v.call.Decode(tx.Call.Payload, tx.Call.PayloadLength)
	} else {
		v.CallErr = ErrNotSeen
	}
	if tx.Reply.Seen() && !lacks(tx, &tx.Reply) && (tx.Reply.Header.Type != rpcrdma.TypeError || !tx.Reply.Transport) {
		v.ReplyErr = v.reply.Decode(tx.Reply.Payload, tx.Reply.PayloadLength)
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
	v.call.BodyInto(&v.callBody)
	v.decodeArgs(m)
	if v.ReplyErr != nil {
		v.replyBody = oncrpc.Body{}
		return
	}
	v.reply.BodyInto(v.call.Protection(), &v.replyBody)
	v.decodeResult(m)
}

// noBodies says that neither arguments nor results can be decoded.
func (v *View) noBodies() {
	v.callBody = oncrpc.Body{} // one by one: else copies of zeros are made first
	v.replyBody = oncrpc.Body{}
}

// procedure finds what the transaction calls, and the messages to decode it into; nil if that is not known.
func (v *View) procedure(tx *transaction.Transaction) *messages {
	if !tx.Named {
		return nil
	}
	p, m := v.projection.catalog.find(tx)
	if p == nil {
		return nil
	}
	v.Program = p.def
	if m == nil {
		return nil
	}
	v.Procedure, v.compound, v.gives = m.procedure, m.compound, m.gives
	if !m.compound {
		v.ops, v.opsDone = v.ops[:0], true
	}
	return m
}

// lacks reports whether the capture cut a message before its RPC header. A kernel that records a transaction never shows it.
func lacks(tx *transaction.Transaction, m *transaction.Message) bool {
	return tx.Kernel != nil || m.Transport && m.Header.Cut && len(m.Payload) == 0
}

func (v *View) decodeArgs(m *messages) {
	b := &v.callBody
	data, full := b.Data, b.Length
	if b.Kind != oncrpc.BodyPlain {
		if !readable(b, &v.CallOpened) {
			return
		}
		data, full = v.ArgsData()
	}
	r := &v.projection.body.reader
	r.Reset(data, full)
	r.StartAt(uint32(b.Offset))
	if b.Kind == oncrpc.BodyPlain && v.Tx.Call.Transport && !v.Tx.Call.Header.Plain() {
		v.projection.body.reduceCall(&v.Tx.Call.Header)
	}
	m.args.Decode(r)
	v.args, v.ArgsUndefined = m.args, r.Undefined()
	if r.Failed() {
		v.ArgsCut, v.ArgsErr = v.failure(&v.Tx.Call)
		return
	}
	v.ArgsLeft = r.Remaining()
}

func (v *View) decodeResult(m *messages) {
	b := &v.replyBody
	data, full := b.Data, b.Length
	if b.Kind != oncrpc.BodyPlain {
		if !readable(b, &v.ReplyOpened) {
			return
		}
		data, full = v.ResultData()
	}
	r := &v.projection.body.reader
	r.Reset(data, full)
	r.StartAt(uint32(b.Offset))
	if b.Kind == oncrpc.BodyPlain && v.Tx.Reply.Transport && !v.Tx.Reply.Header.Plain() {
		v.projection.body.reduceReply(&v.Tx.Reply.Header)
	}
	m.result.Decode(r)
	v.result, v.status, v.ResultUndefined = m.result, m.status, r.Undefined()
	if r.Failed() {
		v.ResultCut, v.ResultErr = v.failure(&v.Tx.Reply)
		return
	}
	v.ResultLeft = r.Remaining()
}

// failure is the reader's error, and whether it is due to the capture of the message.
func (v *View) failure(of *transaction.Message) (cut bool, err error) {
	return v.projection.body.reader.Cut() || of.Cut, clone(v.projection.body.reader.Err())
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
	if v.CallErr != nil || v.clean != nil {
		return ""
	}
	switch v.call.Protection().Kind() {
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
	if m := v.clean; m != nil {
		if !v.projection.Failed {
			return m.success
		}
		if m.status != nil {
			return v.failed(m)
		}
	}
	v.Result()
	tx := v.Tx
	if !tx.Reply.Seen() {
		return ""
	}
	if tx.Kernel != nil {
		return recordedStatus(tx)
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
	if !v.reply.Succeeded() {
		return v.reply.Status()
	}
	if v.result != nil && v.status != nil {
		code, symbol := v.status.StatusCode()
		if !v.statusRead() {
			return ""
		}
		return xdr.EnumString(code, symbol)
	}
	if v.replyBody.Kind == oncrpc.BodyPrivacy && !v.ReplyOpened.clear() || v.replyBody.Kind == oncrpc.BodyUnknown || v.replyBody.Malformed || v.CallErr != nil {
		return ""
	}
	return "SUCCESS"
}

// recordedStatus is the Status that a kernel has recorded; empty if it has none.
func recordedStatus(tx *transaction.Transaction) string {
	switch k := tx.Kernel; {
	case !k.Outcome || !tx.Named:
	case tx.Version == 2:
		return nfs2.Nfsstat(k.Status).String()
	case tx.Version == 3:
		return nfs3.Nfsstat3(k.Status).String()
	case tx.Version == 4:
		return nfs4.StatusName(k.Status)
	}
	return ""
}

// failed is the Status of a clean transaction that failed. Its results begin with the number, and most failures of a procedure are the same.
func (v *View) failed(m *messages) string {
	n := binary.BigEndian.Uint32(v.Tx.Reply.Payload[v.projection.resultAt:])
	if n != m.failure {
		v.Result()
		m.failure, m.failed = n, xdr.EnumString(v.status.StatusCode())
	}
	return m.failed
}

// Succeeded reports whether the reply was decoded as a whole, and its status is success.
func (v *View) Succeeded() bool {
	if m := v.clean; m != nil {
		return m.status != nil && !v.projection.Failed
	}
	return v.succeeded()
}

// succeeded is Succeeded for a transaction that is not clean.
func (v *View) succeeded() bool {
	if k := v.Tx.Kernel; k != nil {
		return k.Outcome && k.Status == 0
	}
	if v.result == nil || v.status == nil || v.ReplyErr != nil || v.ResultErr != nil || !v.reply.Succeeded() {
		return false
	}
	code, _ := v.status.StatusCode()
	return code == 0
}

// Unread reports whether a reply was captured that does not tell whether the call has failed: it is encrypted, or it was cut, or
// cannot be decoded.
func (v *View) Unread() bool {
	return v.Tx.Reply.Seen() && !v.Succeeded() && !v.StatusFailed() && v.Status() == ""
}

// Failed reports whether Status is a failure, or the reply did not reach the requester.
func (v *View) Failed() bool { return v.StatusFailed() || v.Tx.ReplyLost() }

// StatusFailed reports whether Status is a failure: whether the responder has done what it was asked for.
func (v *View) StatusFailed() bool {
	if v.clean != nil {
		return v.projection.Failed
	}
	return v.fails()
}

// fails is StatusFailed for a transaction that is not clean.
func (v *View) fails() bool {
	tx := v.Tx
	if !tx.Reply.Seen() {
		return false
	}
	if tx.Kernel != nil {
		return tx.Kernel.Outcome && tx.Kernel.Status != 0
	}
	if tx.Reply.Transport && tx.Reply.Header.Type == rpcrdma.TypeError {
		return true
	}
	if v.ReplyErr != nil {
		return false
	}
	if !v.reply.Succeeded() {
		return true
	}
	if v.result == nil || v.status == nil {
		return false
	}
	if !v.statusRead() {
		return false
	}
	code, _ := v.status.StatusCode()
	return code != 0
}

// statusRead reports whether results that begin with a status are there so far. If not, the status of the message is zero, as if it were success.
func (v *View) statusRead() bool {
	data, _ := v.ResultData()
	return len(data) >= 4
}

// Fabric is the fabric of the transaction's connection.
func (v *View) Fabric() rdma.Fabric { return v.Tx.Connection.Fabric }
