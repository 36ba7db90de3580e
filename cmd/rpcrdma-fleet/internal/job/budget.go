package job

import (
	"context"
	"errors"

	"golang.org/x/sync/semaphore"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

const (
	// underWay is how many bytes of objects are read and parsed at a time. An object that has more is read when no
	// other is.
	underWay = 64 << 20
	// usual is the size that is allowed for before the size of an object is known: most objects have less.
	usual = 1 << 20
)

// budget bounds the bytes of objects that several goroutines have in memory together, from the beginning of the reading
// to the end of the parsing. Nothing is held while waiting, so goroutines cannot wait for each other.
type budget struct {
	total, usual int64
	free         *semaphore.Weighted
}

func newBudget(total int64) *budget { return &budget{total, usual, semaphore.NewWeighted(total)} }

// read reads an object of at most most bytes and parses it. What parse keeps is not counted.
func (b *budget) read(ctx context.Context, s *store.Store, name string, most int64, parse func([]byte) error) error {
	err := b.attempt(ctx, s, name, min(b.usual, most), parse)
	var large *store.SizeError
	if !errors.As(err, &large) || most <= b.usual || large.Size > most {
		return err
	}
	if large.Size <= b.usual { // the store did not tell
		large.Size = most
	}
	return b.attempt(ctx, s, name, large.Size, parse)
}

func (b *budget) attempt(ctx context.Context, s *store.Store, name string, size int64, parse func([]byte) error) error {
	n := min(size, b.total)
	if err := b.free.Acquire(ctx, n); err != nil {
		return context.Cause(ctx)
	}
	defer b.free.Release(n)
	x, err := s.ReadSmall(ctx, name, size)
	if err != nil {
		return err
	}
	return parse(x)
}
