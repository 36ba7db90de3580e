package live

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/capture/pcapfilter"
)

// ring is a socket with its ring of blocks.
type ring struct {
	name   string
	index  int // of the interface; 0 is any
	hatype uint16
	tap    int // -1 for any
	sys    string
	fd     int
	mem    []byte
	layout layout

	next    int  // the block to be read next, or being read
	front   int  // bytes before the data of each packet
	held    bool // it is being read
	walk    walker
	head    record      // the next packet, if has is set
	has     bool        //
	ready   int         // blocks from next on that were found to be ours
	found   []time.Time // when, by block
	empty   time.Time   // when the next block was last found not to be there
	err     error       // why the interface can be captured no more
	undo    func()      // takes back the setting of the adapter's clock
	stats   Stats
	missing *os.File // rx_missed_errors; nil if there is none
	missed  uint64   // its value at the start
}

// group is a set of rings of which each gets a part of the packets (PACKET_FANOUT of packet(7)).
type group struct {
	id   uint16
	mode int  // PACKET_FANOUT_…
	make bool // the kernel chooses an identifier that nobody else uses
}

// errGroup means that the kernel did not let a ring join its group.
var errGroup = errors.New("fanout group")

// join adds a ring that is bound.
func (g *group) join(r *ring) error {
	v := int(g.id) | g.mode<<16
	if g.make {
		v = (g.mode | unix.PACKET_FANOUT_FLAG_UNIQUEID) << 16
	}
	if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_FANOUT, v); err != nil {
		return fmt.Errorf("%w %d: %w", errGroup, g.id, err)
	}
	if !g.make {
		return nil
	}
	v, err := unix.GetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_FANOUT)
	if err != nil {
		return fmt.Errorf("%w: %w", errGroup, err)
	}
	g.id, g.make = uint16(v), false
	return nil
}

// admit lets a ring that is bound join, and take packets from then on. Without a group it does already.
func (g *group) admit(r *ring, prog []bpf.Instruction) error {
	if g == nil {
		return nil
	}
	if err := g.join(r); err != nil {
		return &InterfaceError{r.name, "cannot be shared", err}
	}
	if err := r.attach(prog); err != nil {
		return fmt.Errorf("%s: filter: %w", r.name, err)
	}
	return nil
}

// openRing opens a ring, in a group if that is not nil. Until it is in its group, it takes nothing: it would take the
// packets of the others, too.
func openRing(name string, opt *Options, l layout, of *group) (_ *ring, err error) {
	r := &ring{name: name, layout: l, fd: -1, sys: opt.sys(), tap: -1}
	r.stats.Interface = name
	frame := pcapfilter.Mixed
	if name != "any" {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return nil, noInterface(name, r.sys)
		}
		if i.Flags&net.FlagUp == 0 {
			return nil, &InterfaceError{Interface: name, Text: "the interface is down: bring it up with ip link set " + name + " up"}
		}
		r.index = i.Index
		r.hatype = uint16(sysNumber(r.sys, name, "type"))
		frame = pcapfilter.Network
		if r.hatype == arphrdEthernet || r.hatype == arphrdLoopback {
			frame = pcapfilter.Ethernet
		}
	}
	prog, err := opt.Filter.Compile(pcapfilter.Options{Frame: frame, Kernel: true, DropEcho: true, Snap: uint32(opt.SnapLen)})
	if err != nil {
		return nil, err
	}
	// Without a protocol the socket takes nothing until it is bound.
	r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return nil, &PermissionError{err}
	case err != nil:
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err = unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return nil, fmt.Errorf("%s: packet ring of version 3: %w", name, err)
	}
	at := prog
	if of != nil {
		at = nothing
	}
	if err = r.attach(at); err != nil {
		return nil, fmt.Errorf("%s: filter: %w", name, err)
	}
	if opt.Segments && reportsSegments() && unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1) == nil {
		r.front = netHeader
	}
	req := unix.TpacketReq3{
		Block_size: uint32(l.block), Block_nr: uint32(l.blocks),
		Frame_size: leastBlock, Frame_nr: uint32(l.block / leastBlock * l.blocks), // checked by the kernel, of no use in version 3
		Retire_blk_tov: uint32(l.retire.Milliseconds()),
	}
	if err = unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return nil, fmt.Errorf("%s: a ring of %d KiB: %w", name, l.block*l.blocks>>10, err)
	}
	if r.mem, err = unix.Mmap(r.fd, 0, l.block*l.blocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("%s: a ring of %d KiB: %w", name, l.block*l.blocks>>10, err)
	}
	if err = unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: r.index}); err != nil {
		return nil, &InterfaceError{name, "cannot be captured on", err}
	}
	if opt.Promiscuous {
		if r.index == 0 {
			return nil, errors.New("any cannot be promiscuous: name the interfaces")
		}
		m := unix.PacketMreq{Ifindex: int32(r.index), Type: unix.PACKET_MR_PROMISC}
		if err = unix.SetsockoptPacketMreq(r.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			return nil, &InterfaceError{name, "promiscuous mode", err}
		}
	}
	if err = of.admit(r, prog); err != nil {
		return nil, err
	}
	return r, nil
}

// countMissed counts from now on what the interface itself misses. The file stays open: the program may give up the
// right to open files.
func (r *ring) countMissed(sys string) {
	if f, err := os.Open(filepath.Join(sys, "class/net", r.name, "statistics/rx_missed_errors")); err == nil {
		r.missing, r.missed = f, readCounter(f)
	}
}

// reportsSegments reports whether the kernel can report the segments of UDP: before Linux 6.2 it drops those
// packets instead.
func reportsSegments() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	return since(unix.ByteSliceToString(u.Release[:]), 6, 2)
}

// since reports whether a release of the kernel, as "6.12.3-amd64", is at least
// one.
func since(release string, major, minor int) bool {
	var x, y int
	if n, _ := fmt.Sscanf(release, "%d.%d", &x, &y); n != 2 {
		return false
	}
	return x > major || x == major && y >= minor
}

// readCounter reads a counter of sysfs again; 0 if the interface is gone.
func readCounter(f *os.File) uint64 {
	var b [24]byte
	n, _ := f.ReadAt(b[:], 0)
	v, _ := strconv.ParseUint(strings.TrimSpace(string(b[:n])), 10, 64)
	return v
}

// nameOf and isUp use the packet socket, which is already open: a program without privileges may not be
// allowed to open another.

// nameOf is the name of an interface now; empty if there is none.
func (r *ring) nameOf(index int) string {
	q, err := unix.NewIfreq("")
	if err != nil {
		return ""
	}
	q.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(r.fd, unix.SIOCGIFNAME, q); err != nil {
		return ""
	}
	return q.Name()
}

// isUp reports whether an interface is up.
func (r *ring) isUp(name string) bool {
	q, err := unix.NewIfreq(name)
	if err != nil {
		return false
	}
	return unix.IoctlIfreq(r.fd, unix.SIOCGIFFLAGS, q) == nil && q.Uint16()&unix.IFF_UP != 0
}

// noInterface explains why a name is none of an interface.
func noInterface(name, sys string) error {
	if d := findRDMA(sys, name); d != nil {
		return &InterfaceError{Interface: name, Text: d.explain()}
	}
	return &InterfaceError{Interface: name, Text: "there is no such interface (-D lists them)"}
}

// bigEndian is a number whose bytes in memory are in network order.
func bigEndian(v uint16) uint16 {
	return native.Uint16([]byte{byte(v >> 8), byte(v)})
}

// attach sets the filter.
func (r *ring) attach(prog []bpf.Instruction) error {
	raw, err := bpf.Assemble(prog)
	if err != nil {
		return err
	}
	f := make([]unix.SockFilter, len(raw))
	for i, ins := range raw {
		f[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	return unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]})
}

// nothing is a filter that accepts no packet.
var nothing = []bpf.Instruction{bpf.RetConstant{Val: 0}}

// shut lets no more packets in.
func (r *ring) shut() { _ = r.attach(nothing) }

func (r *ring) block(i int) []byte { return r.mem[i*r.layout.block : (i+1)*r.layout.block] }

func (r *ring) status(i int) *uint32 {
	return (*uint32)(unsafe.Pointer(&r.block(i)[blockStatus]))
}

// look finds out which blocks the kernel has handed over.
func (r *ring) look(now time.Time) {
	if r.found == nil {
		r.found = make([]time.Time, r.layout.blocks)
	}
	for r.ready < r.layout.blocks {
		i := (r.next + r.ready) % r.layout.blocks
		if atomic.LoadUint32(r.status(i))&statusUser == 0 {
			break
		}
		r.found[i] = now
		r.ready++
	}
	if r.ready == 0 {
		r.empty = now
	}
}

// peek makes head the next packet, if there is one in the blocks that look has
// found.
func (r *ring) peek(p *problems) bool {
	for !r.has {
		if !r.held {
			if r.ready == 0 {
				return false
			}
			r.held = true
			r.walk.start(r.block(r.next), r.front)
		}
		for r.walk.next(&r.head) {
			if !r.head.echo() {
				r.has = true
				return true
			}
		}
		if r.walk.err != nil {
			p.add(r.name, r.walk.err)
		}
		atomic.StoreUint32(r.status(r.next), 0)
		r.held = false
		r.ready--
		r.next = (r.next + 1) % r.layout.blocks
	}
	return true
}

// seen is when the block of head was found.
func (r *ring) seen() time.Time { return r.found[r.next] }

// crowded reports whether half of the ring waits to be read.
func (r *ring) crowded() bool { return r.ready > r.layout.blocks/2 }

// failure finds out what an error of the socket means.
func (r *ring) failure() {
	e, err := unix.GetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	switch {
	case r.err != nil || err == nil && e == 0:
	case err != nil:
		r.err = &InterfaceError{r.name, "the capture failed", err}
	case unix.Errno(e) != unix.ENETDOWN:
		r.err = &InterfaceError{r.name, "the capture failed", unix.Errno(e)}
	default:
		text := "the interface went down"
		if name := r.nameOf(r.index); name == "" {
			text = "the interface is gone"
		} else if r.isUp(name) {
			text = "the interface went down and came back; packets between are missing"
		}
		r.err = &InterfaceError{Interface: r.name, Text: text}
	}
}

// count adds what the kernel counted since it was last asked.
func (r *ring) count() {
	if r.fd >= 0 {
		if s, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			r.stats.Received += uint64(s.Packets)
			r.stats.Dropped += uint64(s.Drops)
		}
		if r.missing != nil {
			if n := readCounter(r.missing); n > r.missed {
				r.stats.Missed = n - r.missed
			}
		}
	}
}

func (r *ring) close() {
	if r.undo != nil {
		r.undo()
		r.undo = nil
	}
	if r.missing != nil {
		r.missing.Close()
		r.missing = nil
	}
	if r.mem != nil {
		_ = unix.Munmap(r.mem)
		r.mem = nil
	}
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}
