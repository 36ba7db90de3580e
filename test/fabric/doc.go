// Package fabric compares the findings of analyze/fabric with individually known losses: netem
// dropped the packets between two capture points, and the kernels counted them. See README.md.
package fabric

import "encoding/json"

// Truth is what is known about a capture, from the file NAME.json beside it. Frames are numbered
// from 1, as in the capture.
type Truth struct {
	Scenario string `json:"scenario"` // how it was made, in words
	Netem    string `json:"netem"`    // arguments of tc netem, in both hosts
	// Lost are the frames that netem dropped behind the capture point, Doubled those that it sent twice.
	Lost    []uint64 `json:"lost"`
	Doubled []uint64 `json:"doubled,omitempty"`
	// Dropped is what netem counted as dropped in both hosts.
	Dropped int `json:"dropped"`
	// Counters of the kernels, as differences over the time of the capture: hw_counters of rxe, nstat of the host.
	Server map[string]int64 `json:"server"`
	Client map[string]int64 `json:"client"`
}

// Parse reads a Truth.
func Parse(b []byte) (*Truth, error) {
	t := new(Truth)
	return t, json.Unmarshal(b, t)
}
