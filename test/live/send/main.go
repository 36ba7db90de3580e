//go:build linux

// Send puts the packets of captures on a network interface: with their own
// timing, or at a rate. It is for tests of live capture, and needs CAP_NET_RAW.
//
//	send -i veth0 [-rate PACKETS_PER_SECOND] [-count N] FILE...
//
// Frames longer than the MTU are left out. It prints how many it sent, and how
// long that took.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/capture"
)

func main() {
	iface := flag.String("i", "", "interface to send on")
	rate := flag.Float64("rate", 0, "packets a second; 0 keeps the timing of the capture")
	count := flag.Int("count", 0, "packets to send, in rounds if need be; 0 is one round")
	flag.Parse()
	if err := send(*iface, *rate, *count, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "send:", err)
		os.Exit(1)
	}
}

type frame struct {
	at   int64
	data []byte
}

func load(files []string, longest int) (list []frame, err error) {
	r, err := capture.Open(files, capture.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b capture.Batch
	for {
		switch err := r.Read(&b); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, err
		}
		for i := range b.Packets {
			if p := &b.Packets[i]; p.Link == capture.LinkEthernet && len(p.Data) <= longest {
				list = append(list, frame{p.Time, append([]byte(nil), p.Data...)})
			}
		}
	}
}

func send(name string, rate float64, count int, files []string) error {
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	const header = 18 // of Ethernet, with a tag
	list, err := load(files, iface.MTU+header)
	if err != nil || len(list) == 0 {
		return errors.Join(err, errors.New("nothing to send"))
	}
	if count == 0 {
		count = len(list)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrLinklayer{Ifindex: iface.Index}
	if err := unix.Bind(fd, to); err != nil {
		return err
	}
	start, bytes := time.Now(), 0
	for i := range count {
		f := &list[i%len(list)]
		due := time.Duration(f.at-list[0].at) + time.Duration(i/len(list))*time.Duration(list[len(list)-1].at-list[0].at)
		if rate > 0 {
			due = time.Duration(float64(i) / rate * 1e9)
		}
		if d := due - time.Since(start); d > 200*time.Microsecond {
			time.Sleep(d)
		}
		for {
			_, err := unix.Write(fd, f.data)
			if err == nil {
				break
			}
			if err != unix.ENOBUFS && err != unix.EAGAIN && err != unix.EINTR {
				return fmt.Errorf("frame of %d bytes: %w", len(f.data), err)
			}
		}
		bytes += len(f.data)
	}
	d := time.Since(start)
	fmt.Printf("sent %d packets, %d bytes in %.3fs: %.0f packets/s\n", count, bytes, d.Seconds(), float64(count)/d.Seconds())
	return nil
}
