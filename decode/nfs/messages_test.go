package nfs_test

import (
	"math/rand"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/xdrtest"
)

// sampled are the programs with messages of real traffic, in testdata of their folders. The package of NFSv4 has tests of its own.
var (
	sampled = map[string][]xdr.Program{
		"mount": mount.Programs, "nfs3": nfs3.Programs, "nfsacl": nfsacl.Programs, "nlm": nlm.Programs, "rpcbind": rpcbind.Programs,
	}
	random = map[string][]xdr.Program{"nfs2": nfs2.Programs, "nsm": nsm.Programs}
)

func TestIdentity(t *testing.T) {
	for _, programs := range []map[string][]xdr.Program{sampled, random} {
		for name, list := range programs {
			t.Run(name, func(t *testing.T) { xdrtest.Identity(t, xdrtest.Messages(list)) })
		}
	}
}

func samples(name string) string { return name + "/testdata/messages.txt" }

func TestSamples(t *testing.T) {
	for name, list := range sampled {
		t.Run(name, func(t *testing.T) {
			xdrtest.Golden(t, xdrtest.Messages(list), samples(name), name+"/testdata/messages.golden")
			xdrtest.SampleAllocs(t, xdrtest.Messages(list), samples(name))
		})
	}
}

func TestAllocs(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for _, list := range random {
		for _, c := range xdrtest.Messages(list) {
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
}

func FuzzMount(f *testing.F)   { fuzzSampled(f, "mount") }
func FuzzNFS3(f *testing.F)    { fuzzSampled(f, "nfs3") }
func FuzzNFSACL(f *testing.F)  { fuzzSampled(f, "nfsacl") }
func FuzzNLM(f *testing.F)     { fuzzSampled(f, "nlm") }
func FuzzRpcbind(f *testing.F) { fuzzSampled(f, "rpcbind") }
func FuzzNFS2(f *testing.F)    { xdrtest.Fuzz(f, xdrtest.Messages(nfs2.Programs), nil) }
func FuzzNSM(f *testing.F)     { xdrtest.Fuzz(f, xdrtest.Messages(nsm.Programs), nil) }

func fuzzSampled(f *testing.F, name string) {
	xdrtest.Fuzz(f, xdrtest.Messages(sampled[name]), xdrtest.Seeds(f, samples(name)))
}
