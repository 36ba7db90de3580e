//go:build verbs && cgo && linux

package device

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/verbstest"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/rdma"
)

// own is the address of this machine's RDMA device.
func own(t testing.TB) netip.AddrPort {
	t.Helper()
	a, err := netip.ParseAddr(os.Getenv("OWN"))
	if err != nil {
		t.Fatalf("the address of the RDMA device is to be in OWN: %v", err)
	}
	return netip.AddrPortFrom(a, 0)
}

func provider(o rdma.Options) func(testing.TB) verbs.Provider {
	return func(t testing.TB) verbs.Provider {
		t.Helper()
		p, err := rdma.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

func options(t testing.TB, o rdma.Options) verbstest.Options {
	return verbstest.Options{New: provider(o), Listen: own(t), Cycles: 60, Megabytes: 2, Hang: 4 * time.Minute, Foreign: true}
}

func TestProvider(t *testing.T) {
	r := rdma.Probe()
	t.Logf("%+v", r)
	verbstest.Run(t, options(t, rdma.Options{}))
}

// TestReadSinks registers memory for each Read, as iWARP hardware requires.
func TestReadSinks(t *testing.T) {
	verbstest.Run(t, options(t, rdma.Options{ReadSinkPerRequest: true}))
}
