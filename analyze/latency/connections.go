package latency

import "time"

// Connection is what is known about a connection: how it was set up, what it carried, and how many calls were
// in flight.
type Connection struct {
	Connection int       `json:"connection"`
	Tap        string    `json:"tap,omitempty"` // of a fleet
	Key        string    `json:"connection_key,omitempty"`
	Fabric     string    `json:"fabric"`
	Client     Endpoint  `json:"client"`
	Server     Endpoint  `json:"server"`
	First      time.Time `json:"first_time"`
	Last       time.Time `json:"last_time"`
	State      string    `json:"state"` // open, closed, rejected, connecting, established
	Ending     string    `json:"end"`   // why it ended; empty if it is open or the reason is unknown
	MTU        uint32    `json:"mtu"`   // 0 if unknown

	// InlineCall and InlineReply are the inline thresholds client to server and
	// server to client; 0 if the setup was not captured.
	InlineCall  uint32 `json:"inline_call"`
	InlineReply uint32 `json:"inline_reply"`
	// Depth is how many RDMA Reads the server may have in flight: the smaller of its initiator depth and the
	// client's responder resources; -1 if unknown.
	Depth int `json:"read_depth"`

	Forward  *Flow  `json:"forward"`  // calls of the client; null without any
	Backward *Flow  `json:"backward"` // calls of the server
	Reads    *Reads `json:"reads"`    // RDMA Reads of the server; null without any

	Remarks []Remark `json:"remarks"`
}

// Endpoint is one end of a connection.
type Endpoint struct {
	Address     string     `json:"address"`
	Endpoint    uint32     `json:"endpoint"` // queue pair or port
	Setup       *SetupInfo `json:"setup"`    // null if not captured
	Packets     uint64     `json:"packets"`
	Bytes       uint64     `json:"bytes"`
	Retransmits uint64     `json:"retransmits"`
	NAKs        uint64     `json:"naks"`
	RNRs        uint64     `json:"rnr_naks"`
	CNPs        uint64     `json:"cnps"`
	ECN         uint64     `json:"ecn_marked"`
	Gaps        uint64     `json:"gaps"`
	BadCRC      uint64     `json:"bad_crc"`
}

// SetupInfo is what an end announced during connection setup.
type SetupInfo struct {
	ResponderDepth uint16 `json:"responder_depth"`
	InitiatorDepth uint16 `json:"initiator_depth"`
	// RoCE and InfiniBand.
	RetryCount    uint8 `json:"retry_count"`
	RNRRetryCount uint8 `json:"rnr_retry_count"`
	AckTimeout    int64 `json:"ack_timeout_ns"` // 0: none
	// iWARP.
	MPARevision uint8 `json:"mpa_revision"`
	Markers     bool  `json:"markers"`
	CRC         bool  `json:"crc"`
	// RFC 8797; zero without private data.
	Private          bool   `json:"private_data"`
	PrivateCut       bool   `json:"private_cut,omitempty"` // the capture does not have it
	SendSize         uint32 `json:"send_size"`
	ReceiveSize      uint32 `json:"receive_size"`
	RemoteInvalidate bool   `json:"remote_invalidate"`
}

// Flow is how many calls of one direction were in flight. Unanswered calls do not count, since it is unknown
// when they ended.
type Flow struct {
	Most       int     `json:"in_flight_max"`
	Mean       float64 `json:"in_flight_mean"`
	Busy       float64 `json:"busy"` // share of the time with a call in flight
	Levels     []Level `json:"levels"`
	Unanswered uint64  `json:"unanswered"`
	// Requested and Granted are zero without transport headers.
	Requested Credits `json:"credits_requested"`
	Granted   Credits `json:"credits_granted"`
	// AtLimit is the time during which at least as many calls were in flight as the previous reply had
	// granted; Known is the time since the first grant.
	AtLimit int64 `json:"at_limit_ns"`
	Known   int64 `json:"known_ns"`
	// LargestCall and LargestReply say how much of a receive buffer messages fill: the transport header, and what is inline.
	LargestCall  int `json:"largest_call_bytes"`
	LargestReply int `json:"largest_reply_bytes"`
}

// Level is the time spent with N in flight. The last level may include larger numbers.
type Level struct {
	N    int   `json:"n"`
	Time int64 `json:"time_ns"`
}

// Credits are the values of one credit field.
type Credits struct {
	Min     uint32 `json:"min"`
	Max     uint32 `json:"max"`
	Last    uint32 `json:"last"`
	Changes uint64 `json:"changes"`
}

// Reads is how many RDMA Reads of the server were in flight, from the Read
// Request to the last packet of the response.
type Reads struct {
	Most    int     `json:"in_flight_max"`
	Mean    float64 `json:"in_flight_mean"`
	Busy    float64 `json:"busy"`
	Levels  []Level `json:"levels"`
	AtLimit int64   `json:"at_limit_ns"` // at the negotiated depth; 0 if unknown
}

// Remark is an observation about a connection that deserves attention.
type Remark struct {
	Level string `json:"level"` // "info" or "warning"
	Text  string `json:"text"`
}
