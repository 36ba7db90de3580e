// Package rdma is the verbs provider over rdma-core: libibverbs and librdmacm,
// and below them any RDMA device of the Linux kernel, hardware or soft (rxe,
// siw).
//
// It needs the build tag verbs and cgo. Both libraries are loaded when the provider is
// first used, so that the program starts without them; Probe reports what is missing.
package rdma

import "errors"

// ErrNotBuilt says that the program was built without this provider.
var ErrNotBuilt = errors.New("rdma: this program was built without rdma-core (build it with cgo and -tags verbs; headers: Debian packages libibverbs-dev and librdmacm-dev)")

// Options of a provider.
type Options struct {
	// ReadSinkPerRequest registers the sink of each RDMA Read for that Read alone.
	// iWARP devices always do so, since iWARP shows the handle of the sink to the peer
	// and requires it to be open for remote writes (RFC 5040, section 5.3).
	ReadSinkPerRequest bool
}

// Report is the result of Probe.
type Report struct {
	Built   bool     // the program has the provider
	Missing string   // why it does not work, in words; empty if it does
	Devices []Device // that the connection manager can use
}

// Device is an RDMA device.
type Device struct {
	Name      string   // "mlx5_0", "rxe0"
	Fabric    string   // "rocev2", "iwarp", "infiniband"
	Netdevs   []string // network interfaces it is bound to
	Active    bool     // its port is up
	MTU       int      // bytes, of its port
	Windows   bool     // has type 2 memory windows
	MaxReads  int
	MaxSGE    int
	MaxReadSG int
	Vendor    uint32 // IEEE number
	// MaxMessage is the largest message in bytes.
	MaxMessage uint64
}
