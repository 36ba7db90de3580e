package iwarp

import (
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Error types and codes of a Terminate (RFC 5040 4.8, RFC 5041 6.2, RFC 5044 8).
const (
	typeLocal      = 0
	typeProtection = 1 // RDMAP
	typeOperation  = 2
	typeTagged     = 1 // DDP
	typeUntagged   = 2
	typeMPA        = 0

	codeSTag        = 0
	codeBounds      = 1
	codeAccess      = 2
	codeWrap        = 4 // RDMAP
	codeRDMAP       = 5
	codeOpcode      = 6
	codeStream      = 7
	codeTaggedWrap  = 3
	codeTaggedDDP   = 4
	codeQN          = 1
	codeNoBuffer    = 2
	codeMSN         = 3
	codeMO          = 4
	codeTooLong     = 5
	codeUntaggedDDP = 6
	codeCRC         = 2
	codeLength      = 3 // marker and length do not fit together
)

// failure ends a connection.
type failure struct {
	layer       iwarp.TerminateLayer
	etype, code uint8
	about       *offender

	err    error
	term   []byte       // what the peer is told
	read   bool         // the oldest Read is what failed
	status verbs.Status // of it
}

// terminate is the payload of the Terminate that says it.
func (f *failure) terminate() []byte {
	var header iwarp.ULPDU
	var read iwarp.ReadRequest
	var length uint16
	if f.about != nil && f.about.n > 0 {
		header, length = f.about.header[:f.about.n], f.about.length
		if f.about.isRead {
			read = f.about.read[:]
		}
	}
	return iwarp.AppendTerminate(nil, f.layer, f.etype, f.code, length, header, read)
}

// violation is a failure by the peer's fault, of which it is told.
func violation(layer iwarp.TerminateLayer, etype, code uint8, op verbs.Op, status verbs.Status, about *offender) *failure {
	f := &failure{layer: layer, etype: etype, code: code, about: about}
	f.term = f.terminate()
	f.err = &verbs.StatusError{Op: op, Status: status, Detail: "the peer's message: " + iwarp.Terminate(f.term).String()}
	return f
}

// protectionFailure refuses a Read Request.
func protectionFailure(why refusal, about *offender) *failure {
	return violation(iwarp.LayerRDMAP, typeProtection, uint8(why), verbs.OpRead, verbs.StatusLocalProtection, about)
}

// writeFailure refuses an RDMA Write. Access rights are RDMAP's, the rest is
// DDP's (RFC 5040 7.2).
func writeFailure(why refusal, about *offender) *failure {
	switch why {
	case refusedAccess:
		return violation(iwarp.LayerRDMAP, typeProtection, codeAccess, verbs.OpWrite, verbs.StatusLocalProtection, about)
	case refusedWrap:
		return violation(iwarp.LayerDDP, typeTagged, codeTaggedWrap, verbs.OpWrite, verbs.StatusLocalProtection, about)
	case refusedBounds:
		return violation(iwarp.LayerDDP, typeTagged, codeBounds, verbs.OpWrite, verbs.StatusLocalProtection, about)
	}
	return violation(iwarp.LayerDDP, typeTagged, codeSTag, verbs.OpWrite, verbs.StatusLocalProtection, about)
}

// told is the failure that a Terminate of the peer's means.
func told(t iwarp.Terminate) *failure {
	op, status := verbs.OpSend, verbs.StatusGeneral
	header := t.DDPHeader()
	isRead := t.ReadRequest() != nil
	switch {
	case isRead || header != nil && header.Control().Opcode() == iwarp.OpReadRequest:
		op, isRead = verbs.OpRead, true
	case header != nil && header.Control().Tagged():
		op = verbs.OpWrite
	case header != nil && header.Control().Opcode().Invalidates():
		op = verbs.OpSendInvalidate
	}
	switch layer, etype, code := t.Layer(), t.EType(), t.Code(); {
	case layer == iwarp.LayerRDMAP && etype == typeProtection:
		status = verbs.StatusRemoteAccess
		if header == nil && code != codeAccess {
			op, isRead = verbs.OpRead, true // a Write's STag is DDP's matter
		}
	case layer == iwarp.LayerRDMAP && etype == typeOperation && (code == codeRDMAP || code == codeOpcode):
		status = verbs.StatusRemoteInvalid
	case layer == iwarp.LayerRDMAP && etype == typeOperation && code == 9:
		op, status = verbs.OpSendInvalidate, verbs.StatusRemoteAccess
	case layer == iwarp.LayerDDP && etype == typeTagged && code != codeTaggedDDP:
		status = verbs.StatusRemoteAccess
		if header == nil {
			op = verbs.OpWrite
		}
	case layer == iwarp.LayerDDP && etype == typeUntagged && code == codeNoBuffer && !isRead:
		status = verbs.StatusRNRRetryExceeded
	case layer == iwarp.LayerDDP && etype != typeLocal:
		status = verbs.StatusRemoteInvalid
	case layer == iwarp.LayerRDMAP || layer == iwarp.LayerDDP:
		status = verbs.StatusRemoteOperation
	}
	return &failure{
		err:  &verbs.StatusError{Op: op, Status: status, Detail: "Terminate from the peer: " + t.String()},
		read: isRead, status: status,
	}
}
