package planner

import (
	"bytes"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// spill holds the ops of a plan until its tables, which come first, are written: in
// the buffer of its Writer as long as they fit, otherwise in a temporary file beside
// the plan, compressed: uncompressed they take more room than the capture.
type spill struct {
	*plan.Writer
	store store
}

// store is where the Writer's buffer is flushed to.
type store struct {
	dir   string
	file  *os.File      // nil until there is something to hold
	zstd  *zstd.Encoder // writes to file
	whole *bytes.Buffer // not nil: all that there is fits in memory
}

func newSpill(out string) *spill {
	s := &spill{store: store{dir: filepath.Dir(out)}}
	s.Writer = plan.NewWriter(&s.store)
	return s
}

// drain appends everything to the plan.
func (s *spill) drain(w *plan.Writer) error {
	if s.store.file == nil {
		s.store.whole = new(bytes.Buffer)
	}
	if err := s.Flush(); err != nil {
		return err
	}
	if s.store.file == nil {
		return w.Append(s.store.whole, s.Writer)
	}
	if err := s.store.zstd.Close(); err != nil {
		return err
	}
	if _, err := s.store.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := zstd.NewReader(s.store.file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer z.Close()
	return w.Append(z, s.Writer)
}

// discard removes the temporary file, if there is one.
func (s *spill) discard() error {
	if s.store.file == nil {
		return nil
	}
	return s.store.file.Close()
}

func (s *store) Write(b []byte) (int, error) {
	if s.whole != nil {
		return s.whole.Write(b)
	}
	if s.file == nil {
		f, err := outfile.Scratch(s.dir)
		if err != nil {
			return 0, err
		}
		s.file = f
		if s.zstd, err = zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true)); err != nil {
			return 0, err
		}
	}
	return s.zstd.Write(b)
}
