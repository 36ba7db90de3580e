//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// result is one run.
type result struct {
	sent
	iface     int64 // packets that the receiving end of the pair counted
	captured  int64 // by the program; -1 if it does not say
	dropped   int64
	user, sys time.Duration // of the program
	rss       int64
}

func (r *result) cpu() time.Duration { return r.user + r.sys }

// lossless reports whether all packets that were sent arrived and were captured.
func (r *result) lossless() bool {
	return r.dropped == 0 && r.iface == int64(r.Packets) && (r.captured < 0 || r.captured == r.iface)
}

// measure climbs the ladder with each program.
func (o *options) measure() error {
	fmt.Printf("%d processors; %s\n\n", runtime.NumCPU(), load1())
	fmt.Println("| program | wanted/s | sent/s | most late ms | sent | dropped | CPU of one, % | CPU ns/packet (user + system) | fit in one core/s | sender, CPU of one, % | MiB |")
	fmt.Println("|-|-:|-:|-:|-:|-:|-:|-:|-:|-:|-:|")
	best := make([]float64, len(o.programs))
	least := make([]float64, len(o.programs))
	for range o.rounds {
		for i, p := range o.programs {
			idle, err := o.run(p, 0)
			if err != nil {
				return err
			}
			for _, rate := range o.perSecond {
				r, err := o.run(p, rate)
				if err != nil {
					return err
				}
				r.user, r.sys = max(0, r.user-idle.user), max(0, r.sys-idle.sys)
				reached := float64(r.Packets) / r.Wall.Seconds()
				taken := float64(r.iface - r.dropped)
				each := float64(r.cpu().Nanoseconds()) / taken
				lost := strconv.FormatInt(r.dropped, 10)
				if n := int64(r.Packets) - r.iface; n != 0 {
					lost += fmt.Sprintf(" and %d before the interface", n)
				}
				if r.captured >= 0 && r.captured != r.iface-r.dropped {
					lost += fmt.Sprintf(" and %d before the ring", r.iface-r.dropped-r.captured)
				}
				fmt.Printf("| %s | %.0f | %.0f | %.0f | %d | %s | %.0f | %.0f (%.0f + %.0f) | %s | %.0f | %d |\n",
					p.name, rate, reached, r.Behind.Seconds()*1e3, r.Packets, lost, 100*r.cpu().Seconds()/r.Wall.Seconds(),
					each, float64(r.user.Nanoseconds())/taken, float64(r.sys.Nanoseconds())/taken, fit(each), 100*r.CPU.Seconds()/r.Wall.Seconds(), r.rss>>20)
				if r.lossless() {
					best[i] = max(best[i], reached)
				}
				if least[i] == 0 || each < least[i] {
					least[i] = each
				}
			}
		}
	}
	fmt.Printf("\n| program | most without drops/s | goal/s | least CPU ns/packet | fit in one core/s |\n|-|-:|-:|-:|-:|\n")
	for i, p := range o.programs {
		goal := "–"
		if p.goal > 0 {
			goal = strconv.FormatFloat(p.goal, 'f', 0, 64)
		}
		fmt.Printf("| %s | %.0f | %s | %.0f | %s |\n", p.name, best[i], goal, least[i], fit(least[i]))
	}
	fmt.Printf("\n%s\n", load1())
	return nil
}

// fit is how many packets one processor can take if each needs ns nanoseconds.
func fit(each float64) string {
	if each == 0 {
		return "–"
	}
	return strconv.FormatFloat(1e9/each, 'f', 0, 64)
}

func load1() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load unknown"
	}
	load, _, _ := strings.Cut(string(b), " ")
	return "load average " + load
}

// run measures a program at a rate; rate 0 sends nothing.
func (o *options) run(p program, rate float64) (*result, error) {
	if p.exe == "" {
		r := &result{captured: -1}
		return r, o.sendCounted(rate, r)
	}
	args := []string{}
	file := ""
	for _, a := range p.args {
		switch a {
		case "FILE":
			file = filepath.Join(o.dir, "captured.pcapng")
			a = file
		case "BUFFER":
			a = o.buffer
		}
		args = append(args, a)
	}
	if o.rings > 0 && p.exe == "rpcrdma-dump" {
		args = append(args, "--rings", strconv.Itoa(o.rings))
	}
	if file != "" {
		defer os.Remove(file)
	}
	var diagnosis bytes.Buffer
	exe := filepath.Join(o.bin, p.exe)
	if p.exe == selfExe {
		var err error
		if exe, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(exe, append(args, "-i", o.getName)...)
	cmd.Stderr = &diagnosis // standard output: none
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := o.start(cmd, false); err != nil {
		return nil, err
	}
	defer func() { _ = cmd.Process.Kill() }()
	for deadline := time.Now().Add(20 * time.Second); sockets() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s does not capture: %s", p.name, &diagnosis)
		}
	}
	r := &result{}
	if err := o.sendCounted(rate, r); err != nil {
		return nil, err
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		return nil, err
	}
	stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	if err := cmd.Wait(); err != nil && rate > 0 && cmd.ProcessState.ExitCode() != 3 {
		return nil, fmt.Errorf("%s: %w: %s", p.name, err, &diagnosis)
	}
	r.user, r.sys = cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.rss = u.Maxrss * 1024
	}
	var err error
	r.captured, r.dropped, err = counted(diagnosis.String())
	return r, err
}

// sendCounted sends at a rate, if that is not 0, and counts what arrives.
func (o *options) sendCounted(rate float64, r *result) error {
	before, err := received(o.getName)
	if err != nil {
		return err
	}
	if rate > 0 {
		if err := o.send(rate, &r.sent); err != nil {
			return err
		}
	}
	time.Sleep(200 * time.Millisecond) // The last packets leave the ring.
	after, err := received(o.getName)
	r.iface = after - before
	return err
}

// send runs the sender.
func (o *options) send(rate float64, s *sent) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	args := []string{sendCommand, "-i", o.sendName, "-rate", strconv.FormatFloat(rate, 'f', -1, 64), "-seconds", strconv.FormatFloat(o.seconds, 'f', -1, 64)}
	cmd := exec.Command(self, append(args, o.files...)...)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := o.start(cmd, true); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return err
	}
	return json.Unmarshal(out.Bytes(), s)
}

// start starts a process, on the processors that are for it.
func (o *options) start(cmd *exec.Cmd, sends bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if n := runtime.NumCPU(); o.pin && n > 1 {
		var was, set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &was); err != nil {
			return err
		}
		for i := range n {
			if sends == (i == n-1) {
				set.Set(i)
			}
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return err
		}
		defer func() { _ = unix.SchedSetaffinity(0, &was) }()
	}
	return cmd.Start()
}

// sockets counts the packet sockets of this namespace that receive.
func sockets() int {
	b, _ := os.ReadFile("/proc/thread-self/net/packet")
	return boundSockets(string(b))
}

func boundSockets(table string) (n int) {
	for l := range strings.Lines(table) {
		if f := strings.Fields(l); len(f) > 5 && f[3] == "0003" && f[5] == "1" {
			n++
		}
	}
	return n
}

// received is how many packets an interface has counted.
func received(name string) (int64, error) {
	b, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return 0, err
	}
	return packetsOf(string(b), name)
}

func packetsOf(table, name string) (int64, error) {
	for l := range strings.Lines(table) {
		head, rest, ok := strings.Cut(l, ":")
		if f := strings.Fields(rest); ok && strings.TrimSpace(head) == name && len(f) > 1 {
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("there is no interface %s", name)
}
