package live

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/capture"
)

// reader captures packets.
type reader struct {
	stopper
	opt      Options
	rings    []*ring
	problems problems
	notes    []string

	number uint64
	failed error     // what ends the capture when all is delivered
	drain  time.Time // until then the kernel delivers what it has; zero during capture
	polls  []unix.PollFd

	// Guarded by mu.
	taps    []capture.Tap
	byIndex map[int32]uint16 // tap by interface, for any
}

// Open starts to capture.
func Open(opt Options) (Source, error) {
	if slices.Contains(opt.Interfaces, Events) {
		r, err := openEvents(&opt)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	r, err := openRings(opt)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func openRings(opt Options) (*reader, error) {
	l, err := opt.layout()
	if err != nil {
		return nil, err
	}
	if len(opt.Interfaces) == 0 {
		return nil, errors.New("no interface named")
	}
	named := make(map[string]bool)
	for _, name := range opt.Interfaces {
		if named[name] {
			return nil, fmt.Errorf("interface %s named twice", name)
		}
		named[name] = true
	}
	if named["any"] && len(named) > 1 {
		return nil, errors.New("any is all interfaces: name no other")
	}
	r := &reader{opt: opt, stopper: stopper{wake: -1}}
	for i, name := range opt.Interfaces {
		if err := r.open(i, name, l); err != nil {
			r.Close()
			return nil, err
		}
	}
	if err := r.openWake(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// open opens the rings of an interface.
func (r *reader) open(i int, name string, l layout) error {
	var of *group
	count := 1
	if f := r.opt.Fanout; f != nil {
		of = &group{id: f.Group, mode: unix.PACKET_FANOUT_HASH}
	} else if r.opt.Rings > 1 {
		of, count = &group{mode: unix.PACKET_FANOUT_CPU, make: true}, r.opt.Rings
	}
	for k := 0; k < count; k++ {
		g, err := openRing(name, &r.opt, l, of)
		if k == 0 && count > 1 && errors.Is(err, errGroup) {
			r.notes = append(r.notes, fmt.Sprintf("%v: one ring instead of %d", err, count))
			of, count = nil, 1
			g, err = openRing(name, &r.opt, l, nil)
		}
		if err != nil {
			return err
		}
		r.rings = append(r.rings, g)
		if g.index != 0 {
			g.tap, g.stats.Tap = i, i
		}
		if r.opt.HardwareTime { // for each ring; the remark is the same
			note := g.hardwareTime(r.opt.KeepClock)
			if k == 0 {
				r.notes = append(r.notes, note)
			}
		}
	}
	g := r.rings[len(r.rings)-count]
	g.countMissed(r.opt.sys())
	r.notes = append(r.notes, Hidden(r.opt.sys(), name)...)
	if g.index != 0 {
		r.taps = append(r.taps, r.tap(name, i, g.hatype))
	}
	return nil
}

func (r *reader) tap(name string, lane int, hatype uint16) capture.Tap {
	return capture.Tap{File: name, Lane: lane, Name: name, Link: linkOf(hatype), SnapLen: uint32(r.opt.SnapLen)}
}

// Read implements capture.Reader. It waits until there are packets. After Stop
// it returns those that were captured, then io.EOF. If an interface fails, an
// *InterfaceError comes after all packets.
func (r *reader) Read(b *capture.Batch) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	b.Reset()
	if r.err != nil {
		return r.err
	}
	for {
		now := time.Now()
		if r.closing.Load() {
			r.err = os.ErrClosed
			b.Reset()
			return r.err
		}
		if r.drain.IsZero() && (r.stopping.Load() || r.failed != nil) {
			for _, g := range r.rings {
				g.shut()
			}
			r.drain = now.Add(r.rings[0].patience())
		}
		until := r.fill(b, now)
		if len(b.Packets) > 0 {
			return nil
		}
		if !r.drain.IsZero() {
			if !now.Before(r.drain) && until.IsZero() {
				if r.err = r.failed; r.err == nil {
					r.err = io.EOF
				}
				return r.err
			}
			until = r.drain
			if !now.Before(until) {
				until = now.Add(time.Millisecond)
			}
		}
		if err := r.wait(now, until); err != nil {
			r.err = err
			return err
		}
	}
}

// patience is the maximum time until a packet in a ring can be read: the timer examines a block up to twice.
// The rest allows for a busy machine.
func (g *ring) patience() time.Duration { return 2*g.layout.retire + 20*time.Millisecond }

// fill takes packets from the rings in time order. If it has to leave a packet because another ring may still
// have an earlier one, it returns the time at which that will be known.
func (r *reader) fill(b *capture.Batch, now time.Time) time.Time {
	for _, g := range r.rings {
		g.look(now)
	}
	for b.Size() < batchBytes && len(b.Packets) < batchPackets {
		var first *ring
		for _, g := range r.rings {
			if g.peek(&r.problems) && (first == nil || g.head.time < first.head.time) {
				first = g
			}
		}
		if first == nil {
			return time.Time{}
		}
		// Whatever another ring got before this block was handed over is
		// there after a while, or was never there.
		known := first.seen().Add(first.patience())
		if r.drain.IsZero() && !first.crowded() {
			for _, g := range r.rings {
				if !g.has && g.empty.Before(known) {
					return known
				}
			}
		} else if !r.drain.IsZero() && now.Before(r.drain) {
			for _, g := range r.rings {
				if !g.has {
					return r.drain
				}
			}
		}
		r.number++
		first.head.add(b, r.number, r.tapOf(first))
		first.has = false
	}
	return time.Time{}
}

// maxTaps bounds the interfaces that any distinguishes.
const maxTaps = 4096

func (r *reader) tapOf(g *ring) uint16 {
	if g.tap >= 0 {
		return uint16(g.tap)
	}
	rec := &g.head
	if t, ok := r.byIndex[rec.index]; ok {
		return t
	}
	name := g.nameOf(int(rec.index))
	if name == "" {
		name = strconv.Itoa(int(rec.index))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.taps) >= maxTaps {
		return maxTaps - 1
	}
	if r.byIndex == nil {
		r.byIndex = make(map[int32]uint16)
	}
	t := uint16(len(r.taps))
	r.byIndex[rec.index] = t
	r.taps = append(r.taps, r.tap(name, len(r.taps), rec.hatype))
	return t
}

// wait waits for packets, for Stop, and until a moment if that is not zero.
func (r *reader) wait(now, until time.Time) error {
	timeout := -1
	if !until.IsZero() {
		timeout = max(1, int((until.Sub(now)+time.Millisecond-1)/time.Millisecond))
	}
	r.polls = r.poll(r.polls[:0])
	for _, g := range r.rings {
		if !g.has && g.err == nil { // else it would not wait
			r.polls = append(r.polls, unix.PollFd{Fd: int32(g.fd), Events: unix.POLLIN})
		}
	}
	_, err := unix.Poll(r.polls, timeout)
	if err != nil && err != unix.EINTR {
		return fmt.Errorf("waiting for packets: %w", err)
	}
	for _, p := range r.polls {
		if p.Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) == 0 {
			continue
		}
		for _, g := range r.rings {
			if g.fd == int(p.Fd) {
				g.failure()
				if r.failed == nil {
					r.failed = g.err
				}
			}
		}
	}
	return nil
}

// Stats implements Source.
func (r *reader) Stats() []Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Stats, 0, len(r.rings))
	for _, g := range r.rings {
		g.count()
		if n := len(list); n == 0 || list[n-1].Interface != g.name {
			list = append(list, g.stats)
			continue
		}
		s := &list[len(list)-1]
		if s.Rings == nil {
			s.Rings = []RingStats{{s.Received, s.Dropped}}
		}
		s.Rings = append(s.Rings, RingStats{g.stats.Received, g.stats.Dropped})
		s.Received += g.stats.Received
		s.Dropped += g.stats.Dropped
	}
	return list
}

// Notes implements Source.
func (r *reader) Notes() []string { return r.notes }

// Taps implements capture.Tapper.
func (r *reader) Taps() []capture.Tap {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taps[:len(r.taps):len(r.taps)] // taps are only ever appended
}

// Problems implements capture.Reader.
func (r *reader) Problems() ([]*capture.Problem, int) { return r.problems.get() }

// Close implements Source.
func (r *reader) Close() error {
	r.stopper.close(func() {
		for _, g := range r.rings {
			g.count()
			g.close()
		}
	})
	return nil
}
