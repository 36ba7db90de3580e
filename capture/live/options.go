package live

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
)

// Source is a live capture.
type Source interface {
	// Read waits until there are packets. After Stop it returns those that were captured, then io.EOF. If an interface fails, an
	// *InterfaceError comes after all packets.
	capture.Reader
	capture.Tapper
	// Stop ends the capture: Read delivers what was captured and then returns io.EOF. It may be called at any time, from any
	// goroutine, and again.
	Stop()
	// Stats returns the counters of each interface. Close keeps the last ones.
	Stats() []Stats
	// Notes are remarks on what was not possible, or cannot be seen.
	Notes() []string
	// Close ends the capture without delivering the rest. A pending Read returns os.ErrClosed.
	Close() error
}

// Size of a batch: its decoded form fits the caches of a processor.
const (
	batchBytes   = 256 << 10
	batchPackets = 512
)

// Options say what is captured. Interfaces must be set.
type Options struct {
	// Interfaces are names of network interfaces; each is a tap; or Events, alone. Packets of several interfaces are merged by
	// time. "any", alone, means all interfaces, including those that appear later; each becomes a tap with
	// its first packet.
	Interfaces []string
	// Filter selects packets in the kernel; nil selects all. Packets that leave by a loopback interface are
	// always left out, since each comes in again.
	Filter *pcapfilter.Expr
	// SnapLen is how many bytes of a packet are kept; 0 means all.
	SnapLen int
	// RingSize is the memory for packets that wait to be read, in bytes, of
	// all interfaces together; 0 means 64 MiB.
	RingSize int
	// BlockSize is the size in bytes of the pieces of a ring: the kernel hands
	// one over when it is full, or after Retire. A packet longer than that is
	// cut. It is a power of two, at least 64 KiB; 0 means 1 MiB, or less if
	// the ring is small.
	BlockSize int
	// Retire is how long a packet waits in a block that is not full: up to
	// twice this. 0 means 50 ms, or 10 ms with several Rings. Packets of several rings wait as long again, to
	// be merged.
	Retire time.Duration
	// Promiscuous takes frames to other stations, too.
	Promiscuous bool
	// HardwareTime uses the timestamps of the adapter if it has them for all packets. The adapter's clock
	// differs from the system's unless something synchronises them, and sent packets still have the system's
	// time. Needs CAP_NET_ADMIN.
	HardwareTime bool
	// KeepClock leaves the adapter stamping all packets after the end. A program that gives up CAP_NET_ADMIN
	// in between has to do that. A note explains how to set it back.
	KeepClock bool
	// Segments asks the kernel for the size of the segments that it will make of
	// a packet, or has merged (capture.Packet.Segment). Linux tells it from
	// version 6.2 on; before, the option has no effect. The kernel cannot tell
	// it of SCTP and of datagrams that a virtual machine leaves to it to
	// fragment, and drops these, counted in Dropped: set it where Filter takes
	// TCP, UDP and tunnels only.
	Segments bool
	// Rings is how many rings share the packets of an interface, at most 64; 0 means one. The kernel puts a
	// packet into the ring of the processor that handles it, so that processors which receive at the same
	// time do not wait for each other. The packets are merged by time, as those of several interfaces are. If
	// the kernel cannot do that, there is one ring, and a note.
	Rings int
	// Fanout, if set, shares the packets with others of the same group. It excludes several Rings: a socket is
	// in one group.
	Fanout *Fanout
	// EventLevel and EventFilter choose among the kernel's Events; by default all are taken, with a filter those of level ftrace.Calls.
	EventLevel  ftrace.Level
	EventFilter *EventFilter
	// SysRoot is where sysfs is mounted; empty means /sys.
	SysRoot string
}

// Fanout is a group of captures on the same interface, of this or other processes. Each packet goes to one of
// them: those of a flow (addresses and ports, in either direction) to the same one. The two directions of a
// RoCE connection are different flows, since their UDP source ports differ; only a merge of everything the
// group has written shows whole connections.
type Fanout struct {
	Group uint16
}

// Stats counts the packets of an interface since the capture began.
type Stats struct {
	Interface string
	Tap       int    // first tap of it
	Received  uint64 // that the filter took, those dropped included
	Dropped   uint64 // because the ring was full
	Missed    uint64 // by the interface itself, of whatever kind (rx_missed_errors)
	// Calls compares the kernel's Events with what it counts of NFS, over all transports.
	Calls []Calls
	// Rings are the parts of Received and Dropped, if there are several rings.
	Rings []RingStats
}

// RingStats counts the packets of one of several rings of an interface.
type RingStats struct{ Received, Dropped uint64 }

// Calls are the calls of NFS of the kernel's client, or to its server: Counted by the kernel when they begin, Ended by the events of their
// ends (of a server: of the begin of their execution). Calls that are under way make them differ.
type Calls struct {
	Server         bool
	Counted, Ended uint64
}

// ErrUnsupported means that there is no live capture on this system.
var ErrUnsupported = errors.New("live capture works on Linux only")

// PermissionError says that the process may not capture.
type PermissionError struct{ Err error }

func (e *PermissionError) Error() string {
	exe, err := os.Executable()
	if err != nil {
		exe = "rpcrdma-dump"
	}
	return fmt.Sprintf("capturing needs the capability CAP_NET_RAW (%v): run as root with sudo, or grant it once: sudo setcap cap_net_raw+ep %s", e.Err, exe)
}

func (e *PermissionError) Unwrap() error { return e.Err }

// InterfaceError means that an interface can no longer be captured on, or could not from the start.
type InterfaceError struct {
	Interface string
	Text      string
	Err       error // or nil
}

func (e *InterfaceError) Error() string {
	if e.Err == nil {
		return e.Interface + ": " + e.Text
	}
	return fmt.Sprintf("%s: %s: %v", e.Interface, e.Text, e.Err)
}

func (e *InterfaceError) Unwrap() error { return e.Err }

func (o *Options) sys() string {
	if o.SysRoot != "" {
		return o.SysRoot
	}
	return "/sys"
}

const (
	defaultRing   = 64 << 20
	defaultBlock  = 1 << 20
	leastBlock    = 64 << 10
	greatestBlock = 64 << 20
	leastBlocks   = 4 // of a ring
	greatestRing  = 8 << 30
	defaultRetire = 50 * time.Millisecond
	ringsRetire   = 10 * time.Millisecond // with several rings, which wait for each other
	mostRings     = 64                    // of an interface
)

// layout is the size of a ring.
type layout struct {
	block, blocks int
	retire        time.Duration
}

func (o *Options) layout() (layout, error) {
	l := layout{block: o.BlockSize, retire: o.Retire}
	ring := o.RingSize
	if ring == 0 {
		ring = defaultRing
	}
	if ring < 0 || int64(ring) > greatestRing {
		return l, fmt.Errorf("a ring of %d bytes is not possible: at most %d", o.RingSize, int64(greatestRing))
	}
	if o.Rings < 0 || o.Rings > mostRings {
		return l, fmt.Errorf("%d rings for an interface are not possible: at most %d", o.Rings, mostRings)
	}
	if o.Rings > 1 && o.Fanout != nil {
		return l, errors.New("several rings and a fanout group exclude each other: a ring is in one group")
	}
	ring /= max(1, len(o.Interfaces)) * max(1, o.Rings)
	if l.block == 0 {
		for l.block = defaultBlock; l.block > leastBlock && l.block > ring/8; {
			l.block /= 2
		}
	}
	if l.block < leastBlock || l.block > greatestBlock || l.block&(l.block-1) != 0 {
		return l, fmt.Errorf("a block of %d bytes is not possible: a power of two from %d to %d", l.block, leastBlock, greatestBlock)
	}
	l.blocks = max(leastBlocks, ring/l.block)
	if l.retire <= 0 {
		l.retire = defaultRetire
		if o.Rings > 1 {
			l.retire = ringsRetire
		}
	}
	l.retire = min(max(l.retire, time.Millisecond), 10*time.Second)
	if o.SnapLen < 0 {
		return l, fmt.Errorf("a snapshot length of %d bytes is not possible", o.SnapLen)
	}
	return l, nil
}
