// Package mountstats reads /proc/self/mountstats: what the Linux NFS client counted of each mount.
//
// Versions 1.0 and 1.1 of the file differ in the last number of an operation, its errors, which 1.0 does not
// have. Lines and mounts that are not of NFS are left out.
//
// It is independent of the rest of the module, so that the two sides of the comparison with the kernel cannot
// share a mistake.
package mountstats

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Mount is an NFS mount.
type Mount struct {
	Device  string // server:/path
	Point   string // where it is mounted
	Type    string // nfs, nfs4
	Version string // of the statistics: 1.1
	Age     uint64 // seconds since it was mounted
	Options string // of the mount, as the kernel prints them

	Program        string // as the kernel names it: nfs
	ProgramNumber  uint32
	ProgramVersion uint32 // 3, 4
	Transports     []Transport
	Ops            []Op
}

// Transport is a line "xprt:". What its numbers mean depends on the protocol.
type Transport struct {
	Protocol string // rdma, tcp, udp, local
	Numbers  []uint64
}

// Op is what was counted of one operation. Times are milliseconds, summed up
// over all calls.
type Op struct {
	Name      string
	Calls     uint64
	Sent      uint64 // transmissions: more than Calls if some were retransmitted
	Timeouts  uint64 // major ones
	SentBytes uint64
	RecvBytes uint64
	Queue     uint64 // from the start of the task until it was sent
	RTT       uint64 // from the transmission to the reply
	Execute   uint64 // from the start of the task to its end
	Errors    uint64
	HasErrors bool // version 1.1
}

// Limits of what is kept. What is beyond is counted in Stats.
const (
	maxLine       = 64 << 10
	maxMounts     = 1024
	maxOps        = 1 << 16 // of all mounts
	maxTransports = 1 << 12 // of all mounts; nconnect makes several of one
	maxText       = 4096    // bytes of a device, mount point or list of options
	maxNumbers    = 64
)

// Stats tells what was left out.
type Stats struct {
	Malformed uint64 // lines that begin as known ones and could not be read
	Beyond    uint64 // mounts, operations and transports beyond the limits
}

// Parse reads a file.
func Parse(r io.Reader) ([]*Mount, Stats, error) {
	var p parser
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			p.stats.Malformed++
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = b.ReadSlice('\n')
			}
			line = nil
		}
		if errors.Is(err, io.EOF) {
			// The kernel ends lines. One without an end is cut, perhaps within a number.
			if len(bytes.TrimSpace(line)) > 0 {
				p.stats.Malformed++
			}
			return p.mounts, p.stats, nil
		}
		p.line(string(line))
		if err != nil {
			return p.mounts, p.stats, err
		}
	}
}

type parser struct {
	mounts     []*Mount
	m          *Mount // the one at hand; nil between those of interest
	perOp      bool
	ops        int
	transports int
	stats      Stats
}

func (p *parser) line(line string) {
	f := strings.Fields(line)
	if len(f) == 0 {
		return
	}
	if f[0] == "device" {
		p.device(f)
		return
	}
	m := p.m
	if m == nil {
		return
	}
	switch {
	case f[0] == "per-op":
		p.perOp = true
	case p.perOp && strings.HasSuffix(f[0], ":"):
		p.op(f)
	case f[0] == "opts:" && len(f) > 1:
		m.Options = cut(strings.Join(f[1:], " "))
	case f[0] == "age:" && len(f) > 1:
		m.Age, _ = strconv.ParseUint(f[1], 10, 64)
	case f[0] == "RPC":
		p.program(f)
	case f[0] == "xprt:" && len(f) > 1:
		p.transport(f)
	}
}

// device begins a mount:
//
//	device 192.0.2.1:/export mounted on /mnt with fstype nfs4 statvers=1.1
func (p *parser) device(f []string) {
	p.m, p.perOp = nil, false
	if len(f) < 8 || f[6] != "fstype" || !strings.HasPrefix(f[7], "nfs") || f[7] == "nfsd" {
		return
	}
	if len(p.mounts) >= maxMounts {
		p.stats.Beyond++
		return
	}
	m := &Mount{Device: cut(f[1]), Point: cut(f[4]), Type: cut(f[7])}
	if len(f) > 8 {
		m.Version = cut(strings.TrimPrefix(f[8], "statvers="))
	}
	p.m = m
	p.mounts = append(p.mounts, m)
}

// program reads
//
//	RPC iostats version: 1.1  p/v: 100003/3 (nfs)
func (p *parser) program(f []string) {
	for i := range f {
		if f[i] != "p/v:" || i+1 >= len(f) {
			continue
		}
		a, b, _ := strings.Cut(f[i+1], "/")
		number, err1 := strconv.ParseUint(a, 10, 32)
		version, err2 := strconv.ParseUint(b, 10, 32)
		if err1 != nil || err2 != nil {
			p.stats.Malformed++
			return
		}
		p.m.ProgramNumber, p.m.ProgramVersion = uint32(number), uint32(version)
		if i+2 < len(f) {
			p.m.Program = cut(strings.Trim(f[i+2], "()"))
		}
		return
	}
}

func (p *parser) transport(f []string) {
	if p.transports >= maxTransports {
		p.stats.Beyond++
		return
	}
	n, ok := numbers(f[2:])
	if !ok {
		p.stats.Malformed++
		return
	}
	p.transports++
	p.m.Transports = append(p.m.Transports, Transport{Protocol: cut(f[1]), Numbers: n})
}

// op reads
//
//	READ: 11 11 0 1100 1263736 2 153 157 0
func (p *parser) op(f []string) {
	n, ok := numbers(f[1:])
	if !ok || len(n) < 8 {
		p.stats.Malformed++
		return
	}
	if p.ops >= maxOps {
		p.stats.Beyond++
		return
	}
	p.ops++
	o := Op{
		Name: cut(strings.TrimSuffix(f[0], ":")), Calls: n[0], Sent: n[1], Timeouts: n[2], SentBytes: n[3], RecvBytes: n[4],
		Queue: n[5], RTT: n[6], Execute: n[7],
	}
	if len(n) > 8 {
		o.Errors, o.HasErrors = n[8], true
	}
	p.m.Ops = append(p.m.Ops, o)
}

func numbers(f []string) ([]uint64, bool) {
	if len(f) > maxNumbers {
		return nil, false
	}
	n := make([]uint64, len(f))
	for i := range f {
		var err error
		if n[i], err = strconv.ParseUint(f[i], 10, 64); err != nil {
			return nil, false
		}
	}
	return n, true
}

// cut bounds what is kept of a word, and lets go of the line that it is part
// of.
func cut(s string) string { return strings.Clone(s[:min(len(s), maxText)]) }

// Option returns the value of a mount option, such as vers.
func (m *Mount) Option(name string) string {
	for o := range strings.SplitSeq(m.Options, ",") {
		if key, value, _ := strings.Cut(o, "="); key == name {
			return value
		}
	}
	return ""
}

// Server is the host part of the device, without brackets around an IPv6
// address.
func (m *Mount) Server() string {
	i := strings.LastIndex(m.Device, ":/")
	if i < 0 {
		return m.Device
	}
	return strings.Trim(m.Device[:i], "[]")
}
