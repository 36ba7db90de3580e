package verbs

import (
	"errors"
	"fmt"
)

// Status is the outcome of a work request, named as in libibverbs.
type Status uint8

// Statuses.
const (
	StatusSuccess          Status = iota
	StatusLocalLength             // a receive buffer was too small, or a message too long
	StatusLocalQP                 // the queue pair does not support the request
	StatusLocalProtection         // memory that is not ours to use
	StatusFlushed                 // the connection failed before the request was executed
	StatusBind                    // a window could not be bound
	StatusBadResponse             // the response of the peer was invalid
	StatusRemoteInvalid           // the peer found the request invalid
	StatusRemoteAccess            // the peer refused handle, range or access
	StatusRemoteOperation         // the peer could not complete the request
	StatusRetryExceeded           // the peer did not answer
	StatusRNRRetryExceeded        // the peer had no receive posted
	StatusGeneral                 // anything else
)

var statusNames = [...]string{
	"SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR",
	"REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "GENERAL_ERR",
}

// String returns the name in libibverbs without the prefix IBV_WC_.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

var opNames = [...]string{"SEND", "SEND_WITH_INV", "RDMA_WRITE", "RDMA_READ", "LOCAL_INV", "BIND_MW", "RECV"}

// String returns the name in libibverbs.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

var stateNames = [...]string{"INIT", "RTS", "SQD", "ERR"}

// String returns the name in libibverbs.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Errors, for errors.Is. Post returns ErrQueueFull as it is.
var (
	ErrDisconnected = errors.New("verbs: disconnected")
	ErrQueueFull    = errors.New("verbs: work queue is full")
	ErrClosed       = errors.New("verbs: closed")
	ErrHandle       = errors.New("verbs: no such handle")
	ErrUnsupported  = errors.New("verbs: the provider cannot do this")
	// ErrRejected is every *RejectError.
	ErrRejected = errors.New("verbs: connection refused by the peer")
)

// StatusError is the reason of the failure of a connection.
type StatusError struct {
	Op     Op // the operation that failed, of either side
	Status Status
	Detail string // what was wrong, in the words of the fabric
}

func (e *StatusError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("verbs: %s: %s", e.Op, e.Status)
	}
	return fmt.Sprintf("verbs: %s: %s: %s", e.Op, e.Status, e.Detail)
}

// RejectError says that the peer refused a connection; errors.Is finds ErrRejected.
type RejectError struct {
	Reason      string
	PrivateData []byte
}

func (e *RejectError) Error() string { return ErrRejected.Error() + ": " + e.Reason }

// Is reports that a RejectError is ErrRejected.
func (e *RejectError) Is(target error) bool { return target == ErrRejected }
