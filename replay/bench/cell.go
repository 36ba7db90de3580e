package bench

import (
	"time"

	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Setting describes the configuration of both ends of a measurement.
type Setting struct {
	Fabric       string // "tcp", "iwarp", "rocev2", "rdma"
	Version      string // of NFS: "3", "4.0" …
	Model        string // "read-write", "read-read"; empty over TCP, as the next three
	Policy       string // of credits
	Registration string
	Inline       int // bytes
	Link         verbs.Link
	Endpoint     endpoint.Options // what the names above mean
}

// Job is a workload to measure.
type Job struct {
	// Kind is "read", "write", "randread", "randwrite", "fileop", "postmark" or
	// "iozone".
	Kind        string
	Size        int // data of a call in bytes
	Outstanding int // calls under way: 1 and the depth of read-ahead
	FileSize    int64
	Files       int // fileop, postmark
	Time        time.Duration
}

// Result is the outcome of a Job.
type Result struct {
	Setting Setting `json:"-"`

	Fabric       string `json:"fabric"`
	Version      string `json:"nfs"`
	Model        string `json:"model,omitempty"`
	Policy       string `json:"credits,omitempty"`
	Registration string `json:"registration,omitempty"`
	Inline       int    `json:"inline,omitempty"`

	Job         string        `json:"job"`
	Size        int           `json:"size"`
	Outstanding int           `json:"outstanding"`
	Calls       int           `json:"calls"`
	Bytes       uint64        `json:"bytes"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	P50         time.Duration `json:"p50_ns"`
	P99         time.Duration `json:"p99_ns"`
	// ClientCPU and ServerCPU are the processor times of the two processes, user
	// and system. ServerCPU is negative if it is not known.
	ClientCPU time.Duration `json:"client_cpu_ns"`
	ServerCPU time.Duration `json:"server_cpu_ns"`
	Err       string        `json:"error,omitempty"`
	// Rounds is the number of rounds if there were several; the result is the median round. Spread is the difference between the
	// fastest and the slowest round, as a fraction of the median calls a second.
	Rounds int     `json:"rounds,omitempty"`
	Spread float64 `json:"spread,omitempty"`
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
