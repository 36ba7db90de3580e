//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// feature sets one of the offloads of an interface (ETHTOOL_S…).
func feature(name string, what, value uint32) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	v := [2]uint32{what, value}
	var r struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(r.name[:unix.IFNAMSIZ-1], name)
	r.data = unsafe.Pointer(&v)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); e != 0 {
		return fmt.Errorf("%s: offload %#x: %w", name, what, e)
	}
	return nil
}

// Of bpf(2), beyond what package unix names.
const (
	helperLookup   = 1
	helperRedirect = 23
	helperTail     = 65
	helperStore    = 190

	// What fits into the page of a frame beside what the kernel needs.
	longestFrame = 2048
	// atOnceXDP is how many frames are sent with a system call, at most. Each call sets up memory first, and at its end
	// waits, some milliseconds and more, until nobody uses the program; meanwhile others send.
	atOnceXDP = 32000
	senders   = 4
)

// insn is a struct bpf_insn.
type insn struct {
	code, regs uint8
	off        int16
	imm        int32
}

// assemble makes the program that puts the next frame of an array into the one at hand, and redirects it. A value of frames is the
// length of a frame, and the frame.
func assemble(counter, frames, longest, ifindex int) []insn {
	const r0, r1, r2, r3, r4, r6, r7, r8, r9, r10 = 0, 1, 2, 3, 4, 6, 7, 8, 9, 10
	var p []insn
	var aborts []int
	add := func(code, dst, src uint8, off int16, imm int) {
		p = append(p, insn{code, src<<4 | dst, off, int32(imm)})
	}
	move := func(dst, src uint8) { add(unix.BPF_ALU64|unix.BPF_MOV|unix.BPF_X, dst, src, 0, 0) }
	set := func(dst uint8, v int) { add(unix.BPF_ALU64|unix.BPF_MOV|unix.BPF_K, dst, 0, 0, v) }
	plus := func(dst uint8, v int) { add(unix.BPF_ALU64|unix.BPF_ADD|unix.BPF_K, dst, 0, 0, v) }
	call := func(helper int) { add(unix.BPF_JMP|unix.BPF_CALL, 0, 0, 0, helper) }
	abortIf := func(cond, reg uint8, v int) {
		aborts = append(aborts, len(p))
		add(unix.BPF_JMP|cond|unix.BPF_K, reg, 0, 0, v)
	}
	// lookup looks for the element whose number is on the stack.
	lookup := func(m int) {
		add(unix.BPF_LD|unix.BPF_IMM|unix.BPF_DW, r1, unix.BPF_PSEUDO_MAP_FD, 0, m)
		add(0, 0, 0, 0, 0)
		move(r2, r10)
		plus(r2, -4)
		call(helperLookup)
		abortIf(unix.BPF_JEQ, r0, 0)
	}
	move(r6, r1)
	add(unix.BPF_ST|unix.BPF_MEM|unix.BPF_W, r10, 0, -4, 0)
	lookup(counter)
	set(r7, 1)
	add(unix.BPF_STX|unix.BPF_ATOMIC|unix.BPF_W, r0, r7, 0, unix.BPF_ADD|unix.BPF_FETCH)
	add(unix.BPF_STX|unix.BPF_MEM|unix.BPF_W, r10, r7, -4, 0)
	lookup(frames)
	move(r8, r0)
	add(unix.BPF_LDX|unix.BPF_MEM|unix.BPF_W, r9, r8, 0, 0)
	abortIf(unix.BPF_JGT, r9, longest)
	abortIf(unix.BPF_JLT, r9, 14)
	move(r1, r6)
	move(r2, r9)
	plus(r2, -longest)
	call(helperTail)
	abortIf(unix.BPF_JNE, r0, 0)
	move(r1, r6)
	set(r2, 0)
	move(r3, r8)
	plus(r3, 4)
	move(r4, r9)
	call(helperStore)
	abortIf(unix.BPF_JNE, r0, 0)
	set(r1, ifindex)
	set(r2, 0)
	call(helperRedirect)
	add(unix.BPF_JMP|unix.BPF_EXIT, 0, 0, 0, 0)
	for _, i := range aborts {
		p[i].off = int16(len(p) - i - 1)
	}
	set(r0, 0) // XDP_ABORTED
	add(unix.BPF_JMP|unix.BPF_EXIT, 0, 0, 0, 0)
	return p
}

// bpfCall is bpf(2).
func bpfCall(cmd int, attr unsafe.Pointer, size uintptr) (int, error) {
	fd, _, e := unix.Syscall(unix.SYS_BPF, uintptr(cmd), uintptr(attr), size)
	if e != 0 {
		return -1, e
	}
	return int(fd), nil
}

// array makes an array and maps it.
func array(size, n int, rights int) (fd int, mem []byte, stride int, err error) {
	attr := struct{ kind, key, value, n, flags uint32 }{unix.BPF_MAP_TYPE_ARRAY, 4, uint32(size), uint32(n), unix.BPF_F_MMAPABLE}
	if fd, err = bpfCall(unix.BPF_MAP_CREATE, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); err != nil {
		return -1, nil, 0, fmt.Errorf("array of %d times %d bytes: %w", n, size, err)
	}
	stride = (size + 7) &^ 7
	mem, err = unix.Mmap(fd, 0, stride*n, rights, unix.MAP_SHARED)
	return fd, mem, stride, err
}

// inject has an XDP program put the frames on an interface at a rate.
func inject(name string, rate float64, list [][]byte) (*sent, error) {
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	longest := 60
	for _, f := range list {
		longest = max(longest, len(f))
	}
	if longest > longestFrame {
		return nil, fmt.Errorf("a frame of %d bytes: -inject takes %d", longest, longestFrame)
	}
	frames, mem, stride, err := array(4+longest, len(list), unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	for i, f := range list {
		binary.NativeEndian.PutUint32(mem[i*stride:], uint32(len(f)))
		copy(mem[i*stride+4:], f)
	}
	counter, _, _, err := array(4, 1, unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	prog := assemble(counter, frames, longest, iface.Index)
	license, log := [4]byte{'G', 'P', 'L'}, make([]byte, 1<<16)
	load := struct {
		kind, n        uint32
		insns, license uint64
		level, size    uint32
		log            uint64
	}{unix.BPF_PROG_TYPE_XDP, uint32(len(prog)), address(&prog[0]), address(&license[0]), 1, uint32(len(log)), address(&log[0])}
	fd, err := bpfCall(unix.BPF_PROG_LOAD, unsafe.Pointer(&load), unsafe.Sizeof(load))
	runtime.KeepAlive(prog)
	runtime.KeepAlive(&license)
	if err != nil {
		return nil, fmt.Errorf("the XDP program: %w: %s", err, unix.ByteSliceToString(log))
	}
	frame := make([]byte, longest)
	test := struct {
		fd, result, in, out uint32
		dataIn, dataOut     uint64
		repeat, duration    uint32
		contextIn, ctxOut   uint32
		context, ctxOutAt   uint64
		flags, cpu, batch   uint32
		_                   uint32
	}{fd: uint32(fd), in: uint32(longest), dataIn: address(&frame[0]), flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES}
	runtime.GOMAXPROCS(senders + 1)
	s := &sent{}
	before, start := spent(unix.RUSAGE_SELF), time.Now()
	var mu sync.Mutex // of s, and whoever takes frames next
	var group sync.WaitGroup
	failed := make([]error, senders)
	for i := range senders {
		group.Go(func() {
			test := test
			for {
				mu.Lock()
				n := s.take(list, rate, start)
				mu.Unlock()
				if n == 0 || failed[i] != nil {
					return
				}
				test.repeat = uint32(n)
				_, failed[i] = bpfCall(unix.BPF_PROG_TEST_RUN, unsafe.Pointer(&test), unsafe.Sizeof(test))
			}
		})
	}
	group.Wait()
	s.Wall, s.CPU = time.Since(start), spent(unix.RUSAGE_SELF)-before
	runtime.KeepAlive(frame)
	return s, errors.Join(failed...)
}

// take waits until frames are due, and returns how many; 0 at the end.
func (s *sent) take(list [][]byte, rate float64, start time.Time) int {
	left := min(atOnceXDP, len(list)-s.Packets)
	for {
		now := time.Since(start)
		late := now - time.Duration(float64(s.Packets)/rate*1e9)
		if n := min(int(late.Seconds()*rate)+1, left); n == left || n > atOnceXDP/2 {
			s.Behind = max(s.Behind, late)
			for _, f := range list[s.Packets : s.Packets+n] {
				s.Bytes += int64(len(f))
			}
			s.Packets += n
			return n
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// address is what a structure of bpf(2) has for a pointer. Its target has to be kept alive.
func address[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }
