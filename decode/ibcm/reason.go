package ibcm

// Reason is why a connection was rejected.
type Reason uint16

// Reasons (IBTA volume 1, table "REJ message reason codes").
const (
	ReasonNoQP                    Reason = 1
	ReasonNoEEC                   Reason = 2
	ReasonNoResources             Reason = 3
	ReasonTimeout                 Reason = 4
	ReasonUnsupported             Reason = 5
	ReasonInvalidCommID           Reason = 6
	ReasonInvalidCommInstance     Reason = 7
	ReasonInvalidServiceID        Reason = 8
	ReasonInvalidTransportType    Reason = 9
	ReasonStaleConnection         Reason = 10
	ReasonRDCNotExist             Reason = 11
	ReasonInvalidGID              Reason = 12
	ReasonInvalidLID              Reason = 13
	ReasonInvalidSL               Reason = 14
	ReasonInvalidTrafficClass     Reason = 15
	ReasonInvalidHopLimit         Reason = 16
	ReasonInvalidPacketRate       Reason = 17
	ReasonInvalidAltGID           Reason = 18
	ReasonInvalidAltLID           Reason = 19
	ReasonInvalidAltSL            Reason = 20
	ReasonInvalidAltTrafficClass  Reason = 21
	ReasonInvalidAltHopLimit      Reason = 22
	ReasonInvalidAltPacketRate    Reason = 23
	ReasonRedirect                Reason = 24
	ReasonPortRedirect            Reason = 25
	ReasonInvalidMTU              Reason = 26
	ReasonInsufficientResources   Reason = 27
	ReasonConsumerDefined         Reason = 28
	ReasonInvalidRNRRetry         Reason = 29
	ReasonDuplicateCommID         Reason = 30
	ReasonInvalidClassVersion     Reason = 31
	ReasonInvalidFlowLabel        Reason = 32
	ReasonInvalidAltFlowLabel     Reason = 33
	ReasonVendorOptionUnsupported Reason = 35
)

var reasonNames = [...]string{
	ReasonNoQP:                    "no queue pair available",
	ReasonNoEEC:                   "no end-to-end context available",
	ReasonNoResources:             "no resources available",
	ReasonTimeout:                 "timeout",
	ReasonUnsupported:             "unsupported request",
	ReasonInvalidCommID:           "invalid communication id",
	ReasonInvalidCommInstance:     "invalid communication instance",
	ReasonInvalidServiceID:        "invalid service id",
	ReasonInvalidTransportType:    "invalid transport service type",
	ReasonStaleConnection:         "stale connection",
	ReasonRDCNotExist:             "no such reliable datagram channel",
	ReasonInvalidGID:              "primary port GID rejected",
	ReasonInvalidLID:              "primary port LID rejected",
	ReasonInvalidSL:               "invalid primary service level",
	ReasonInvalidTrafficClass:     "invalid primary traffic class",
	ReasonInvalidHopLimit:         "invalid primary hop limit",
	ReasonInvalidPacketRate:       "invalid primary packet rate",
	ReasonInvalidAltGID:           "alternate port GID rejected",
	ReasonInvalidAltLID:           "alternate port LID rejected",
	ReasonInvalidAltSL:            "invalid alternate service level",
	ReasonInvalidAltTrafficClass:  "invalid alternate traffic class",
	ReasonInvalidAltHopLimit:      "invalid alternate hop limit",
	ReasonInvalidAltPacketRate:    "invalid alternate packet rate",
	ReasonRedirect:                "port and communication manager redirection",
	ReasonPortRedirect:            "port redirection",
	ReasonInvalidMTU:              "invalid path MTU",
	ReasonInsufficientResources:   "insufficient responder resources",
	ReasonConsumerDefined:         "rejected by the consumer",
	ReasonInvalidRNRRetry:         "invalid RNR retry count",
	ReasonDuplicateCommID:         "duplicate local communication id",
	ReasonInvalidClassVersion:     "invalid class version",
	ReasonInvalidFlowLabel:        "invalid primary flow label",
	ReasonInvalidAltFlowLabel:     "invalid alternate flow label",
	ReasonVendorOptionUnsupported: "vendor option not supported",
}

// String is the reason in words, or "unknown reason".
func (r Reason) String() string {
	if int(r) < len(reasonNames) && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return "unknown reason"
}
