package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"gocloud.dev/gcerrors"
)

// Options of a Store, and of reading captures. The zero value is ready for use.
type Options struct {
	// Patience is how long an operation is tried again while the store is away; 0 means DefaultPatience.
	Patience time.Duration
	// Reach, if set, is the patience until the store has answered for the first time: who waits for the first answer has more
	// likely mistyped the address than met an outage.
	Reach time.Duration
	// Existing means that a local folder is not made: it has to be there.
	Existing bool
	// Log, if set, is told of each error after which something is tried again. Several goroutines may call it.
	Log func(format string, args ...any)

	// first and longest are the waits after the first error, and at most.
	first, longest time.Duration
	stall          time.Duration // without a byte: an attempt is given up
	silent         time.Duration // after which it is said that there is no first answer yet
	answered       *atomic.Bool
}

// ForPeople is the Reach of commands that somebody waits for.
const ForPeople = 20 * time.Second

// DefaultPatience is longer than stores are usually away.
const DefaultPatience = 5 * time.Minute

func (o Options) filled() Options {
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.first == 0 {
		o.first = 100 * time.Millisecond
	}
	if o.longest == 0 {
		o.longest = 10 * time.Second
	}
	if o.stall == 0 {
		o.stall = time.Minute
	}
	if o.silent == 0 {
		o.silent = 3 * time.Second
	}
	o.answered = new(atomic.Bool)
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return o
}

// Errors. The text of the error says more.
var (
	ErrNotFound = errors.New("no such object")
	ErrChanged  = errors.New("the object is not the one that was submitted")
	ErrTooLarge = errors.New("the object is too large")
)

// SizeError is the ErrTooLarge of an object.
type SizeError struct {
	Size int64 // as the store tells it; 0 if it does not
	Most int64 // that may be read
}

// Error is the error in words.
func (e *SizeError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("%v: more than %d bytes", ErrTooLarge, e.Most)
	}
	return fmt.Sprintf("%v: %d bytes, more than %d", ErrTooLarge, e.Size, e.Most)
}

// Is makes it an ErrTooLarge.
func (e *SizeError) Is(err error) bool { return err == ErrTooLarge } //nolint:errorlint // errors.Is calls it

// placeError is the NotFound of an operation that reads no object: ErrNotFound would tell that one is missing. In a
// local folder it is a file that another process has removed or renamed meanwhile, which is no surprise: trying again
// helps. Of a bucket it is the bucket.
type placeError struct {
	text  string
	local bool
}

// Error is the error in words.
func (e *placeError) Error() string { return e.text }

// transient reports whether trying again may help.
func transient(err error) bool {
	var path *fs.PathError
	var source *sourceError
	var place *placeError
	switch {
	case errors.As(err, &place):
		return place.local
	case errors.Is(err, ErrChanged), errors.Is(err, ErrTooLarge), errors.Is(err, ErrNotFound):
		return false
	case errors.As(err, &path), errors.As(err, &source): // of a local file: the disk is full, or somebody may not read it
		return false
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound, gcerrors.AlreadyExists, gcerrors.InvalidArgument, gcerrors.Unimplemented, gcerrors.PermissionDenied, gcerrors.FailedPrecondition:
		return false
	}
	return true
}

// backoff waits longer from error to error.
type backoff struct {
	opt   *Options
	what  string
	since time.Time // of the first error
	wait  time.Duration
}

// again waits, and returns nil if it is to be tried again.
func (b *backoff) again(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case gcerrors.Code(err) == gcerrors.NotFound:
		return fmt.Errorf("%s: %w", b.what, ErrNotFound)
	case !transient(err):
		return fmt.Errorf("%s: %w", b.what, err)
	}
	now := time.Now()
	if b.since.IsZero() {
		b.since, b.wait = now, b.opt.first
	}
	if now.Sub(b.since) >= b.opt.Patience {
		return fmt.Errorf("%s: tried again for %v: %w", b.what, b.opt.Patience.Round(time.Second), err)
	}
	wait := b.wait/2 + rand.N(b.wait/2+1)
	if b.opt.Reach > 0 && !b.opt.answered.Load() {
		wait = min(wait, b.opt.Reach/4)
	}
	b.wait = min(2*b.wait, b.opt.longest)
	if place := (*placeError)(nil); !errors.As(err, &place) {
		b.opt.Log("%s: %v; trying again in %v", b.what, err, wait.Round(time.Millisecond))
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// worked says that there was no error: patience begins anew.
func (b *backoff) worked() { b.since = time.Time{} }

// try does something until it works, cannot work, or patience ends. Each attempt may take so long.
func (o *Options) try(ctx context.Context, what string, most time.Duration, do func(context.Context) error) error {
	b := backoff{opt: o, what: what}
	began := time.Now()
	if o.Reach > 0 && !o.answered.Load() {
		// Libraries try again by themselves, without a word.
		defer time.AfterFunc(o.silent, func() {
			if !o.answered.Load() {
				o.Log("%s: no answer yet; given up after %v", what, o.Reach.Round(time.Second))
			}
		}).Stop()
	}
	var last error
	for {
		first, limit := o.Reach > 0 && !o.answered.Load(), most
		if first {
			limit = min(most, max(o.Reach-time.Since(began), 0))
		}
		attempt, cancel := context.WithTimeout(ctx, limit)
		err := do(attempt)
		late := attempt.Err() != nil
		cancel()
		if err == nil || !transient(err) && ctx.Err() == nil {
			o.answered.Store(true)
		}
		if err == nil {
			return nil
		}
		if last == nil || !late {
			last = err // one that tells more than that time was up
		}
		if first && ctx.Err() == nil && transient(err) && time.Since(began) >= o.Reach-o.first {
			return fmt.Errorf("%s: no answer within %v: is the address right, and the network up? The last error: %w", what, o.Reach.Round(time.Second), last)
		}
		if err := b.again(ctx, err); err != nil {
			return err
		}
	}
}
