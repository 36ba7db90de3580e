package onepass

import (
	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Attribute lets a decoder find out what the time of transactions was lost to, and whether they came after all slots
// of their session had been in use. It costs a look at each packet. memory is
// fabric.Options.Memory, slotMemory that of session.Recorder.Limit. It returns what a saved state has besides the decoder.
func Attribute(opt *decode.Options, memory, slotMemory int) []decode.StatePart {
	slots := session.New(nil)
	slots.Limit(slotMemory)
	slots.Live()
	slots.SlotsOnly()
	return AttributeWith(opt, memory, slots)
}

// AttributeWith is Attribute with a Recorder that finds out about slots, perhaps among other things.
func AttributeWith(opt *decode.Options, memory int, sessions *session.Recorder) []decode.StatePart {
	b := blame.Lean(memory)
	opt.Observe(b.Recorder.Observer())
	opt.Observe(sessions.Observer())
	opt.Transactions.Ended = func(tx *transaction.Transaction) {
		b.Ended(tx)
		sessions.Ended(tx)
	}
	return []decode.StatePart{b.Recorder, sessions}
}
