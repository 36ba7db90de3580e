package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// fsx does random operations on one file, like the program of that name: reads and writes at
// random places, through read(2) and write(2), O_DIRECT and shared mappings, and truncations.
// Each read is compared with a copy in memory. The first difference ends it.
func fsx(path string, seed uint64, ops int) error {
	if path == "" {
		return errors.New("which file?")
	}
	x := &exerciser{path: path, r: rand.New(rand.NewPCG(seed, 0)), counts: make(map[string]int)}
	var err error
	if x.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
		return err
	}
	defer x.f.Close()
	if x.direct, err = os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, 0); err != nil {
		return err
	}
	defer x.direct.Close()
	for i := range ops {
		if err := x.step(); err != nil {
			return fmt.Errorf("seed %d, operation %d of %d: %w; the last operations:\n%s", seed, i, ops, err, strings.Join(x.log, "\n"))
		}
	}
	if err := x.compare(0, len(x.want)); err != nil {
		return err
	}
	fmt.Printf("fsx: %d operations on %s, seed %d: %v, %d bytes at the end\nmd5 %s  %s\n", ops, path, seed, x.counts, len(x.want), sum(x.want), path)
	return nil
}

type exerciser struct {
	path      string
	f, direct *os.File
	r         *rand.Rand
	want      []byte
	log       []string
	counts    map[string]int
	writes    byte
}

const (
	maxFile = 512 << 10
	maxIO   = 96 << 10
	page    = 4096
)

func (x *exerciser) note(kind, format string, args ...any) {
	x.counts[kind]++
	x.log = append(x.log, kind+" "+fmt.Sprintf(format, args...))
	if len(x.log) > 12 {
		x.log = x.log[1:]
	}
}

// place is a range that may lie beyond the end of the file.
func (x *exerciser) place() (at, n int) {
	at = x.r.IntN(maxFile)
	return at, min(1+x.r.IntN(maxIO), maxFile-at)
}

// inside is a range within the file.
func (x *exerciser) inside() (at, n int) {
	at = x.r.IntN(len(x.want))
	return at, min(1+x.r.IntN(maxIO), len(x.want)-at)
}

func (x *exerciser) step() error {
	k := x.r.IntN(100)
	switch {
	case k < 30:
		return x.write()
	case k < 40:
		return x.writeDirect()
	case k < 48:
		return x.truncate()
	case k < 52:
		x.note("fsync", "")
		return x.f.Sync()
	case k < 56:
		return x.reopen()
	case len(x.want) == 0:
		return nil
	case k < 75:
		at, n := x.inside()
		x.note("read", "%d bytes at %d", n, at)
		return x.compare(at, n)
	case k < 83:
		return x.readDirect()
	case k < 92:
		return x.mapped(false)
	default:
		return x.mapped(true)
	}
}

// fresh is data that no other recent write has used.
func (x *exerciser) fresh(b []byte) {
	x.writes++
	for i := range b {
		b[i] = byte(x.r.Uint32()) ^ x.writes
	}
}

// put applies a write to the copy.
func (x *exerciser) put(at int, b []byte) {
	if need := at + len(b); need > len(x.want) {
		x.want = append(x.want, make([]byte, need-len(x.want))...)
	}
	copy(x.want[at:], b)
}

func (x *exerciser) write() error {
	at, n := x.place()
	x.note("write", "%d bytes at %d of %d", n, at, len(x.want))
	b := make([]byte, n)
	x.fresh(b)
	if _, err := x.f.WriteAt(b, int64(at)); err != nil {
		return err
	}
	x.put(at, b)
	return nil
}

// aligned is page-aligned memory, as O_DIRECT may require.
func aligned(n int) ([]byte, func(), error) {
	b, err := unix.Mmap(-1, 0, max(n, page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return b[:n], func() { unix.Munmap(b) }, nil //nolint:errcheck // ours
}

func (x *exerciser) writeDirect() error {
	at := x.r.IntN(maxFile/page) * page
	n := min((1+x.r.IntN(maxIO/page))*page, maxFile-at)
	x.note("direct write", "%d bytes at %d of %d", n, at, len(x.want))
	b, free, err := aligned(n)
	if err != nil {
		return err
	}
	defer free()
	x.fresh(b)
	if _, err := x.direct.WriteAt(b, int64(at)); err != nil {
		return err
	}
	x.put(at, b)
	return nil
}

func (x *exerciser) readDirect() error {
	at := x.r.IntN(len(x.want)) &^ (page - 1)
	n := min(1+x.r.IntN(maxIO), len(x.want)-at)
	x.note("direct read", "%d bytes at %d of %d", n, at, len(x.want))
	b, free, err := aligned((n + page - 1) &^ (page - 1))
	if err != nil {
		return err
	}
	defer free()
	got, err := x.direct.ReadAt(b, int64(at))
	if got < n {
		return fmt.Errorf("direct read: %d of %d bytes: %w", got, n, err)
	}
	return differs(b[:n], x.want[at:at+n], at)
}

func (x *exerciser) truncate() error {
	n := x.r.IntN(maxFile)
	x.note("truncate", "from %d to %d", len(x.want), n)
	if err := x.f.Truncate(int64(n)); err != nil {
		return err
	}
	if n <= len(x.want) {
		x.want = x.want[:n:n]
	} else {
		x.want = append(x.want, make([]byte, n-len(x.want))...)
	}
	s, err := x.f.Stat()
	if err == nil && s.Size() != int64(n) {
		err = fmt.Errorf("size %d after truncating to %d", s.Size(), n)
	}
	return err
}

// reopen drops what the client has cached, as far as NFS does at open.
func (x *exerciser) reopen() error {
	x.note("reopen", "")
	if err := x.f.Close(); err != nil {
		return err
	}
	f, err := os.OpenFile(x.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	x.f = f
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

func (x *exerciser) mapped(write bool) error {
	at, n := x.inside()
	if write {
		x.note("mapped write", "%d bytes at %d of %d", n, at, len(x.want))
	} else {
		x.note("mapped read", "%d bytes at %d of %d", n, at, len(x.want))
	}
	start := at &^ (page - 1)
	m, err := unix.Mmap(int(x.f.Fd()), int64(start), at-start+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(m) //nolint:errcheck // ours
	if err := differs(m[at-start:], x.want[at:at+n], at); err != nil || !write {
		return err
	}
	x.fresh(m[at-start:])
	x.put(at, m[at-start:])
	return unix.Msync(m, unix.MS_SYNC)
}

func (x *exerciser) compare(at, n int) error {
	b := make([]byte, n)
	if got, err := x.f.ReadAt(b, int64(at)); got < n {
		return fmt.Errorf("read: %d of %d bytes: %w", got, n, err)
	}
	return differs(b, x.want[at:at+n], at)
}

func differs(got, want []byte, at int) error {
	if bytes.Equal(got, want) {
		return nil
	}
	first, last, n := -1, 0, 0
	for i := range got {
		if got[i] != want[i] {
			if first < 0 {
				first = i
			}
			last = i
			n++
		}
	}
	return fmt.Errorf("%d bytes differ, from %d to %d: % x, want % x", n, at+first, at+last, got[first:min(first+16, len(got))], want[first:min(first+16, len(want))])
}
