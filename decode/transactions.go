package decode

import (
	"iter"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Transactions decodes the packets of r and yields each transaction, in the order that opt selects. A
// transaction is valid until the next one. An error is yielded last, without a transaction. Leaving the loop
// ends the reading. For more, such as statistics or open transactions, use a Decoder.
func Transactions(r capture.Reader, opt Options) iter.Seq2[*transaction.Transaction, error] {
	opt.Concurrent = false // the body of a loop belongs to the goroutine of the loop
	return func(yield func(*transaction.Transaction, error) bool) {
		left := false
		var d *Decoder
		d = New(opt, func(tx *transaction.Transaction) {
			if !left && !yield(tx, nil) {
				left = true
				d.Stop()
			}
		})
		if err := d.Run(r); err != nil && !left {
			yield(nil, err)
		}
	}
}
