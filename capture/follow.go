package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Follower reads a file that another program is still writing: at the end it waits for more, like tail -f. It
// is meant for NewReader, which takes what is available.
type Follower struct {
	f     *os.File
	at    int64
	every time.Duration
	stop  chan struct{}
	once  sync.Once
}

// followEvery is how often a Follower looks at a file that does not grow.
// Notification by the kernel would not tell of growth on network file systems.
const followEvery = 100 * time.Millisecond

// Follow opens a regular file to be followed.
func Follow(name string) (*Follower, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s: not a regular file: cannot be followed", name)
	}
	return &Follower{f: f, every: followEvery, stop: make(chan struct{})}, nil
}

// errShrunk means that a file became shorter than the part already read.
var errShrunk = errors.New("the file was truncated or rewritten while it was followed")

// Read waits until there is something to read. After Close it returns
// os.ErrClosed.
func (f *Follower) Read(p []byte) (int, error) {
	var t *time.Ticker
	for {
		select {
		case <-f.stop:
			return 0, os.ErrClosed
		default:
		}
		n, err := f.f.ReadAt(p, f.at)
		if n > 0 {
			f.at += int64(n)
			return n, nil
		}
		if len(p) == 0 {
			return 0, nil
		}
		st, e := f.f.Stat()
		switch {
		case e != nil:
			return 0, e
		case st.Size() < f.at:
			return 0, errShrunk // whoever reads knows the name
		case err != nil && st.Size() > f.at && !errors.Is(err, io.EOF):
			return 0, err
		}
		if t == nil {
			t = time.NewTicker(f.every)
			defer t.Stop()
		}
		select {
		case <-t.C:
		case <-f.stop:
		}
	}
}

// Close ends the reading, also one that waits.
func (f *Follower) Close() error {
	err := os.ErrClosed
	f.once.Do(func() {
		close(f.stop)
		err = f.f.Close()
	})
	return err
}
