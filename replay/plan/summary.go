package plan

// Counts are numbers by class.
type Counts struct {
	Exact       int `json:"exact"`
	Inferred    int `json:"inferred"`
	Synthesised int `json:"synthesised"`
	Impossible  int `json:"impossible"`
}

// Reason is a reason with the number of times that it holds.
type Reason struct {
	Class  Class  `json:"class"`
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Summary says what a plan holds, and what of it was not in the capture.
type Summary struct {
	Transactions int      `json:"transactions"`
	Ops          Counts   `json:"ops"` // Impossible counts transactions that are not in the plan
	Objects      Counts   `json:"objects"`
	States       Counts   `json:"states"`
	Reasons      []Reason `json:"reasons,omitempty"`
	// NotReplayed are transactions that are left out on purpose: nothing is lost.
	NotReplayed   []Reason        `json:"not_replayed,omitempty"`
	Programs      map[string]int  `json:"programs"` // ops by "nfs4.1"
	Procedures    map[string]int  `json:"procedures"`
	Roles         map[Role]int    `json:"roles"`
	Edges         map[DepKind]int `json:"edges"`
	Prepared      int             `json:"prepared"`       // objects to prepare
	PreparedBytes uint64          `json:"prepared_bytes"` // their sizes
	ReadBytes     uint64          `json:"read_bytes"`
	WriteBytes    uint64          `json:"write_bytes"`
	Modifying     int             `json:"modifying"`        // ops that may change something
	Limits        []string        `json:"limits,omitempty"` // limits that were reached
}
