package latency

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestRepeatedCalls: a call of RPCSEC_GSS that was sent again counts like others, though its bytes are not the same.
func TestRepeatedCalls(t *testing.T) {
	for k, want := range map[transaction.NoteKind]bool{
		transaction.CallRepeated: true, transaction.SecuredAgain: true, transaction.SecuredCopy: true, transaction.XIDReused: false,
	} {
		tx := transaction.Transaction{Notes: []transaction.Note{{Kind: k}}}
		if got := troublesOf(&tx)&(1<<RepeatedCall) != 0; got != want {
			t.Errorf("%s: %v", k, got)
		}
	}
}
