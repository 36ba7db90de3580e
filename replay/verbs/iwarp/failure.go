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
	codeInvalidate  = 9 // the STag cannot be invalidated
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
	term   []byte       // the Terminate for the peer
	read   bool         // it is the oldest Read that failed
	status verbs.Status // of that Read
}

// terminate returns the payload of the Terminate for the failure.
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

// violation returns the failure for a violation by the peer, which gets a Terminate.
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

// writeFailure refuses an RDMA Write. RDMAP reports access rights, DDP the rest (RFC
// 5040, section 7.2).
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

// reported returns the failure that a Terminate of the peer reports.
func reported(t iwarp.Terminate) *failure {
	op, isRead := offending(t)
	op, isRead, status := verdict(t, op, isRead)
	return &failure{
		err:  &verbs.StatusError{Op: op, Status: status, Detail: "Terminate from the peer: " + t.String()},
		read: isRead, status: status,
	}
}

// offending returns our operation whose header the Terminate contains; a Send if it
// contains none.
func offending(t iwarp.Terminate) (op verbs.Op, isRead bool) {
	header := t.DDPHeader()
	switch {
	case t.ReadRequest() != nil:
		return verbs.OpRead, true
	case header == nil:
		return verbs.OpSend, false
	case header.Control().Opcode() == iwarp.OpReadRequest:
		return verbs.OpRead, true
	case header.Control().Tagged():
		return verbs.OpWrite, false
	case header.Control().Opcode().Invalidates():
		return verbs.OpSendInvalidate, false
	}
	return verbs.OpSend, false
}

// verdict interprets layer, type and code of a Terminate for the operation (RFC 5040,
// section 4.8). Without a header they also tell which kind of operation it was.
func verdict(t iwarp.Terminate, op verbs.Op, isRead bool) (verbs.Op, bool, verbs.Status) {
	bare := t.DDPHeader() == nil
	switch etype, code := t.EType(), t.Code(); t.Layer() {
	case iwarp.LayerRDMAP:
		switch {
		case etype == typeProtection:
			if bare && code != codeAccess {
				op, isRead = verbs.OpRead, true // DDP reports the STag of a Write
			}
			return op, isRead, verbs.StatusRemoteAccess
		case etype == typeOperation && (code == codeRDMAP || code == codeOpcode):
			return op, isRead, verbs.StatusRemoteInvalid
		case etype == typeOperation && code == codeInvalidate:
			return verbs.OpSendInvalidate, isRead, verbs.StatusRemoteAccess
		}
		return op, isRead, verbs.StatusRemoteOperation
	case iwarp.LayerDDP:
		switch {
		case etype == typeTagged && code != codeTaggedDDP:
			if bare {
				op = verbs.OpWrite
			}
			return op, isRead, verbs.StatusRemoteAccess
		case etype == typeUntagged && code == codeNoBuffer && !isRead:
			return op, isRead, verbs.StatusRNRRetryExceeded
		case etype != typeLocal:
			return op, isRead, verbs.StatusRemoteInvalid
		}
		return op, isRead, verbs.StatusRemoteOperation
	}
	return op, isRead, verbs.StatusGeneral
}
