//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
)

const sendCommand = "send"

// sent is what the sender reports, as JSON.
type sent struct {
	Packets int
	Bytes   int64
	Wall    time.Duration
	CPU     time.Duration // of sending alone, user and system
	Behind  time.Duration // the longest that a packet was late
}

// sendMain is the sender, a process of its own so that its CPU time is its own.
func sendMain(args []string) error {
	f := flag.NewFlagSet(sendCommand, flag.ContinueOnError)
	name := f.String("i", "", "interface")
	rate := f.Float64("rate", 0, "packets a second")
	seconds := f.Float64("seconds", 0, "how long at most")
	if err := f.Parse(args); err != nil {
		return err
	}
	list, err := load(f.Args(), int(*rate**seconds)+1)
	if err != nil {
		return err
	}
	s, err := send(*name, *rate, list)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// load reads the first frames of captures that the programs take, so that each packet that is sent can be accounted
// for.
func load(files []string, most int) (list [][]byte, err error) {
	prog, err := pcapfilter.Traffic{}.Expr().Compile(pcapfilter.Options{Frame: pcapfilter.Ethernet})
	if err != nil {
		return nil, err
	}
	filter, err := bpf.NewVM(prog)
	if err != nil {
		return nil, err
	}
	r, err := capture.Open(files, capture.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b capture.Batch
	for len(list) < most {
		switch err := r.Read(&b); {
		case errors.Is(err, io.EOF):
			if len(list) == 0 {
				return nil, errors.New("nothing to send")
			}
			return list, nil
		case err != nil:
			return nil, err
		}
		bytes := 0
		for i := range b.Packets {
			bytes += len(b.Packets[i].Data)
		}
		slab := make([]byte, 0, bytes)
		for i := range b.Packets {
			p := &b.Packets[i]
			if p.Link != capture.LinkEthernet || int(p.Length) != len(p.Data) {
				return nil, fmt.Errorf("packet %d: not a whole Ethernet frame", p.Number)
			}
			if n, err := filter.Run(p.Data); n == 0 || err != nil {
				continue
			}
			at := len(slab)
			slab = append(slab, p.Data...)
			list = append(list, slab[at:])
		}
	}
	return list[:min(most, len(list))], nil
}

// message is a struct mmsghdr.
type message struct {
	head unix.Msghdr
	n    uint32
	_    [4]byte
}

// atOnce is how many packets are sent with a system call, at most.
const atOnce = 64

// send puts the frames on an interface at a rate.
func send(name string, rate float64, list [][]byte) (*sent, error) {
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: iface.Index}); err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var vec [atOnce]unix.Iovec
	var msg [atOnce]message
	for i := range msg {
		msg[i].head.Iov, msg[i].head.Iovlen = &vec[i], 1
	}
	s := &sent{}
	before, start := spent(unix.RUSAGE_THREAD), time.Now()
	for s.Packets < len(list) {
		now := time.Since(start)
		due := min(len(list), int(now.Seconds()*rate)+1)
		if due == s.Packets {
			time.Sleep(20 * time.Microsecond)
			continue
		}
		s.Behind = max(s.Behind, now-time.Duration(float64(s.Packets)/rate*1e9))
		n := min(due-s.Packets, atOnce)
		bytes := 0
		for i, f := range list[s.Packets : s.Packets+n] {
			vec[i].Base = &f[0]
			vec[i].SetLen(len(f))
			bytes += len(f)
		}
		for done := 0; done < n; {
			k, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg[done])), uintptr(n-done), 0, 0, 0)
			switch e {
			case 0:
				done += int(k)
			case unix.ENOBUFS, unix.EAGAIN, unix.EINTR:
			default:
				return nil, fmt.Errorf("packet %d: %w", s.Packets+done+1, e)
			}
		}
		s.Packets += n
		s.Bytes += int64(bytes)
	}
	s.Wall, s.CPU = time.Since(start), spent(unix.RUSAGE_THREAD)-before
	return s, nil
}

// spent is the CPU time of this thread or process, user and system.
func spent(whose int) time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(whose, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
