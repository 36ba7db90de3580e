package plan

import (
	"bufio"
	"io"
	"os"
	"path/filepath"

	"github.com/rpcrdma/toolkit/internal/outfile"
)

// spill holds the ops of a plan until its tables are written, which come before
// them: what fits in its buffer in memory, more in a temporary file beside the plan.
type spill struct {
	*bufio.Writer
	store store
}

// store is where the buffer of a spill is emptied into.
type store struct {
	dir  string
	file *os.File  // nil until there is something to hold
	plan io.Writer // not nil: the plan itself
}

func newSpill(out string) *spill {
	s := &spill{store: store{dir: filepath.Dir(out)}}
	s.Writer = bufio.NewWriterSize(&s.store, 1<<16)
	return s
}

func (s *store) Write(b []byte) (int, error) {
	if s.plan != nil {
		return s.plan.Write(b)
	}
	if s.file == nil {
		f, err := outfile.Scratch(s.dir)
		if err != nil {
			return 0, err
		}
		s.file = f
	}
	return s.file.Write(b)
}

// drain writes all that is held to the plan.
func (s *spill) drain(plan io.Writer) error {
	if s.store.file != nil {
		if err := s.Flush(); err != nil {
			return err
		}
		if _, err := s.store.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(plan, s.store.file)
		return err
	}
	s.store.plan = plan
	return s.Flush()
}

// Close removes the temporary file, if there is one.
func (s *spill) Close() error {
	if s.store.file == nil {
		return nil
	}
	return s.store.file.Close()
}
