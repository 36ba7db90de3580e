// Package rdma is the verbs provider over rdma-core: libibverbs and librdmacm,
// and below them any RDMA device of the Linux kernel, hardware or soft (rxe,
// siw).
//
// It is there if the program was built with the build tag verbs and cgo. Both
// libraries are loaded when the provider is first asked for, so that the
// program starts without them; Probe says what is missing.
package rdma

import "errors"

// ErrNotBuilt says that the program has no rdma-core provider in it.
var ErrNotBuilt = errors.New("rdma: this program was built without rdma-core (build it with cgo and -tags verbs; headers: Debian packages libibverbs-dev and librdmacm-dev)")

// Options of a provider.
type Options struct {
	// ReadSinkPerRequest registers the memory of each RDMA Read for that Read
	// alone. It is done for all iWARP devices, as iWARP shows the handle of a
	// Read's sink to the peer and wants it open for remote writes (RFC 5040,
	// section 5.3); elsewhere it can be asked for.
	ReadSinkPerRequest bool
}

// Report is what Probe found.
type Report struct {
	Built   bool     // the program has the provider
	Missing string   // what keeps it from working, in words; empty if nothing does
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
