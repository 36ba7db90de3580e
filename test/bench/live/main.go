//go:build linux

// Live measures how many packets a second the programs that capture can take: a sender puts the packets of
// captures on one end of a veth pair at a rate, and a program captures on the other end. All of it is in a
// network namespace of its own. It needs root and ip (iproute2).
//
//	go run ./internal/testtools/repeat -n 300 samples/rocev2-nfs3-meta.pcap.zst meta.pcap
//	go run ./test/bench/live -n 3 meta.pcap
//
// Each line is one run. "CPU ns/packet" is what the capturing process takes for a packet, user and system, without
// what it takes to start and end; "fit in one core" is what follows from that. The kernel's copy into the ring is paid
// by the sender: here the receiving half of the interface runs in the sender's system calls, unless -steer is given.
//
// "nobody" and "empty" are the limits of the kernel: sending while nobody captures, and a receiver that only returns the
// blocks of its ring.
//
// Exit status: 0 measured, 1 failed, 77 not run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const notRun = 77

func main() {
	if len(os.Args) > 1 && os.Args[1] == sendCommand {
		if err := sendMain(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "live: sender:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == emptyCommand {
		if err := emptyMain(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "live: empty receiver:", err)
			os.Exit(1)
		}
		return
	}
	o := &options{}
	flag.IntVar(&o.rounds, "n", 1, "rounds: each program at each rate in each of them")
	flag.StringVar(&o.rates, "rates", "100000,250000,500000,1000000", "packets a second, from low to high")
	flag.StringVar(&o.only, "only", "", "comma-separated names of programs; empty means all of them")
	flag.Float64Var(&o.seconds, "seconds", 3, "how long to send, at most; a capture is not sent twice in a run")
	flag.StringVar(&o.dir, "dir", "/dev/shm", "where captures are written, and removed again")
	flag.StringVar(&o.bin, "bin", "", "directory with rpcrdma-dump and rpcrdma-top; empty builds them")
	flag.StringVar(&o.buffer, "buffer", "64M", "-B of capture")
	flag.IntVar(&o.rings, "rings", 0, "--rings of rpcrdma-dump")
	flag.BoolVar(&o.pin, "pin", false, "keep the sender on the last processor, and the others off it")
	flag.BoolVar(&o.steer, "steer", false, "let the other processors receive, as from a network (RPS); implies -pin")
	flag.BoolVar(&o.inside, "inside", false, "used by the command itself: it is in its own namespace")
	flag.Parse()
	o.files = flag.Args()
	switch err := o.main(); {
	case errors.Is(err, errTold):
		os.Exit(notRun)
	case errors.Is(err, errFailed):
		os.Exit(1)
	case errors.Is(err, errNotRun):
		fmt.Fprintf(os.Stderr, "\n*** NOTHING WAS MEASURED: %v ***\n\n", err)
		os.Exit(notRun)
	case err != nil:
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds, rings     int
	rates, only       string
	seconds           float64
	dir, bin, buffer  string
	pin, steer        bool
	inside            bool
	files             []string
	programs          []program
	perSecond         []float64
	sendName, getName string // the ends of the pair
}

var (
	errNotRun = errors.New("not run")
	// The process in the namespace has said why.
	errTold   = errors.New("not run there")
	errFailed = errors.New("failed there")
)

func (o *options) main() error {
	if len(o.files) == 0 || o.rounds < 1 || o.seconds <= 0 {
		return errors.New("name captures to send, and positive numbers")
	}
	for s := range strings.SplitSeq(o.rates, ",") {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || v < 1 {
			return fmt.Errorf("-rates: %q is not a rate", s)
		}
		o.perSecond = append(o.perSecond, v)
	}
	var err error
	if o.programs, err = choose(o.only); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root", errNotRun)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("%w: it needs ip (iproute2)", errNotRun)
	}
	if !o.inside {
		return o.enter()
	}
	// sysfs shows the interfaces of the namespace that mounted it, and proc its process numbers, by which the programs
	// find their threads when they give up privileges.
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("sysfs", "/sys", "sysfs", 0, ""), unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
		return fmt.Errorf("%w: sysfs and proc cannot be mounted: %w", errNotRun, err)
	}
	o.sendName, o.getName = "bench0", "bench1"
	// No packets of the system's own. Without IPv6 there is no such file.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	for _, args := range []string{
		"link add bench0 type veth peer name bench1",
		"link set bench0 up mtu 9000",
		"link set bench1 up mtu 9000",
	} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: ip %s: %v: %s", errNotRun, args, err, out)
		}
	}
	if o.steer {
		n := runtime.NumCPU()
		if n < 2 || n > 32 {
			return fmt.Errorf("%w: -steer needs 2 to 32 processors", errNotRun)
		}
		o.pin = true
		if err := os.WriteFile("/sys/class/net/bench1/queues/rx-0/rps_cpus", fmt.Appendf(nil, "%x", 1<<(n-1)-1), 0); err != nil {
			return fmt.Errorf("%w: %w", errNotRun, err)
		}
	}
	return o.measure()
}

// enter builds the programs and runs this one again in a network namespace of its own.
func (o *options) enter() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp(o.dir, "rpcrdma-live")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.bin == "" {
		tmp, err := os.MkdirTemp("", "rpcrdma-live")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		// The programs become other users, who have to find them.
		if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // others read it
			return err
		}
		build := exec.Command("go", "build", "-o", tmp+"/", "./cmd/rpcrdma-dump", "./cmd/rpcrdma-top")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("building the programs (run it in the root of the repository): %w", err)
		}
		o.bin = tmp
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := slices.Concat(os.Args[1:len(os.Args)-len(o.files)], []string{"-inside", "-bin", o.bin, "-dir", dir}, o.files)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// With its own process numbers, so that all its processes end with it: those that give up their privileges
	// lose the signal of a parent's death.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case errors.As(err, &exit) && exit.ExitCode() == notRun:
		return errTold
	case errors.As(err, &exit):
		return errFailed
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w: no network namespace can be made here", errNotRun)
	}
	return err
}
