//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/capture/pcapfilter"
)

const emptyCommand = "empty"

// Of the ring of the empty receiver.
const (
	emptyBlock  = 1 << 20
	emptyBlocks = 256
)

// emptyMain captures as the programs do, with the same filter and a ring of the same kind, and does nothing with what
// it gets: what is left is the price of the kernel. It ends like them, with SIGINT and a line that counts.
func emptyMain(args []string) error {
	if len(args) != 2 || args[0] != "-i" {
		return fmt.Errorf("usage: %s -i IFACE", emptyCommand)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT)
	iface, err := net.InterfaceByName(args[1])
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	prog, err := pcapfilter.Traffic{}.Expr().Compile(pcapfilter.Options{Frame: pcapfilter.Ethernet, Kernel: true, DropEcho: true})
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, 0, len(prog))
	for _, i := range prog {
		raw, err := i.Assemble()
		if err != nil {
			return err
		}
		filter = append(filter, unix.SockFilter{Code: raw.Op, Jt: raw.Jt, Jf: raw.Jf, K: raw.K})
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return err
	}
	req := unix.TpacketReq3{
		Block_size: emptyBlock, Block_nr: emptyBlocks, Frame_size: 1 << 12, Frame_nr: emptyBlocks * (emptyBlock >> 12),
		Retire_blk_tov: 20,
	}
	if err := unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return err
	}
	mem, err := unix.Mmap(fd, 0, emptyBlock*emptyBlocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8, Ifindex: iface.Index}); err != nil {
		return err
	}
	for next := 0; ; next = (next + 1) % emptyBlocks {
		// The header of a block follows its version and the offset of its private part.
		h := (*unix.TpacketHdrV1)(unsafe.Pointer(&mem[next*emptyBlock+8]))
		for atomic.LoadUint32(&h.Block_status)&unix.TP_STATUS_USER == 0 {
			select {
			case <-ended:
				// The statistics count what was dropped among the packets.
				s, err := unix.GetsockoptTpacketStatsV3(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(os.Stderr, "empty: %s: %d packets captured, %d dropped for lack of room\n", args[1], s.Packets-s.Drops, s.Drops)
				return err
			default:
			}
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 50); err != nil && err != unix.EINTR {
				return err
			}
		}
		atomic.StoreUint32(&h.Block_status, unix.TP_STATUS_KERNEL)
	}
}
