package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Build makes a plan from a capture. opt sets the decoder's limits; Build itself makes it keep
// data. The plan is valid even after an error in reading the capture, as long as the summary is
// not nil. A file that cannot be opened leaves no plan.
//
// If two servers turn out to be one after calls of both have been added, the plan keeps them
// apart, and the error is a *LateError: a second call, with the error's Same and Answered added to the
// options, makes a plan that joins them. With Options.Retry, that is also so if calls without a reply turn out to have been sent again.
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
		view.SetAll(tx)
		if failed = b.Add(&view); failed != nil {
			d.Stop()
		}
		if opt.Decoded != nil {
			opt.Decoded(&view)
		}
	})
	read := d.Run(&stopper{r, ctx})
	if opt.Ended != nil {
		opt.Ended(d)
	}
	if failed == nil {
		failed = ctx.Err()
	}
	if e, ok := errors.AsType[*fs.PathError](read); ok && e.Op == "open" && failed == nil {
		failed = read // a file that is not there, or too many of them, is no damaged capture
	}
	if failed != nil {
		return nil, errors.Join(failed, b.Abort())
	}
	if late := (&LateError{Same: b.ids.late, Answered: b.resent.found, Rest: read}); opt.Retry && len(late.Same)+len(late.Answered) > 0 {
		return nil, errors.Join(late, b.Abort())
	}
	s, err := b.Finish()
	if err != nil {
		return nil, err
	}
	if late := b.ids.late; len(late) > 0 {
		return s, &LateError{Same: late, Rest: read}
	}
	return s, read
}

// LateError says what showed too late for a plan: that servers which it keeps apart are one, and that later copies of calls have the replies
// that the first ones lack. Rest is another error of reading the capture, or nil.
type LateError struct {
	Same     []plan.SameServer
	Answered []Resent
	Rest     error
}

func (e *LateError) Unwrap() error { return e.Rest }

func (e *LateError) Error() string {
	if len(e.Same) == 0 {
		return "calls without a reply were sent again, and answered then"
	}
	s := e.Same[0].String()
	if n := len(e.Same) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s + "; this showed after calls of both, and the plan has them apart"
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
