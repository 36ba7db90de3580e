package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
)

// Meter measures on one connection to one server.
type Meter struct {
	FS      client.FS
	Dir     []byte // directory on the server in which files are made
	Setting Setting
	// ServerCPU returns the processor time of the server so far; nil if it is not
	// known.
	ServerCPU func() (time.Duration, error)
	// RDMA returns what calls over RDMA have done so far; nil over TCP.
	RDMA func() RDMA

	files map[int64]*client.File
	all   *barrier // of the clients of a Run
}

// RDMA counts what calls over RDMA did: bytes that were placed, segments that were offered for them, and how long the calls waited before
// they were sent.
type RDMA struct {
	Placed, Segments uint64
	Waited           time.Duration
}

// lap measures wall clock and processor time from a start.
type lap struct {
	m      *Meter
	wall   time.Time
	client time.Duration
	server time.Duration

	rdma RDMA
}

func (m *Meter) start() (*lap, error) {
	m.all.wait()
	l := &lap{m: m, server: -1}
	var err error
	if m.ServerCPU != nil {
		if l.server, err = m.ServerCPU(); err != nil {
			return nil, err
		}
	}
	if l.client, err = ownCPU(); err != nil {
		return nil, err
	}
	if m.RDMA != nil {
		l.rdma = m.RDMA()
	}
	m.all.wait() // nobody begins before the counters are read
	l.wall = time.Now()
	return l, nil
}

func (l *lap) stop(r *Result) error {
	r.Elapsed = time.Since(l.wall)
	l.m.all.wait() // what follows is of all clients
	own, err := ownCPU()
	if err != nil {
		return err
	}
	r.ClientCPU, r.ServerCPU = own-l.client, -1
	if l.server >= 0 {
		s, err := l.m.ServerCPU()
		if err != nil {
			return err
		}
		r.ServerCPU = s - l.server
	}
	if l.m.RDMA != nil {
		n := l.m.RDMA()
		r.Placed, r.Segments, r.Waited = n.Placed-l.rdma.Placed, n.Segments-l.rdma.Segments, n.Waited-l.rdma.Waited
	}
	return nil
}

func (m *Meter) result(j Job, name string) *Result {
	return &Result{Setting: m.Setting, Job: name, Size: j.Size, Outstanding: j.Outstanding, ServerCPU: -1}
}

// most returns the largest size of the data of one call, in bytes.
func (s *Setting) most() int64 {
	const piece, rest = 256 << 10, 512 // rest are the headers, the credential and the attributes
	if s.inline() {
		return max(1, min(piece, int64(s.Inline)-rest))
	}
	return piece
}

// inline reports whether there are no chunks, so that messages must fit the inline threshold.
func (s *Setting) inline() bool {
	return s.Fabric != "tcp" && s.Endpoint.Registration == endpoint.Inline
}

// Run measures a job with the clients of all meters at the same time. What is known of processes is taken from the first meter. Workloads
// of several parts return several results. A size that the setting cannot carry gives a result with an error, but Run does not fail.
func Run(ctx context.Context, meters []*Meter, j Job) ([]*Result, error) {
	for _, m := range meters { // the files are made before the clocks start
		if j.reads() && !m.tooLong(j) {
			if _, err := m.file(ctx, j.FileSize); err != nil {
				return []*Result{m.result(j, j.Kind)}, err
			}
		}
	}
	lists, errs := make([][]*Result, len(meters)), make([]error, len(meters))
	if len(meters) == 1 && j.Outstanding == 1 && meters[0].Setting.Fabric == "tcp" {
		// Nothing can be done side by side: another processor would only be woken for each reply.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	var wg sync.WaitGroup
	all := newBarrier(len(meters))
	for i, m := range meters {
		m.all = all
		wg.Go(func() {
			defer all.leave()
			lists[i], errs[i] = m.run(ctx, j)
		})
	}
	wg.Wait()
	out := lists[0]
	for _, list := range lists[1:] {
		out = out[:min(len(out), len(list))] // shorter after an error
		for i, r := range list[:len(out)] {
			out[i].join(r)
		}
	}
	for _, r := range out {
		r.percentiles()
	}
	return out, errors.Join(errs...)
}

// join adds what another client has done at the same time.
func (r *Result) join(o *Result) {
	r.Calls += o.Calls
	r.Bytes += o.Bytes
	r.Elapsed = max(r.Elapsed, o.Elapsed)
	r.took = append(r.took, o.took...)
	if r.Err == "" {
		r.Err = o.Err
	}
}

// reads reports whether the job reads or writes one file for a time.
func (j *Job) reads() bool {
	return strings.HasSuffix(j.Kind, "read") || strings.HasSuffix(j.Kind, "write")
}

// tooLong reports whether the setting cannot carry the data of a call.
func (m *Meter) tooLong(j Job) bool {
	return m.Setting.inline() && int64(j.largest()) > m.Setting.most()
}

// largest returns the bytes of the longest call.
func (j *Job) largest() int {
	if j.Kind == "postmark" {
		return max(j.Size, postmarkLargest)
	}
	return j.Size
}

func (m *Meter) run(ctx context.Context, j Job) ([]*Result, error) {
	if m.tooLong(j) {
		r := m.result(j, j.Kind)
		r.Err = fmt.Sprintf("registration inline with %d bytes carries at most %d bytes of data", m.Setting.Inline, m.Setting.most())
		return []*Result{r}, nil
	}
	switch j.Kind {
	case "read", "write", "randread", "randwrite":
		r, err := m.transfer(ctx, j)
		return []*Result{r}, err
	case "fileop":
		return m.fileop(ctx, j)
	case "postmark":
		return m.postmark(ctx, j)
	case "iozone":
		return m.iozone(ctx, j)
	}
	return nil, fmt.Errorf("unknown job %q", j.Kind)
}

// file returns a file of the given size, filled with data.
func (m *Meter) file(ctx context.Context, size int64) (*client.File, error) {
	if f := m.files[size]; f != nil {
		return f, nil
	}
	f, err := m.FS.Create(ctx, m.Dir, fmt.Sprintf("data-%d", size), client.Mode(0o644), false)
	if err != nil {
		return nil, err
	}
	piece := m.Setting.most()
	b, err := m.FS.Alloc(int(piece))
	if err != nil {
		return nil, err
	}
	defer m.FS.Free(b)
	for i := range b {
		b[i] = byte(i>>8 ^ i)
	}
	for at := int64(0); at < size; {
		n, err := m.FS.Write(ctx, f, uint64(at), b[:min(piece, size-at)], false)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, errors.New("the server accepted no data")
		}
		at += int64(n)
	}
	if err := m.FS.Commit(ctx, f); err != nil {
		return nil, err
	}
	if m.files == nil {
		m.files = map[int64]*client.File{}
	}
	m.files[size] = f
	return f, nil
}

// transfer reads or writes with a constant number of calls under way.
func (m *Meter) transfer(ctx context.Context, j Job) (*Result, error) {
	r := m.result(j, j.Kind)
	f, err := m.file(ctx, j.FileSize)
	if err != nil {
		return r, err
	}
	write, random := strings.HasSuffix(j.Kind, "write"), strings.HasPrefix(j.Kind, "rand")
	blocks := max(j.FileSize/int64(j.Size), 1)
	bufs := make([][]byte, j.Outstanding)
	for i := range bufs {
		if bufs[i], err = m.FS.Alloc(j.Size); err != nil {
			return r, err
		}
		defer m.FS.Free(bufs[i])
	}
	var next, calls, bytes atomic.Int64
	var stop atomic.Bool
	lists := make([][]time.Duration, j.Outstanding)
	var mu sync.Mutex
	var failed error
	one := func(b []byte, rnd *rand.Rand) (int, error) {
		block := next.Add(1) - 1
		if random {
			block = rnd.Int64N(blocks)
		}
		at := uint64(block % blocks * int64(j.Size))
		if write {
			return m.FS.Write(ctx, f, at, b, false)
		}
		n, _, err := m.FS.Read(ctx, f, at, b)
		return n, err
	}
	// The first calls are not counted: they warm up connections and caches.
	for i := range bufs {
		if _, err := one(bufs[i], rand.New(rand.NewPCG(1, uint64(i)))); err != nil {
			return r, err
		}
	}
	l, err := m.start()
	if err != nil {
		return r, err
	}
	timer := time.AfterFunc(j.Time, func() { stop.Store(true) })
	defer timer.Stop()
	var wg sync.WaitGroup
	for i := range bufs {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(2, uint64(i)))
			for !stop.Load() && ctx.Err() == nil {
				t := time.Now()
				n, err := one(bufs[i], rnd)
				if err == nil && n != j.Size {
					err = fmt.Errorf("%s: %d of %d bytes", j.Kind, n, j.Size)
				}
				if err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
					stop.Store(true)
					return
				}
				if len(lists[i]) < maxLatencies {
					lists[i] = append(lists[i], time.Since(t))
				}
				calls.Add(1)
				bytes.Add(int64(n))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(l.stop(r), failed, ctx.Err()); err != nil {
		return r, err
	}
	r.Calls, r.Bytes, r.took = int(calls.Load()), uint64(bytes.Load()), slices.Concat(lists...)
	return r, nil
}

// maxLatencies bounds the latencies kept for each of the calls, or steps, under way.
const maxLatencies = 1 << 18

// Close closes the files.
func (m *Meter) Close(ctx context.Context) error {
	var err error
	for _, f := range m.files {
		err = errors.Join(err, m.FS.Close(ctx, f))
	}
	return err
}
