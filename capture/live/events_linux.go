package live

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
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

	opt      *Options
	dir      string // of the events in tracefs
	cpus     []int
	onCPU    map[int]int // leaders
	absent   []string    // modules that are not loaded
	counters []*counter
	surveyed int64            // when modules and transports were looked at
	known    map[uint32]link  // transports
	rpc      []rpcCounter     // of the client, of the server
	compared []Calls          // guarded by mu
	missing  map[uint32]int64 // transports that sysfs does not have, and when it was asked
}

// link is a transport of the client: its path and address, and when sysfs has had it last.
type link struct {
	name string
	seen int64
}

// modules have the events of a system that may not be there at the start.
var modules = map[string]string{"rpcrdma": "rpcrdma", "sunrpc": "sunrpc", "nfs": "nfs", "nfs4": "nfsv4", "nfsd": "nfsd"}

// surveyEvery is how often modules and transports are looked at.
const surveyEvery = int64(time.Second)

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
	r.opt, r.chooser.EventFilter = opt, opt.EventFilter
	found, err := r.find(opt.sys())
	if err != nil {
		return nil, err
	}
	if r.cpus, err = processors(line(filepath.Join(opt.sys(), "devices/system/cpu/online"))); err != nil {
		return nil, err
	}
	r.onCPU = make(map[int]int)
	if err := r.openAll(found); err != nil {
		return nil, err
	}
	if err := r.openWake(); err != nil {
		return nil, err
	}
	r.surveyed = monotonic()
	r.wall = time.Now().UnixNano() - r.surveyed
	r.last = r.surveyed + r.wall
	r.transports()
	r.unknown = r.lookUp
	r.counters = counters(opt.sys())
	for _, name := range []string{"nfs", "nfsd"} {
		r.rpc = append(r.rpc, newRPCCounter(filepath.Join("/proc/net/rpc", name)))
	}
	return r, nil
}

// openAll opens events on all processors.
func (r *eventReader) openAll(list []found) error {
	for _, x := range list {
		for _, cpu := range r.cpus {
			if err := r.open(x, cpu, r.onCPU, r.opt.eventBytes(len(r.cpus))); err != nil {
				return refused(r.opt.sys(), err)
			}
		}
	}
	return nil
}

// survey notices modules that were loaded, and transports that were set up.
func (r *eventReader) survey(now int64) {
	if now-r.surveyed < surveyEvery {
		return
	}
	r.surveyed = now
	r.sample()
	r.transports()
	r.absent = slices.DeleteFunc(r.absent, func(module string) bool {
		if !exists(filepath.Join(r.opt.sys(), "module", module)) {
			return false
		}
		list, err := r.read(module)
		if err == nil && len(list) > 0 {
			r.mu.Lock()
			err = r.openAll(list)
			r.mu.Unlock()
		}
		if err != nil {
			r.problems.add(Events, fmt.Errorf("the module %s was loaded after the start: its events are missing; start again (%w)", module, err))
		}
		return true
	})
}

// transports puts the client's transports that are new among the events: sysfs has their numbers, types and addresses (Linux 5.14). One that
// has gone is forgotten once all its calls have been read: the next one gets its number.
func (r *eventReader) transports() {
	names, _ := filepath.Glob(filepath.Join(r.opt.sys(), "kernel/sunrpc/xprt-switches/*/xprt-*-*"))
	now := monotonic()
	if r.known == nil {
		r.known, r.chooser.servers = make(map[uint32]link), make(map[uint32]netip.Addr)
	}
	for _, name := range names {
		peer := line(filepath.Join(name, "dstaddr"))
		part := strings.SplitN(filepath.Base(name), "-", 3)
		number, err := strconv.ParseUint(part[1], 10, 32)
		addr, err2 := netip.ParseAddr(peer)
		if err != nil || err2 != nil {
			continue
		}
		x := link{name + " " + peer, now}
		old := r.known[uint32(number)]
		if r.known[uint32(number)] = x; old.name == x.name {
			continue
		}
		addr = addr.Unmap().WithZone("")
		r.chooser.servers[uint32(number)] = addr
		r.pending = append(r.pending, ftrace.Event{
			Kind: ftrace.Transport, Seen: ftrace.Connected, Transport: uint32(number), Program: []byte(part[2]),
			Peer: netip.AddrPortFrom(addr, 0), Local: towards(addr),
		})
	}
	for number, x := range r.known {
		if now-x.seen > 2*surveyEvery {
			delete(r.known, number)
			delete(r.chooser.servers, number)
			r.pending = append(r.pending, ftrace.Event{Kind: ftrace.Transport, Seen: ftrace.Connected, Transport: number})
		}
	}
}

// towards is the source address of the route to an address; it is not valid if there is no route. RDMA uses the same routes.
func towards(a netip.Addr) netip.AddrPort {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 20049)))
	if err != nil {
		return netip.AddrPort{}
	}
	defer c.Close()
	own := c.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(own.Addr().Unmap().WithZone(""), 0)
}

// lookUp looks for a transport that has been set up since.
func (r *eventReader) lookUp(transport uint32) {
	now := monotonic()
	at, again := r.missing[transport]
	if again && now-at < surveyEvery {
		return
	}
	if r.transports(); r.chooser.servers[transport].IsValid() {
		return
	}
	if r.missing == nil || len(r.missing) > maxThreads {
		r.missing = make(map[uint32]int64)
	}
	r.missing[transport] = now
	if !again && r.opt.level() == ftrace.Calls {
		r.problems.add(Events, fmt.Errorf("calls over transport %d are left out: sysfs does not tell whether it is RDMA; it has gone, or is in another network namespace", transport))
	}
}

// found is an event of the kernel that is taken.
type found struct {
	id     uint64
	name   string
	filter string // what the kernel compares; empty: nothing
}

// find looks the events up in tracefs.
func (r *eventReader) find(sys string) ([]found, error) {
	for _, d := range []string{"kernel/tracing/events", "kernel/debug/tracing/events"} {
		d = filepath.Join(sys, d)
		if _, err := os.ReadDir(d); err == nil {
			r.dir = d
			break
		} else if errors.Is(err, fs.ErrPermission) {
			return nil, refused(sys, err)
		}
	}
	if r.dir == "" {
		return nil, fmt.Errorf("%s: tracefs is not mounted, which describes the kernel's events: mount -t tracefs tracefs %[1]s; a container needs the tracefs of its host", filepath.Join(sys, "kernel/tracing"))
	}
	if !exists(filepath.Join(r.dir, "rpcrdma")) {
		return nil, errors.New("the kernel has no events of RPC over RDMA: its module is not loaded (modprobe rpcrdma)")
	}
	r.formats = make(map[uint16]*ftrace.Format)
	list, err := r.read("")
	if err == nil && len(list) == 0 {
		err = errors.New("the kernel has none of the known events of NFS over RDMA")
	}
	return list, err
}

// read reads the formats of events: those of a module, or all.
func (r *eventReader) read(module string) (list []found, err error) {
	for _, k := range ftrace.Events {
		m := modules[k.System]
		filter, taken := r.opt.EventFilter.kernel(k.Kind)
		if !taken || k.Level > r.opt.level() || module != "" && module != m {
			continue
		}
		b, err := os.ReadFile(filepath.Join(r.dir, k.System, k.Name, "format"))
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil, refused(r.opt.sys(), err)
		case err != nil && !exists(filepath.Join(r.dir, k.System)):
			if !slices.Contains(r.absent, m) && module == "" {
				r.absent = append(r.absent, m) // nobody needs it yet
			}
			continue
		case err != nil:
			r.notes = append(r.notes, fmt.Sprintf("this kernel has no event %s: %s cannot be told", k.Name, k.Only))
			continue
		}
		f, err := ftrace.NewFormat(string(b))
		if err != nil {
			r.notes = append(r.notes, fmt.Sprintf("this kernel's format of event %s cannot be read: %s cannot be told (%v)", k.Name, k.Only, err))
			continue
		}
		if k.Kind == ftrace.Latency && r.opt.level() == ftrace.Calls && !f.Has(ftrace.Connected) {
			r.notes = append(r.notes, "this kernel does not tell which transport a call took: calls of clients cannot be told at level calls, but at level chunks")
		}
		r.formats[f.ID] = f
		list = append(list, found{uint64(f.ID), k.Name, filter})
	}
	return list, nil
}

// open opens an event on a processor. The first one there gets a ring, in which the others write.
func (r *eventReader) open(x found, cpu int, leaders map[int]int, size int) error {
	attr := &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_TRACEPOINT, Size: unix.PERF_ATTR_SIZE_VER3, Config: x.id, Sample: 1,
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
	if x.filter != "" {
		if err := setFilter(fd, x.filter); err != nil {
			return fmt.Errorf("the kernel does not take the filter %s of event %s: %w", x.filter, x.name, err)
		}
	}
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

// setFilter has the kernel drop events, before they are written to a ring.
func setFilter(fd int, expr string) error {
	text, err := unix.BytePtrFromString(expr)
	if err != nil {
		return err
	}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_SET_FILTER, uintptr(unsafe.Pointer(text))); e != 0 {
		return e
	}
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
	if os.Geteuid() == 0 {
		return fmt.Errorf("the kernel's events need CAP_PERFMON and the tracefs of the host: a container needs --cap-add PERFMON --cap-add SYS_ADMIN, no user namespace, and a seccomp profile that allows perf_event_open: %w", err)
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
		r.survey(now)
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
	s := Stats{Interface: Events, Received: r.received.Load() + lost, Dropped: lost}
	if r.opt.EventFilter == nil {
		s.Calls = r.calls()
	}
	return []Stats{s}
}

// calls compares what the kernel has counted with its events.
func (r *eventReader) calls() (list []Calls) {
	if r.closed {
		return r.compared
	}
	for i, c := range r.rpc {
		if n, ok := c.calls(); ok && c.known && n >= c.first {
			list = append(list, Calls{Server: i == 1, Counted: n - c.first, Ended: r.ended[i].Load()})
		}
	}
	r.compared = list
	return list
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
		r.calls()
		for _, m := range r.mem {
			_ = unix.Munmap(m)
		}
		for _, fd := range r.fds {
			unix.Close(fd)
		}
		for _, c := range r.counters {
			c.close()
		}
		for _, c := range r.rpc {
			c.close()
		}
	})
	return nil
}
