package nsm

import (
	"testing"

	"github.com/rpcrdma/toolkit/internal/xdrgen/xdrtest"
)

func TestIdentity(t *testing.T) { xdrtest.Identity(t, xdrtest.Messages(Programs)) }

func FuzzDecode(f *testing.F) { xdrtest.Fuzz(f, xdrtest.Messages(Programs), nil) }
