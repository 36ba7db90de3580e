package live

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// eventReader reads the kernel's events as perf events of their tracepoints: they end with their descriptors, however the program ends.
type eventReader struct {
	stopper
	eventRings
	fds     []int // of all events on all processors
	leaders []int // those that own the rings
	mem     [][]byte
	notes   []string
	stopped int64 // when Read has noticed Stop, on the monotonic clock; 0 before
	polls   []unix.PollFd
	counted uint64 // lost, as the kernel counts; guarded by mu
}

// settled is how long after its time an event is in its ring at the latest, and eventPause how long Read waits for more.
const (
	settled    = 10 * time.Millisecond
	eventPause = 20 * time.Millisecond
)

func openEvents(opt *Options) (_ *eventReader, err error) {
	if err := opt.packetsOnly(); err != nil {
		return nil, err
	}
	r := &eventReader{stopper: stopper{wake: -1}}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	found, err := r.find(opt.sys())
	if err != nil {
		return nil, err
	}
	cpus, err := processors(line(filepath.Join(opt.sys(), "devices/system/cpu/online")))
	if err != nil {
		return nil, err
	}
	leaders := make(map[int]int)
	for _, id := range found {
		for _, cpu := range cpus {
			if err := r.open(id, cpu, leaders, opt.eventBytes(len(cpus))); err != nil {
				return nil, refused(opt.sys(), err)
			}
		}
	}
	if err := r.openWake(); err != nil {
		return nil, err
	}
	r.wall = time.Now().UnixNano() - monotonic()
	return r, nil
}

// find looks the events up in tracefs.
func (r *eventReader) find(sys string) ([]uint64, error) {
	dir := ""
	for _, d := range []string{"kernel/tracing/events", "kernel/debug/tracing/events"} {
		d = filepath.Join(sys, d)
		if _, err := os.ReadDir(d); err == nil {
			dir = d
			break
		} else if errors.Is(err, fs.ErrPermission) {
			return nil, refused(sys, err)
		}
	}
	if dir == "" {
		return nil, fmt.Errorf("%s: tracefs is not mounted, which describes the kernel's events: mount -t tracefs tracefs %[1]s; a container needs the tracefs of its host", filepath.Join(sys, "kernel/tracing"))
	}
	if !exists(filepath.Join(dir, "rpcrdma")) {
		return nil, errors.New("the kernel has no events of RPC over RDMA: its module is not loaded (modprobe rpcrdma)")
	}
	r.formats = make(map[uint16]*ftrace.Format)
	var ids []uint64
	for _, k := range ftrace.Events {
		b, err := os.ReadFile(filepath.Join(dir, k.System, k.Name, "format"))
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil, refused(sys, err)
		case err != nil:
			r.notes = append(r.notes, fmt.Sprintf("this kernel has no event %s: %s cannot be told", k.Name, k.Tells))
			continue
		}
		f, err := ftrace.NewFormat(string(b))
		if err != nil {
			r.notes = append(r.notes, fmt.Sprintf("this kernel's format of event %s cannot be read: %s cannot be told (%v)", k.Name, k.Tells, err))
			continue
		}
		r.formats[f.ID] = f
		ids = append(ids, uint64(f.ID))
	}
	if len(ids) == 0 {
		return nil, errors.New("the kernel has none of the known events of NFS over RDMA")
	}
	return ids, nil
}

// open opens an event on a processor. The first one there gets a ring, in which the others write.
func (r *eventReader) open(id uint64, cpu int, leaders map[int]int, size int) error {
	attr := &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_TRACEPOINT, Size: unix.PERF_ATTR_SIZE_VER3, Config: id, Sample: 1,
		Sample_type: unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_RAW, Bits: unix.PerfBitUseClockID, Clockid: unix.CLOCK_MONOTONIC,
		Read_format: unix.PERF_FORMAT_LOST,
	}
	fd, err := unix.PerfEventOpen(attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.0 only the rings tell what was lost
		attr.Read_format = 0
		fd, err = unix.PerfEventOpen(attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	}
	switch {
	case errors.Is(err, unix.ENODEV): // it has just gone
		return nil
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: each of %d events needs one on each processor: raise the limit with ulimit -n", err, len(r.formats))
	case err != nil:
		return fmt.Errorf("perf event: %w", err)
	}
	r.fds = append(r.fds, fd)
	if leader, ok := leaders[cpu]; ok {
		return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, leader)
	}
	page := os.Getpagesize()
	var mem []byte
	for ; ; size /= 2 {
		mem, err = unix.Mmap(fd, 0, page+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err == nil {
			break
		}
		if size <= leastBlock {
			return fmt.Errorf("a ring of %d KiB for events: %w", size>>10, err)
		}
	}
	leaders[cpu] = fd
	r.leaders, r.mem = append(r.leaders, fd), append(r.mem, mem)
	at := (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0]))
	r.rings = append(r.rings, &eventRing{cpu: cpu, data: mem[page : page+size], head: &at.Data_head, tail: &at.Data_tail})
	return nil
}

// eventBytes is the size of the ring of a processor, a power of two.
func (o *Options) eventBytes(cpus int) int {
	total := o.RingSize
	if total <= 0 {
		total = defaultRing
	}
	size := leastBlock
	for size < mostEvents && 2*size*cpus <= total {
		size *= 2
	}
	return size
}

const mostEvents = 8 << 20

// refused explains that the kernel does not let the program read its events.
func refused(sys string, err error) error {
	switch {
	case !errors.Is(err, fs.ErrPermission):
		return err
	case strings.Contains(line(filepath.Join(sys, "kernel/security/lockdown")), "[confidentiality]"):
		return fmt.Errorf("the kernel is locked down (confidentiality) and shows its events to nobody: %w", err)
	}
	return fmt.Errorf("reading the kernel's events needs root: run it with sudo: %w", err)
}

// processors reads a list such as "0-3,6".
func processors(text string) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		a, b, several := strings.Cut(part, "-")
		if !several {
			b = a
		}
		first, err1 := strconv.ParseUint(a, 10, 16)
		last, err2 := strconv.ParseUint(b, 10, 16)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("processors that are online: %q", text)
		}
		for n := first; n <= last; n++ {
			list = append(list, int(n))
		}
	}
	return list, nil
}

// monotonic is the clock of the events, in nanoseconds.
func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// Read implements capture.Reader. It waits until there are events. After Stop it returns those that came before, then io.EOF.
func (r *eventReader) Read(b *capture.Batch) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	b.Reset()
	for r.err == nil {
		if r.closing.Load() {
			r.err = os.ErrClosed
			break
		}
		now := monotonic()
		if r.stopped == 0 && r.stopping.Load() {
			r.stopped = now
		}
		until := now - int64(settled)
		if r.stopped != 0 {
			until = min(until, r.stopped)
		}
		for _, g := range r.rings {
			g.look()
		}
		if r.fill(b, until); len(b.Packets) > 0 {
			return nil
		}
		if r.stopped != 0 && until == r.stopped {
			r.err = io.EOF
			break
		}
		if err := r.wait(); err != nil {
			r.err = err
		}
	}
	return r.err
}

// wait waits for Stop, a ring that is half full, or some time.
func (r *eventReader) wait() error {
	r.polls = r.poll(r.polls[:0])
	for _, fd := range r.leaders {
		r.polls = append(r.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if _, err := unix.Poll(r.polls, int(eventPause.Milliseconds())); err != nil && err != unix.EINTR {
		return fmt.Errorf("waiting for events: %w", err)
	}
	return nil
}

// Stats implements Source.
func (r *eventReader) Stats() []Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.count()
	}
	lost := max(r.lost.Load(), r.counted) // a ring tells of a loss with the next event only
	return []Stats{{Interface: Events, Received: r.received.Load() + lost, Dropped: lost}}
}

// count asks the kernel how many events were lost.
func (r *eventReader) count() {
	r.counted = 0
	var b [16]byte // how often the event came, and how often it was lost
	for _, fd := range r.fds {
		if n, err := unix.Read(fd, b[:]); err == nil && n == len(b) {
			r.counted += native.Uint64(b[8:])
		}
	}
}

// Notes implements Source.
func (r *eventReader) Notes() []string { return r.notes }

// Taps implements capture.Tapper.
func (r *eventReader) Taps() []capture.Tap {
	return []capture.Tap{{File: Events, Name: Events, Link: capture.LinkTrace, Description: capture.TraceSchema}}
}

// Problems implements capture.Reader.
func (r *eventReader) Problems() ([]*capture.Problem, int) { return r.problems.get() }

// Close implements Source.
func (r *eventReader) Close() error {
	r.stopper.close(func() {
		r.count()
		for _, m := range r.mem {
			_ = unix.Munmap(m)
		}
		for _, fd := range r.fds {
			unix.Close(fd)
		}
	})
	return nil
}
