package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/client"
)

// each measures n steps, several of them under way at a time.
func (m *Meter) each(ctx context.Context, j Job, name string, n int, step func(i, worker int) (bytes int, err error)) (*Result, error) {
	r := m.result(j, name)
	l, err := m.start()
	if err != nil {
		return r, err
	}
	var next, bytes atomic.Int64
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	lists := make([][]time.Duration, max(j.Outstanding, 1))
	for w := range lists {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				t := time.Now()
				b, err := step(i, w)
				if len(lists[w]) < maxLatencies {
					lists[w] = append(lists[w], time.Since(t))
				}
				if err != nil {
					mu.Lock()
					failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
					mu.Unlock()
					next.Store(int64(n))
					return
				}
				bytes.Add(int64(b))
			}
		})
	}
	wg.Wait()
	err = errors.Join(l.stop(r), failed, ctx.Err())
	r.Calls, r.Bytes, r.took = n, uint64(bytes.Load()), slices.Concat(lists...)
	return r, err
}

// sub makes an empty directory for one workload.
func (m *Meter) sub(ctx context.Context, name string) ([]byte, error) {
	return m.FS.Mkdir(ctx, m.Dir, fmt.Sprintf("%s-%d", name, time.Now().UnixNano()), client.Mode(0o755))
}

// fileop measures the operations of IOzone's fileop, one after the other over all
// files: mkdir, create and write, close, stat, access, chmod, readdir, open
// and read, link, unlink, delete, rmdir.
func (m *Meter) fileop(ctx context.Context, j Job) ([]*Result, error) {
	top, err := m.sub(ctx, "fileop")
	if err != nil {
		return nil, err
	}
	n := max(j.Files, 1)
	dirs, files, handles := make([][]byte, n), make([]*client.File, n), make([][]byte, n)
	bufs := make([][]byte, max(j.Outstanding, 1))
	for i := range bufs {
		if bufs[i], err = m.FS.Alloc(max(j.Size, 1)); err != nil {
			return nil, err
		}
		defer m.FS.Free(bufs[i])
	}
	name := func(i int) string { return fmt.Sprintf("file%d", i) }
	steps := []struct {
		name string
		do   func(i, w int) (int, error)
	}{
		{"mkdir", func(i, _ int) (k int, err error) {
			dirs[i], err = m.FS.Mkdir(ctx, top, fmt.Sprintf("dir%d", i), client.Mode(0o755))
			return
		}},
		{"create", func(i, _ int) (k int, err error) {
			if files[i], err = m.FS.Create(ctx, dirs[i], name(i), client.Mode(0o644), true); err == nil {
				handles[i] = files[i].Handle
			}
			return
		}},
		{"write", func(i, w int) (int, error) { return m.FS.Write(ctx, files[i], 0, bufs[w], false) }},
		{"close", func(i, _ int) (int, error) {
			if err := m.FS.Commit(ctx, files[i]); err != nil {
				return 0, err
			}
			return 0, m.FS.Close(ctx, files[i])
		}},
		{"stat", func(i, _ int) (int, error) { _, err := m.FS.Getattr(ctx, handles[i]); return 0, err }},
		{"access", func(i, _ int) (int, error) { _, err := m.FS.Access(ctx, handles[i], 0x3f); return 0, err }},
		{"chmod", func(i, _ int) (int, error) { return 0, m.FS.Setattr(ctx, handles[i], client.Mode(0o600)) }},
		{"readdir", func(i, _ int) (int, error) {
			return 0, m.FS.Readdir(ctx, dirs[i], func(client.Entry) bool { return true })
		}},
		{"open+read", func(i, w int) (int, error) {
			f, err := m.FS.Open(ctx, dirs[i], name(i), false)
			if err != nil {
				return 0, err
			}
			k, _, err := m.FS.Read(ctx, f, 0, bufs[w])
			return k, errors.Join(err, m.FS.Close(ctx, f))
		}},
		{"link", func(i, _ int) (int, error) { return 0, m.FS.Link(ctx, handles[i], dirs[i], name(i)+".l") }},
		{"unlink", func(i, _ int) (int, error) { return 0, m.FS.Remove(ctx, dirs[i], name(i)+".l") }},
		{"delete", func(i, _ int) (int, error) { return 0, m.FS.Remove(ctx, dirs[i], name(i)) }},
		{"rmdir", func(i, _ int) (int, error) { return 0, m.FS.Rmdir(ctx, top, fmt.Sprintf("dir%d", i)) }},
	}
	var out []*Result
	for _, s := range steps {
		r, err := m.each(ctx, j, "fileop "+s.name, n, s.do)
		out = append(out, r)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// Sizes of Postmark's files, as in its defaults.
const (
	postmarkSmallest = 500
	postmarkLargest  = 9770
)

// Halves of a transaction of Postmark.
const (
	postmarkCreate = iota
	postmarkRead
	postmarkAppend
	postmarkDelete
	postmarkHalves
)

// postmarkPool is what one of the calls under way works with.
type postmarkPool struct {
	rnd   *rand.Rand
	names []string
	buf   []byte
	made  int
	done  [postmarkHalves]struct {
		calls, bytes int
		took         []time.Duration
	}
}

func (p *postmarkPool) size() int {
	return postmarkSmallest + p.rnd.IntN(postmarkLargest-postmarkSmallest+1)
}

// timed does one half of a transaction.
func (p *postmarkPool) timed(kind int, do func() (bytes int, err error)) (int, error) {
	t := time.Now()
	n, err := do()
	h := &p.done[kind]
	h.calls, h.bytes = h.calls+1, h.bytes+n
	if len(h.took) < maxLatencies {
		h.took = append(h.took, time.Since(t))
	}
	return n, err
}

// halves returns a result for each half of the transactions, which all took so long.
func (m *Meter) halves(j Job, elapsed time.Duration, pools []*postmarkPool) (out []*Result) {
	for kind, name := range [postmarkHalves]string{"create", "read", "append", "delete"} {
		r := m.result(j, "postmark "+name+" (mixed)")
		r.Elapsed, r.ClientCPU = elapsed, -1
		for _, p := range pools {
			h := &p.done[kind]
			r.Calls, r.Bytes, r.took = r.Calls+h.calls, r.Bytes+uint64(h.bytes), append(r.took, h.took...)
		}
		out = append(out, r)
	}
	return out
}

// postmark is the mix of Katcher's Postmark: a pool of small files, then
// transactions, each of a create or a delete and of a read or an append. As Postmark does, it gives the rates of these four
// in the time of all transactions.
func (m *Meter) postmark(ctx context.Context, j Job) ([]*Result, error) {
	top, err := m.sub(ctx, "postmark")
	if err != nil {
		return nil, err
	}
	workers := max(j.Outstanding, 1)
	n := max(j.Files, workers)
	pools := make([]*postmarkPool, workers)
	for w := range pools {
		b, err := m.FS.Alloc(postmarkLargest)
		if err != nil {
			return nil, err
		}
		defer m.FS.Free(b)
		pools[w] = &postmarkPool{rnd: rand.New(rand.NewPCG(42, uint64(w))), buf: b}
	}
	create := func(p *postmarkPool, w int) (int, error) {
		name := fmt.Sprintf("p%d-%d", w, p.made)
		p.made++
		f, err := m.FS.Create(ctx, top, name, client.Mode(0o644), true)
		if err != nil {
			return 0, err
		}
		k, err := m.FS.Write(ctx, f, 0, p.buf[:p.size()], false)
		p.names = append(p.names, name)
		return k, errors.Join(err, m.FS.Commit(ctx, f), m.FS.Close(ctx, f))
	}
	var out []*Result
	r, err := m.each(ctx, j, "postmark create", n, func(_, w int) (int, error) { return create(pools[w], w) })
	out = append(out, r)
	if err != nil {
		return out, err
	}
	change := func(p *postmarkPool) (int, error) {
		name, kind := p.names[p.rnd.IntN(len(p.names))], postmarkRead+p.rnd.IntN(2)
		return p.timed(kind, func() (n int, err error) {
			_, a, err := m.FS.Lookup(ctx, top, name)
			if err != nil {
				return 0, err
			}
			f, err := m.FS.Open(ctx, top, name, true)
			if err != nil {
				return 0, err
			}
			if kind == postmarkRead {
				n, _, err = m.FS.Read(ctx, f, 0, p.buf[:min(uint64(len(p.buf)), a.Size)])
			} else {
				n, err = m.FS.Write(ctx, f, a.Size, p.buf[:min(p.size(), 4096)], false)
				err = errors.Join(err, m.FS.Commit(ctx, f))
			}
			return n, errors.Join(err, m.FS.Close(ctx, f))
		})
	}
	r, err = m.each(ctx, j, "postmark transactions", 2*n, func(_, w int) (bytes int, err error) {
		p := pools[w]
		if len(p.names) > 0 {
			if bytes, err = change(p); err != nil {
				return bytes, err
			}
		}
		if p.rnd.IntN(2) == 0 || len(p.names) == 0 {
			k, err := p.timed(postmarkCreate, func() (int, error) { return create(p, w) })
			return bytes + k, err
		}
		i := p.rnd.IntN(len(p.names))
		name := p.names[i]
		p.names[i] = p.names[len(p.names)-1]
		p.names = p.names[:len(p.names)-1]
		_, err = p.timed(postmarkDelete, func() (int, error) { return 0, m.FS.Remove(ctx, top, name) })
		return bytes, err
	})
	out = append(out, r)
	if err != nil {
		return out, err
	}
	out = append(out, m.halves(j, r.Elapsed, pools)...)
	var left []string
	for _, p := range pools {
		left = append(left, p.names...)
	}
	r, err = m.each(ctx, j, "postmark delete", len(left), func(i, _ int) (int, error) { return 0, m.FS.Remove(ctx, top, left[i]) })
	return append(out, r), err
}

// iozone writes a file, writes it again, reads it, reads it again, and reads
// and writes at random, as IOzone's -i 0 -i 1 -i 2 do.
func (m *Meter) iozone(ctx context.Context, j Job) ([]*Result, error) {
	top, err := m.sub(ctx, "iozone")
	if err != nil {
		return nil, err
	}
	f, err := m.FS.Create(ctx, top, "file", client.Mode(0o644), true)
	if err != nil {
		return nil, err
	}
	bufs := make([][]byte, max(j.Outstanding, 1))
	rnds := make([]*rand.Rand, len(bufs))
	for i := range bufs {
		if bufs[i], err = m.FS.Alloc(j.Size); err != nil {
			return nil, err
		}
		defer m.FS.Free(bufs[i])
		rnds[i] = rand.New(rand.NewPCG(7, uint64(i)))
	}
	n := int(max(j.FileSize/int64(j.Size), 1))
	at := func(i int) uint64 { return uint64(i) * uint64(j.Size) }
	write := func(i, w int) (int, error) { return m.FS.Write(ctx, f, at(i), bufs[w], false) }
	read := func(i, w int) (int, error) { k, _, err := m.FS.Read(ctx, f, at(i), bufs[w]); return k, err }
	steps := []struct {
		name string
		do   func(i, w int) (int, error)
	}{
		{"write", write}, {"rewrite", write}, {"read", read}, {"reread", read},
		{"random read", func(_, w int) (int, error) { return read(rnds[w].IntN(n), w) }},
		{"random write", func(_, w int) (int, error) { return write(rnds[w].IntN(n), w) }},
	}
	var out []*Result
	for _, s := range steps {
		r, err := m.each(ctx, j, "iozone "+s.name, n, s.do)
		out = append(out, r)
		if err != nil {
			return out, err
		}
	}
	err = errors.Join(m.FS.Commit(ctx, f), m.FS.Close(ctx, f), m.FS.Remove(ctx, top, "file"))
	return out, err
}
