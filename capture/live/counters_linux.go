package live

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// maxCounters bounds the files of counters.
const maxCounters = 4096

// counter is a file of sysfs with a number that grows. It stays open, since the program gives up the right to open it.
type counter struct {
	file       *os.File
	port, name string
	last       uint64
	known      bool
}

// counters opens the counters of all RDMA devices and their ports in sysfs: the standard ones (IBTA) and those of the driver.
func counters(sys string) (all []*counter) {
	for _, pattern := range []string{"class/infiniband/*/ports/*/counters/*", "class/infiniband/*/ports/*/hw_counters/*", "class/infiniband/*/hw_counters/*"} {
		files, _ := filepath.Glob(filepath.Join(sys, pattern))
		for _, file := range files {
			rest, _ := filepath.Rel(filepath.Join(sys, "class/infiniband"), file)
			parts := strings.Split(rest, "/")
			c := &counter{port: parts[0], name: parts[len(parts)-1]}
			if parts[1] == "ports" {
				c.port += "/" + parts[2]
			}
			again := slices.ContainsFunc(all, func(x *counter) bool { return x.port == c.port && x.name == c.name })
			if c.name == "lifespan" || again || len(all) >= maxCounters {
				continue
			}
			var err error
			if c.file, err = os.Open(file); err != nil {
				continue
			}
			if c.grown(); !c.known {
				c.close() // some have no number without optional features
				continue
			}
			all = append(all, c)
		}
	}
	return all
}

// grown is by how much the number has grown since the last call; 0 at the first one, and after it was reset.
func (c *counter) grown() uint64 {
	var b [32]byte
	n, _ := c.file.ReadAt(b[:], 0)
	v, err := strconv.ParseUint(strings.TrimSpace(string(b[:n])), 10, 64)
	if err != nil {
		return 0
	}
	before, known := c.last, c.known
	c.last, c.known = v, true
	if !known || v < before {
		return 0
	}
	return v - before
}

func (c *counter) close() { c.file.Close() }

// sample puts the counters that have grown among the events.
func (r *eventReader) sample() {
	for _, c := range r.counters {
		if n := c.grown(); n > 0 {
			r.grown = append(r.grown, ftrace.Event{Kind: ftrace.Counter, Program: []byte(c.port), Procedure: []byte(c.name), Grown: n})
		}
	}
}

// rpcCounter is a file of /proc/net/rpc: what the kernel counts as calls of its client of NFS, or to its server.
type rpcCounter struct {
	file  *os.File // nil: there is none
	first uint64
	known bool
}

func newRPCCounter(name string) (c rpcCounter) {
	c.file, _ = os.Open(name)
	c.first, c.known = c.calls()
	return c
}

// calls is the first number of the line "rpc".
func (c *rpcCounter) calls() (uint64, bool) {
	b := make([]byte, os.Getpagesize())
	n, _ := c.file.ReadAt(b, 0)
	for line := range strings.Lines(string(b[:n])) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "rpc" {
			v, err := strconv.ParseUint(f[1], 10, 64)
			return v, err == nil
		}
	}
	return 0, false
}

func (c *rpcCounter) close() { c.file.Close() }
