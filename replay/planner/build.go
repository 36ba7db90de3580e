package planner

import (
	"context"
	"errors"
	"io"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Build makes a plan of a capture. opt tells the decoder's limits; that data is
// kept is seen to here. The plan is good even if the error is one of reading
// the capture, as long as the summary is not nil.
func Build(ctx context.Context, r capture.Reader, out string, dopt decode.Options, opt Options) (*plan.Summary, error) {
	b, err := NewBuilder(out, opt)
	if err != nil {
		return nil, err
	}
	view := rpc.View{Unwrap: opt.Unwrap}
	dopt.Transactions.KeepData = true
	dopt.Transactions.OnCompletion = false
	var d *decode.Decoder
	var failed error
	d = decode.New(dopt, func(tx *transaction.Transaction) {
		if failed != nil {
			return
		}
		view.Set(tx)
		if failed = b.Add(&view); failed != nil {
			d.Stop()
		}
	})
	read := d.Run(&stopper{r, ctx})
	if failed == nil {
		failed = ctx.Err()
	}
	if failed != nil {
		return nil, errors.Join(failed, b.Abort())
	}
	s, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return s, read
}

// stopper ends a capture when the context does.
type stopper struct {
	capture.Reader
	ctx context.Context
}

func (s *stopper) Read(b *capture.Batch) error {
	if s.ctx.Err() != nil {
		b.Packets = b.Packets[:0]
		return io.EOF
	}
	return s.Reader.Read(b)
}
