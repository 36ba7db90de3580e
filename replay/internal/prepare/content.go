package prepare

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Limits of the preparation.
const (
	// MaxFull is the largest size in bytes of a file that is written in full. Of a
	// larger file only the parts that the capture shows are written.
	MaxFull = 1 << 30
	// writeSize is how many bytes one WRITE carries.
	writeSize = 128 << 10
	// writers is how many files are written at a time.
	writers = 8
)

// contents fills the files, several at a time.
func (p *maker) contents() error {
	work := make(chan int)
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	stop := make(chan struct{})
	for range min(writers, len(p.files)) {
		wg.Go(func() {
			buf, err := p.fs.Alloc(writeSize)
			if err == nil {
				defer p.fs.Free(buf)
			}
			for id := range work {
				if err == nil {
					err = p.content(id, buf)
				}
				if Fatal(err) {
					once.Do(func() { first = err; close(stop) })
				} else if err != nil {
					p.failed("content of %s: %v", p.load.Tables.Objects[id-1].Path, err)
					err = nil
				}
			}
		})
	}
feed:
	for _, id := range p.files {
		select {
		case work <- id:
		case <-stop:
			break feed
		case <-p.ctx.Done():
			break feed
		}
	}
	close(work)
	wg.Wait()
	if first != nil {
		return first
	}
	return p.ctx.Err()
}

// content writes what the plan knows of a file, and the pattern in the gaps.
func (p *maker) content(id int, buf []byte) error {
	o := &p.load.Tables.Objects[id-1]
	dir, name := p.w.Base, p.load.FileName(id)
	if o.Parent != 0 {
		dir = p.w.Objects[o.Parent].Handle
	}
	f, err := p.fs.Open(p.ctx, dir, name, true)
	if err != nil {
		return err
	}
	size := o.Size
	for _, x := range o.Content {
		size = max(size, x.Offset+x.Length)
	}
	full := size <= MaxFull && p.load.Tables.Header.Payload != plan.Sparse
	next := uint64(0)
	for _, x := range o.Content {
		if full && x.Offset > next {
			if err = p.fill(f, o, next, x.Offset, -1, buf); err != nil {
				break
			}
		}
		if p.load.Data != nil {
			if err = p.fill(f, o, x.Offset, x.Offset+x.Length, x.At, buf); err != nil {
				break
			}
		}
		next = max(next, x.Offset+x.Length)
	}
	if err == nil && full && next < size {
		err = p.fill(f, o, next, size, -1, buf)
	}
	if err == nil && !full {
		p.mu.Lock()
		p.done.Sparse++
		p.mu.Unlock()
		err = p.fs.Setattr(p.ctx, f.Handle, client.SetAttr{Size: &size})
	}
	if err == nil {
		err = p.fs.Commit(p.ctx, f)
	}
	err = errors.Join(err, p.fs.Close(p.ctx, f))
	if err == nil && (p.load.Data != nil || len(o.Content) == 0) {
		w := &p.w.Objects[id]
		if full {
			w.Filled = size
		}
		w.Prepared, w.Size, w.Emptied = true, size, !p.opt.Reuse
	}
	return err
}

// fill writes a range of a file: the plan's data from at on, or the pattern if at is
// negative.
func (p *maker) fill(f *client.File, o *plan.Object, from, to uint64, at int64, buf []byte) error {
	for from < to {
		b := buf[:min(uint64(len(buf)), to-from)]
		if at >= 0 {
			if _, err := p.load.Data.ReadAt(b, at); err != nil {
				return fmt.Errorf("the plan's data: %w", err)
			}
		} else {
			plan.FillPattern(b, o.ID, from)
		}
		n, err := p.fs.Write(p.ctx, f, from, b, false)
		if err != nil {
			return err
		}
		if n == 0 {
			return errors.New("the server takes nothing")
		}
		from += uint64(n)
		if at >= 0 {
			at += int64(n)
		}
		p.bytes.Add(uint64(n))
	}
	return nil
}
