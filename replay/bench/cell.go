package bench

import (
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Setting describes the configuration of both ends of a measurement. What TCP does not have is empty there.
type Setting struct {
	Fabric       string `json:"fabric"` // "tcp", "iwarp", "rocev2", "rdma"
	Version      string `json:"nfs"`    // "3", "4.0" …
	Model        string `json:"model,omitempty"`
	Policy       string `json:"credits,omitempty"`
	Registration string `json:"registration,omitempty"`
	Inline       int    `json:"inline,omitempty"`          // bytes
	MinChunk     int    `json:"min_chunk,omitempty"`       // bytes; 0: chunks are chosen as Linux does
	MTU          int    `json:"mtu,omitempty"`             // payload of a packet in bytes; 0: the largest
	Credits      uint32 `json:"credits_granted,omitempty"` // that a client asks for and the server grants; 0: the defaults
	Buffers      uint32 `json:"buffers,omitempty"`         // receives of the server for all clients, under the policy dynamic; 0: the default
	Clients      int    `json:"clients,omitempty"`         // connections; 0: one
	// ClientFactor and ServerFactor are the factors of the policy dynamic; 0: the default.
	ClientFactor float64 `json:"client_factor,omitempty"`
	ServerFactor float64 `json:"server_factor,omitempty"`

	Link     verbs.Link       `json:"-"`
	Endpoint endpoint.Options `json:"-"` // what the names above mean
}

// Job is a workload to measure.
type Job struct {
	// Kind is "read", "write", "randread", "randwrite", "fileop", "postmark" or
	// "iozone".
	Kind        string
	Size        int // data of a call in bytes
	Outstanding int // calls in flight on each connection: 1 and the depth of read-ahead
	FileSize    int64
	Files       int // fileop, postmark
	Time        time.Duration
}

// Result is the outcome of a Job.
type Result struct {
	Setting

	Job         string        `json:"job"`
	Size        int           `json:"size"`
	Outstanding int           `json:"outstanding"`
	Calls       int           `json:"calls"`
	Bytes       uint64        `json:"bytes"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	P50         time.Duration `json:"p50_ns"`
	P99         time.Duration `json:"p99_ns"`
	// ClientCPU and ServerCPU are the processor times of the two processes, user
	// and system; negative if they are not known.
	ClientCPU time.Duration `json:"client_cpu_ns"`
	ServerCPU time.Duration `json:"server_cpu_ns"`
	Err       string        `json:"error,omitempty"`
	// Rounds is the number of rounds if there were several; the result is the median round. Spread is the difference between the
	// fastest and the slowest round, as a fraction of the median calls a second.
	Rounds int     `json:"rounds,omitempty"`
	Spread float64 `json:"spread,omitempty"`
	// Placed are the bytes that RDMA placed, in memory that was offered in Segments segments; the rest of Bytes was copied
	// to and from Sends. Zero over TCP.
	Placed   uint64 `json:"placed_bytes,omitempty"`
	Segments uint64 `json:"segments,omitempty"`
	// Waited is how long the calls waited in all before they were sent, above all for a credit. Zero over TCP.
	Waited time.Duration `json:"waited_ns,omitempty"`

	took []time.Duration // latencies of the calls or operations
}

// percentiles finds P50 and P99.
func (r *Result) percentiles() {
	slices.Sort(r.took)
	if n := len(r.took); n > 0 {
		r.P50, r.P99 = r.took[(n-1)/2], r.took[(n-1)*99/100]
	}
}

// Copied returns the share of the data that was not placed by RDMA; negative over TCP.
func (r *Result) Copied() float64 {
	if r.Fabric == "tcp" || r.Bytes == 0 {
		return -1
	}
	return 1 - min(1, float64(r.Placed)/float64(r.Bytes))
}

// Rate returns the throughput in bytes per second.
func (r *Result) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Bytes) / r.Elapsed.Seconds()
}

// PerSecond returns the calls, or operations of the workload, per second.
func (r *Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Calls) / r.Elapsed.Seconds()
}

// CPUPerByte returns the processor time of one side in nanoseconds per byte; negative
// if it is not known.
func (r *Result) CPUPerByte(server bool) float64 {
	t := r.ClientCPU
	if server {
		t = r.ServerCPU
	}
	if t < 0 || r.Bytes == 0 {
		return -1
	}
	return float64(t) / float64(r.Bytes)
}
