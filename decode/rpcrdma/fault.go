package rpcrdma

import "github.com/rpcrdma/toolkit/decode/xdr"

// Fault is why a Send is not a message, though it was sent where one is expected.
type Fault uint8

// Faults.
const (
	NoFault          Fault = iota
	FaultShort             // the Send ends within its header
	FaultVersion           // rdma_vers is no version that is known
	FaultType              // rdma_proc or rdma_htype is not a message type of the version
	FaultList              // a list has neither 0 nor 1 where it says whether an entry follows
	FaultCount             // a count exceeds what the rest of the Send can hold
	FaultErrorCode         // rdma_err is no error code of the version
	FaultContradicts       // the header can be decoded, but its parts, or it and the RPC message, contradict each other
	Faults                 // how many there are, NoFault included
)

var faultCodes = [Faults]string{"", "short", "version", "type", "list", "count", "error_code", "contradicts"}

var faultTexts = [Faults]string{
	"", "the Send ends within the header", "unknown version", "unknown message type", "list discriminator neither 0 nor 1",
	"count larger than the Send", "unknown error code", "its parts contradict each other, or no RPC message follows as announced",
}

// Code names the fault in JSON and in metrics; empty if there is none.
func (f Fault) Code() string {
	if f < Faults {
		return faultCodes[f]
	}
	return ""
}

// String is the fault in plain English; empty if there is none.
func (f Fault) String() string {
	if f < Faults {
		return faultTexts[f]
	}
	return ""
}

// Fault says what is wrong with the header that was decoded last, if it was not accepted as a message: see Plausible. The offset is
// in bytes from the start of the Send. There is no fault if the capture holds too little of the Send to tell.
func (h *Header) Fault() (f Fault, offset int) {
	e := &h.err
	switch {
	case h.Cut:
		return NoFault, 0
	case e.Kind == xdr.Short:
		return FaultShort, e.Offset
	case e.Kind == xdr.Range:
		return FaultCount, e.Offset
	case e.Kind == xdr.Value && e.Offset == 4:
		return FaultVersion, e.Offset
	case e.Kind == xdr.Value && e.Offset == typeOffset(h.Version):
		return FaultType, e.Offset
	case e.Kind == xdr.Value && h.Type == TypeError:
		return FaultErrorCode, e.Offset
	case e.Kind == xdr.Value:
		return FaultList, e.Offset
	case h.Type == TypeError:
		return h.errorFault()
	case len(h.Payload) < min(h.PayloadLength, 8):
		return NoFault, 0
	}
	return FaultContradicts, h.Length
}

// errorFault says why an RDMA_ERROR that can be decoded is not believed: see plausibleError.
func (h *Header) errorFault() (f Fault, offset int) {
	const low, high = fixedLength + 4, fixedLength + 8
	switch {
	case h.Error == ErrVers && h.Low > h.High:
		return FaultContradicts, low
	case h.Error == ErrVers && h.High >= maxVersion:
		return FaultVersion, high
	case h.Error == ErrVers && h.Version >= maxEchoed, h.Error != ErrVers && h.Version != Version1:
		return FaultVersion, 4
	}
	return FaultContradicts, h.Length
}

// typeOffset is where the message type is in the header. Version 0 has no credits before it.
func typeOffset(version uint32) int {
	if version == Version0 {
		return 8
	}
	return 12
}
