//go:build live && linux

package live

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
)

func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

// veth makes a pair of interfaces, a and b.
func veth(t *testing.T) (a, b string) {
	t.Helper()
	a, b = "live-a", "live-b"
	ip(t, "link add "+a+" mtu 65535 type veth peer name "+b+" mtu 65535")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", a).Run() })
	ip(t, "link set "+a+" up")
	ip(t, "link set "+b+" up")
	return a, b
}

// sender sends frames on an interface.
func sender(t *testing.T, name string) func(frame []byte) {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
		t.Fatal(err)
	}
	return func(frame []byte) {
		for {
			_, err := unix.Write(fd, frame)
			if err == nil {
				return
			}
			if err != unix.ENOBUFS {
				t.Fatalf("frame of %d bytes: %v", len(frame), err)
			}
		}
	}
}

// frames returns the frames of the samples, some behind one tag or two.
func frames(t *testing.T) (list [][]byte) {
	t.Helper()
	files, err := filepath.Glob("../../samples/*.pcap*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	tag := func(f []byte, typ, tci uint16) []byte {
		out := append([]byte(nil), f[:12]...)
		return append(append(out, byte(typ>>8), byte(typ), byte(tci>>8), byte(tci)), f[12:]...)
	}
	for _, name := range files {
		r, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b capture.Batch
		n := 0
		for n < 500 && r.Read(&b) == nil {
			for _, p := range b.Packets {
				f := append([]byte(nil), p.Data...)
				switch n % 10 {
				case 3:
					f = tag(f, 0x8100, 0x2005)
				case 6:
					f = tag(tag(f, 0x8100, 7), 0x88a8, 0xe005)
				case 9:
					f = tag(f, 0x8100, 0) // priority only
				}
				list = append(list, f)
				n++
			}
		}
		r.Close()
	}
	return list
}

func open(t *testing.T, opt live.Options) live.Source {
	t.Helper()
	r, err := live.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// drain stops a capture and returns all it has, by tap.
func drain(t *testing.T, r live.Source) []capture.Packet {
	t.Helper()
	r.Stop()
	var list []capture.Packet
	var b capture.Batch
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			p.Data = append([]byte(nil), p.Data...)
			list = append(list, p)
		}
	}
}

func parse(t *testing.T, s string) *pcapfilter.Expr {
	t.Helper()
	e, err := pcapfilter.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What is sent is captured: every byte, tags in their place, in order, at once
// after Stop. What the kernel filters is what the same filter takes of the whole
// frames in a machine of our own.
func TestExact(t *testing.T) {
	a, b := veth(t)
	send := sender(t, a)
	all := frames(t)
	for name, filter := range map[string]*pcapfilter.Expr{
		"everything":       nil,
		"usual":            pcapfilter.Traffic{}.Expr(),
		"rpc":              pcapfilter.Traffic{RPC: true}.Expr(),
		"vlan 5 and udp":   parse(t, "vlan 5 and udp"),
		"vlan 0":           parse(t, "vlan 0"),
		"not vlan":         parse(t, "not vlan"),
		"host":             pcapfilter.And(pcapfilter.Traffic{}.Expr(), parse(t, "src host 192.0.2.1 or fd00::2")),
		"tcp, by the byte": parse(t, "tcp[13] & 8 != 0 and not ip6"),
	} {
		t.Run(name, func(t *testing.T) {
			ins, err := filter.Compile(pcapfilter.Options{})
			if err != nil {
				t.Fatal(err)
			}
			vm, err := bpf.NewVM(ins)
			if err != nil {
				t.Fatal(err)
			}
			r := open(t, live.Options{Interfaces: []string{b}, Filter: filter})
			var want [][]byte
			for _, f := range all {
				send(f)
				if n, err := vm.Run(f); err == nil && n > 0 {
					want = append(want, f)
				}
			}
			got := drain(t, r)
			if len(got) != len(want) || len(want) == 0 {
				t.Fatalf("%d packets, want %d of %d", len(got), len(want), len(all))
			}
			for i, p := range got {
				if !bytes.Equal(p.Data, want[i]) || int(p.Length) != len(want[i]) || p.Number != uint64(i+1) || i > 0 && p.Time < got[i-1].Time {
					t.Fatalf("packet %d: %d bytes of %d, sent %d\n got % x\nsent % x", i+1, len(p.Data), p.Length, len(want[i]), p.Data[:min(64, len(p.Data))], want[i][:min(64, len(want[i]))])
				}
			}
			s := r.Stats()[0]
			if s.Received != uint64(len(want)) || s.Dropped != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestSnapLen(t *testing.T) {
	a, b := veth(t)
	send := sender(t, a)
	r := open(t, live.Options{Interfaces: []string{b}, SnapLen: 96})
	f := make([]byte, 1500)
	send(f)
	got := drain(t, r)
	if len(got) != 1 || len(got[0].Data) != 96 || got[0].Length != 1500 || r.Taps()[0].SnapLen != 96 {
		t.Errorf("%+v", got)
	}
}

// Two ends of a cable, and any: each end is a tap, and the taps are merged by
// time.
func TestSeveral(t *testing.T) {
	a, b := veth(t)
	send := sender(t, a)
	for _, names := range [][]string{{a, b}, {"any"}} {
		r := open(t, live.Options{Interfaces: names, Filter: parse(t, "ether proto 0x8915")})
		const n = 20000
		for i := range n {
			send([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x89, 0x15, byte(i >> 8), byte(i), 59: 0})
		}
		got := drain(t, r)
		var count [2]int
		for i, p := range got {
			if i > 0 && p.Time < got[i-1].Time {
				t.Fatalf("%v: packet %d is %d ns too late", names, i+1, got[i-1].Time-p.Time)
			}
			if want := count[p.Tap]; int(p.Data[14])<<8|int(p.Data[15]) != want&0xffff {
				t.Fatalf("%v: tap %d, packet %d: % x", names, p.Tap, want, p.Data)
			}
			count[p.Tap]++
		}
		if count != [2]int{n, n} {
			t.Errorf("%v: %v packets", names, count)
		}
		taps := r.Taps()
		if len(taps) != 2 || taps[0].Name != a || taps[1].Name != b {
			t.Errorf("%v: %+v", names, taps)
		}
		r.Close()
	}
}

// Packets of a loopback interface are there once. Large ones are whole.
func TestLoopback(t *testing.T) {
	for _, name := range []string{"lo", "any"} {
		r := open(t, live.Options{Interfaces: []string{name}, Filter: pcapfilter.Traffic{}.Expr()})
		c, err := net.Dial("udp", "127.0.0.1:4791")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			_, _ = c.Write(bytes.Repeat([]byte{byte(i)}, 6000*i)) // nobody listens: some fail
			_, _ = c.Write(bytes.Repeat([]byte{byte(i)}, 6000*i))
		}
		c.Close()
		got := drain(t, r)
		seen := make(map[int]int)
		for _, p := range got {
			if p.Link != capture.LinkEthernet {
				t.Errorf("link type %d", p.Link)
			}
			seen[len(p.Data)]++
		}
		if len(seen) < 5 {
			t.Errorf("%s: %d sizes", name, len(seen))
		}
		for size, n := range seen {
			if n > 2 {
				t.Errorf("%s: %d packets of %d bytes", name, n, size)
			}
		}
		r.Close()
	}
}

// Segments above 64 KiB, as offloads make them (BIG TCP), are captured whole.
func TestBigTCP(t *testing.T) {
	if out, err := exec.Command("sh", "-c", "sysctl -qw net.ipv6.conf.lo.disable_ipv6=0; ip link set lo gso_max_size 200000 gro_max_size 200000 && ip link set lo mtu 65536").CombinedOutput(); err != nil {
		t.Logf("NOT TESTED: this kernel has no large offloads on lo: %s", out)
		return
	}
	l, err := net.Listen("tcp6", "[::1]:20049")
	if err != nil {
		t.Logf("NOT TESTED: no IPv6 here: %v", err)
		return
	}
	defer l.Close()
	r := open(t, live.Options{Interfaces: []string{"lo"}, Filter: pcapfilter.Traffic{}.Expr()})
	const total = 64 << 20
	go func() {
		c, err := net.Dial("tcp6", l.Addr().String())
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 4<<20)
		for range total / len(b) {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, c); err != nil || n != total {
		t.Fatal(n, err)
	}
	c.Close()
	longest, cut := 0, 0
	for _, p := range drain(t, r) {
		longest = max(longest, len(p.Data))
		if len(p.Data) < int(p.Length) {
			cut++
		}
	}
	t.Logf("longest packet: %d bytes", longest)
	if longest < 65536 || cut > 0 {
		t.Errorf("longest packet %d bytes, %d cut; %+v", longest, cut, r.Stats())
	}
}

// A ring that nobody reads overflows; what is lost is counted.
func TestDrops(t *testing.T) {
	a, b := veth(t)
	send := sender(t, a)
	r := open(t, live.Options{Interfaces: []string{b}, Filter: parse(t, "ether proto 0x8915"), RingSize: 1 << 19})
	f := make([]byte, 1000)
	copy(f[12:], "\x89\x15")
	const n = 5000
	for range n {
		send(f)
	}
	r.Stats() // asking twice counts nothing twice
	got := drain(t, r)
	s := r.Stats()[0]
	if s.Received != n || s.Dropped == 0 || len(got) != int(s.Received-s.Dropped) {
		t.Errorf("%+v, %d read", s, len(got))
	}
}

// An interface that fails says so after the last packet.
func TestFailures(t *testing.T) {
	for command, want := range map[string]string{
		"link set live-b down": "live-b: the interface went down",
		"link del live-b":      "live-b: the interface is gone",
	} {
		a, b := veth(t)
		send := sender(t, a)
		r := open(t, live.Options{Interfaces: []string{"lo", b}, Filter: parse(t, "ether proto 0x8915")})
		send([]byte{12: 0x89, 13: 0x15, 59: 0})
		ip(t, command)
		var batch capture.Batch
		n := 0
		var err error
		for err == nil {
			err = r.Read(&batch)
			n += len(batch.Packets)
		}
		var e *live.InterfaceError
		if n != 1 || !errors.As(err, &e) || err.Error() != want {
			t.Errorf("%s: %d packets, %v", command, n, err)
		}
		r.Close()
		_ = exec.Command("ip", "link", "del", a).Run()
	}
}

func TestDown(t *testing.T) {
	a, b := veth(t)
	ip(t, "link set "+b+" down")
	if _, err := live.Open(live.Options{Interfaces: []string{b}}); err == nil || !strings.Contains(err.Error(), "the interface is down") {
		t.Error(err)
	}
	_ = a
}

// Members of a fanout group share the packets.
func TestFanout(t *testing.T) {
	a, b := veth(t)
	send := sender(t, a)
	opt := live.Options{Interfaces: []string{b}, Filter: parse(t, "udp port 4791"), Fanout: &live.Fanout{Group: 77}}
	one, two := open(t, opt), open(t, opt)
	const n = 1000
	for i := range n {
		f := make([]byte, 60)
		copy(f, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x00\x45\x00\x00\x2e\x00\x00\x00\x00\x40\x11\x00\x00\xc0\x00\x02\x01\xc0\x00\x02\x02")
		f[34], f[35], f[36], f[37], f[39] = 0xc0|byte(i%50), byte(i), 0x12, 0xb7, 26
		send(f)
	}
	m := [2]int{len(drain(t, one)), len(drain(t, two))}
	if m[0]+m[1] != n || m[0] == 0 || m[1] == 0 {
		t.Error(m)
	}
}

// Several rings of an interface together have each packet once, in the order of time, and count what each got.
func TestRings(t *testing.T) {
	a, b := veth(t)
	r := open(t, live.Options{Interfaces: []string{b}, Filter: parse(t, "ether proto 0x8915"), Rings: 3})
	if n := r.Notes(); len(n) != 0 {
		t.Fatal(n)
	}
	const each = 5000
	processors := min(2, runtime.NumCPU())
	var wg sync.WaitGroup
	for cpu := range processors {
		send := sender(t, a)
		wg.Go(func() {
			runtime.LockOSThread() // and not unlocked: the thread ends
			var set unix.CPUSet
			set.Set(cpu)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				t.Error(err)
			}
			for i := range each {
				f := make([]byte, 60)
				f[12], f[13], f[14] = 0x89, 0x15, byte(cpu)
				binary.BigEndian.PutUint32(f[16:], uint32(i))
				send(f)
			}
		})
	}
	wg.Wait()
	got := drain(t, r)
	var next [2]uint32
	for i, p := range got {
		if i > 0 && p.Time < got[i-1].Time {
			t.Fatalf("packet %d is %d ns before the one that precedes it", p.Number, got[i-1].Time-p.Time)
		}
		cpu := p.Data[14]
		if n := binary.BigEndian.Uint32(p.Data[16:]); n != next[cpu] || p.Tap != 0 || p.Number != uint64(i+1) {
			t.Fatalf("packet %d of processor %d, want %d; tap %d, number %d", n, cpu, next[cpu], p.Tap, p.Number)
		}
		next[cpu]++
	}
	stats := r.Stats()
	if len(got) != processors*each || len(stats) != 1 || len(stats[0].Rings) != 3 {
		t.Fatalf("%d packets, %+v", len(got), stats)
	}
	sum, used := uint64(0), 0
	for _, x := range stats[0].Rings {
		sum += x.Received
		if x.Received > 0 {
			used++
		}
	}
	if s := stats[0]; s.Received != uint64(len(got)) || s.Dropped != 0 || sum != s.Received || used != processors {
		t.Errorf("%+v", s)
	}
}

// Drops are counted by ring.
func TestRingsDrop(t *testing.T) {
	a, b := veth(t)
	send := sender(t, a)
	r := open(t, live.Options{Interfaces: []string{b}, Filter: parse(t, "ether proto 0x8915"), Rings: 2, RingSize: 1 << 19, BlockSize: 64 << 10})
	f := make([]byte, 1500)
	f[12], f[13] = 0x89, 0x15
	const n = 2000
	for range n {
		send(f)
	}
	got := drain(t, r)
	s := r.Stats()[0]
	sum := s.Rings[0].Dropped + s.Rings[1].Dropped
	if s.Received != n || s.Dropped == 0 || sum != s.Dropped || len(got) != int(s.Received-s.Dropped) {
		t.Errorf("%+v, %d read", s, len(got))
	}
}

// An adapter without a clock is captured with the time of the system.
func TestHardwareTime(t *testing.T) {
	a, b := veth(t)
	send := sender(t, a)
	r := open(t, live.Options{Interfaces: []string{b}, HardwareTime: true})
	send(make([]byte, 60))
	got := drain(t, r)
	if len(got) != 1 || time.Since(time.Unix(0, got[0].Time)).Abs() > time.Minute {
		t.Errorf("%+v", got)
	}
	if n := r.Notes(); len(n) != 1 || !strings.Contains(n[0], "no timestamps of the adapter") {
		t.Error(n)
	}
}

// The command: 100,000 packets a second without a drop, in less than half a
// processor; Ctrl-C ends it, and the file is whole.
func TestRate(t *testing.T) {
	exe := os.Getenv("RPCRDMA_DUMP")
	if exe == "" {
		t.Fatal("RPCRDMA_DUMP is not set: run test/live/run")
	}
	a, b := veth(t)
	send := sender(t, a)
	list := roceFrames(t)
	rated(t, func(t *testing.T) (got attempt, slow bool) {
		out := filepath.Join(t.TempDir(), "a.pcapng")
		cmd := exec.Command(exe, "capture", "-i", b, "-w", out, "--all")
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 200)
		if n, err := stderr.Read(head); err != nil || !bytes.Contains(head[:n], []byte("capturing on "+b)) {
			t.Fatalf("%s %v", head[:n], err)
		}
		before := waiting(cmd.Process.Pid)
		got.sent, got.took, slow = paced(send, list)
		got.waited = waiting(cmd.Process.Pid) - before
		_ = cmd.Process.Signal(syscall.SIGINT)
		diag, _ := io.ReadAll(stderr)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, diag)
		}
		got.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		var captured, dropped int
		_, counts, _ := strings.Cut("\n"+string(diag), b+": ")
		if _, err := fmt.Sscanf(counts, "%d packets captured, %d dropped", &captured, &dropped); err != nil || captured+dropped != got.sent {
			t.Errorf("%d packets were sent, %v:\n%s", got.sent, err, diag)
		}
		got.dropped = dropped > 0
		whole(t, out, list, captured, dropped == 0)
		return got, slow
	})
}

// roceFrames are frames of RoCEv2.
func roceFrames(t *testing.T) (list [][]byte) {
	t.Helper()
	for _, f := range frames(t) {
		if bytes.Contains(f[:min(len(f), 60)], []byte{0x12, 0xb7}) {
			list = append(list, f)
		}
	}
	return list
}

// whole checks that a capture file holds n packets and no damage. If all is set, nothing was dropped, and they must be the
// packets of list, over and over.
func whole(t *testing.T, file string, list [][]byte, n int, all bool) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	i := 0
	var batch capture.Batch
	for r.Read(&batch) == nil {
		for _, p := range batch.Packets {
			if all && !bytes.Equal(p.Data, list[i%len(list)]) {
				t.Fatalf("packet %d differs", i+1)
			}
			i++
		}
	}
	if _, problems := r.Problems(); i != n || problems > 0 {
		t.Errorf("%d packets in the file, want %d, %d problems", i, n, problems)
	}
}

// A capture under way is listed like the file.
func TestListing(t *testing.T) {
	exe := os.Getenv("RPCRDMA_DUMP")
	const sample = "../../samples/rocev2-nfs3-meta.pcap.zst"
	fields := []string{"-T", "fields", "-e", "xid", "-e", "op", "-e", "status", "--sort", "completion"}
	want, err := exec.Command(exe, append(fields, "-Y", "fabric == rocev2", sample)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	a, b := veth(t)
	send := sender(t, a)
	cmd := exec.Command(exe, append(fields, "-i", b, "-l")...)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !listening(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not listen within a minute: %s", &diag)
		}
	}
	r, err := capture.Open([]string{sample}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var batch capture.Batch
	for r.Read(&batch) == nil {
		for _, p := range batch.Packets {
			send(p.Data)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &diag)
	}
	if !bytes.Equal(out.Bytes(), want) || len(want) == 0 {
		t.Errorf("%d lines, want %d\n%s", bytes.Count(out.Bytes(), []byte("\n")), bytes.Count(want, []byte("\n")), &diag)
	}
}

// listening tells whether a packet socket is bound.
func listening() bool {
	b, _ := os.ReadFile("/proc/net/packet")
	for i, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if f := strings.Fields(l); i > 0 && len(f) > 5 && f[3] == "0003" && f[5] == "1" {
			return true
		}
	}
	return false
}
