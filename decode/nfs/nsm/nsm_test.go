package nsm

import (
	"math/rand"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/xdrtest"
)

func TestIdentity(t *testing.T) { xdrtest.Identity(t, xdrtest.Messages(Programs)) }

func FuzzDecode(f *testing.F) { xdrtest.Fuzz(f, xdrtest.Messages(Programs), nil) }

func TestAllocs(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for _, c := range xdrtest.Messages(Programs) {
		m := c.New()
		xdrtest.Fill(rnd, m)
		b := m.Append(nil)
		var r xdr.Reader
		r.Reset(b, 0)
		if m.Decode(&r); r.Err() == nil {
			xdrtest.NoAllocs(t, c.New(), b)
		}
	}
}
