package rocev2

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs/verbstest"
)

func BenchmarkVerbs(b *testing.B) { verbstest.Bench(b, suite(b, Options{}), verbstest.UDP) }
