package edge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// Uploader takes whole files out of a folder into a store. When the store is away they
// wait, up to a number of bytes; the oldest are removed beyond that, and counted.
type Uploader struct {
	dir, tap string
	limit    int64
	out      *store.Store
	note     func(format string, args ...any)
	ready    chan struct{}

	mu      sync.Mutex
	list    []waiting // oldest first
	bytes   int64
	busy    string // is being uploaded
	ended   bool
	removed int
}

type waiting struct {
	file string
	size int64
	when time.Time
}

// NewUploader begins with what an earlier agent of the tap has left in the folder.
func NewUploader(dir, tap string, limit int64, out *store.Store, note func(format string, args ...any)) (*Uploader, error) {
	u := &Uploader{dir: dir, tap: tap, limit: limit, out: out, note: note, ready: make(chan struct{}, 1)}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		st, err := e.Info()
		if err != nil || !st.Mode().IsRegular() || objectName(e.Name(), tap) == "" {
			continue
		}
		u.list = append(u.list, waiting{e.Name(), st.Size(), st.ModTime()})
		u.bytes += st.Size()
	}
	slices.SortFunc(u.list, func(a, b waiting) int { return a.when.Compare(b.when) })
	if n := len(u.list); n > 0 {
		note("files of an earlier agent in %s: %d", dir, n)
	}
	u.trim()
	u.wake()
	return u, nil
}

// Add takes up a file that is whole.
func (u *Uploader) Add(p *Part) error {
	if objectName(p.File, u.tap) == "" {
		return fmt.Errorf("the observer names a file %q", p.File)
	}
	st, err := os.Lstat(filepath.Join(u.dir, p.File))
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, waiting{p.File, st.Size(), st.ModTime()})
	u.bytes += st.Size()
	u.trim()
	u.wake()
	return nil
}

// End says that there will be no more.
func (u *Uploader) End() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	u.wake()
}

// Waiting is how many files are left.
func (u *Uploader) Waiting() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.list)
}

// Removed is how many files there was no room for.
func (u *Uploader) Removed() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.removed
}

func (u *Uploader) wake() {
	select {
	case u.ready <- struct{}{}:
	default:
	}
}

// trim removes the oldest files beyond the limit, but not the newest.
func (u *Uploader) trim() {
	for i := 0; u.bytes > u.limit && i < len(u.list)-1; {
		if u.list[i].file == u.busy {
			i++
			continue
		}
		x := u.list[i]
		u.note("the store is away, and there is no more room: %s is removed (%d bytes)", x.file, x.size)
		if err := os.Remove(filepath.Join(u.dir, x.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			u.note("%v", err)
		}
		u.list = slices.Delete(u.list, i, i+1)
		u.bytes -= x.size
		u.removed++
	}
}

func (u *Uploader) next(ctx context.Context) (string, bool) {
	for {
		u.mu.Lock()
		if len(u.list) > 0 {
			u.busy = u.list[0].file
			defer u.mu.Unlock()
			return u.busy, true
		}
		ended := u.ended
		u.mu.Unlock()
		if ended {
			return "", false
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-u.ready:
		}
	}
}

func (u *Uploader) done(file string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = ""
	for i, x := range u.list {
		if x.file == file {
			u.list = slices.Delete(u.list, i, i+1)
			u.bytes -= x.size
			return
		}
	}
}

// uploadWait is the time between attempts of a file.
const uploadWait = 5 * time.Second

// Run uploads until End and nothing is left, or until the context ends. A file is
// removed from the folder when the store has it; sent twice, it has the same name.
func (u *Uploader) Run(ctx context.Context) error {
	said := ""
	for {
		file, ok := u.next(ctx)
		if !ok {
			return ctx.Err()
		}
		err := u.upload(ctx, file)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				u.note("%s is gone: %v", file, err)
			}
			u.done(file)
			said = ""
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err.Error() != said {
			said = err.Error()
			u.note("%s: %v; files that wait: %d", file, err, u.Waiting())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(uploadWait):
		}
	}
}

func (u *Uploader) upload(ctx context.Context, file string) error {
	name := filepath.Join(u.dir, file)
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := u.out.WriteWhole(ctx, objectName(file, u.tap), f); err != nil {
		return err
	}
	return os.Remove(name)
}
