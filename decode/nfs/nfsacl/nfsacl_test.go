package nfsacl

import (
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/xdrtest"
)

const samples = "testdata/messages.txt"

func TestIdentity(t *testing.T) { xdrtest.Identity(t, xdrtest.Messages(Programs)) }

func TestSamples(t *testing.T) {
	xdrtest.Golden(t, xdrtest.Messages(Programs), samples, "testdata/messages.golden")
}

func TestSampleAllocs(t *testing.T) {
	xdrtest.SampleAllocs(t, xdrtest.Messages(Programs), samples)
}

func FuzzDecode(f *testing.F) {
	xdrtest.Fuzz(f, xdrtest.Messages(Programs), xdrtest.Seeds(f, samples))
}
