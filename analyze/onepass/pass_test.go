package onepass

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/decode"
)

func TestPlan(t *testing.T) {
	p := New(Options{Check: check.Options{Rules: check.All()}})
	var b bytes.Buffer
	if err := p.Decoder().SaveState(&b, decode.StateOptions{Parts: p.Parts()}); err != nil {
		t.Fatal(err)
	}
}
