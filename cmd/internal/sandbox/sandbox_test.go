//go:build live && linux

package sandbox

import (
	"context"
	"encoding/json"
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

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The test binary runs itself again: what is given up cannot be had back.
const (
	child     = "SANDBOX_TEST_CHILD" // holds a plan
	forbidden = "forbidden"          // in the results
)

// plan is what a child does.
type plan struct {
	User   string
	Mode   Mode
	Needs  Needs
	Writes bool
	Dir    string // one that is not granted
	Listen bool
	Socket string // of datagrams, which it connects to; there is another one with a 2 after the name
	Kernel int    // version of Landlock that it pretends to have; -1 is none

	open *net.UnixConn
}

// results of a child, by what it tried: "ok", forbidden or an error.
type results map[string]string

func TestMain(m *testing.M) {
	if s := os.Getenv(child); s != "" {
		var p plan
		if err := json.Unmarshal([]byte(s), &p); err != nil {
			panic(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(p.run()); err != nil {
			panic(err)
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has looked at the threads
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// outcome puts an error into a word.
func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOSYS):
		return forbidden
	}
	return err.Error()
}

func (p *plan) run() results {
	out := results{}
	// Threads in all states: in a system call, waiting, and locked to goroutines.
	var ready sync.WaitGroup
	for i := range 8 {
		ready.Add(1)
		go func() {
			if i%2 == 0 {
				runtime.LockOSThread()
			}
			ready.Done()
			if i%4 == 1 {
				_ = unix.Nanosleep(&unix.Timespec{Sec: 600}, nil)
			}
			select {}
		}()
	}
	ready.Wait()
	var l net.Listener
	if p.Listen {
		l, _ = net.Listen("tcp", "127.0.0.1:0")
	}
	if p.Socket != "" {
		c, err := net.Dial("unixgram", p.Socket)
		if err != nil {
			out["error"] = err.Error()
			return out
		}
		p.open = c.(*net.UnixConn)
	}
	if p.Kernel != 0 {
		landlockVersion = func() (int, error) {
			if p.Kernel < 0 {
				return 0, unix.ENOSYS
			}
			return p.Kernel, nil
		}
	}
	opt := Options{User: p.User, Mode: p.Mode}
	b, err := opt.Open(p.Writes)
	if err == nil {
		err = b.Drop()
	}
	if err == nil {
		err = b.Confine(p.Needs)
	}
	if err != nil {
		out["error"] = err.Error()
		return out
	}
	out["notes"] = strings.Join(b.Notes(), "; ")
	// On a thread that is new, too.
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		p.try(out, l)
		close(done)
	}()
	<-done
	return out
}

func (p *plan) try(out results, l net.Listener) {
	do := func(what string, f func() error) { out[what] = outcome(f()) }
	write := func(dir string) func() error {
		return func() error {
			name := filepath.Join(dir, "new")
			f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
			if err != nil {
				return err
			}
			_, err = f.Write([]byte("x"))
			return errors.Join(err, f.Sync(), f.Close(), os.Rename(name, name+"2"), os.Remove(name+"2"))
		}
	}
	read := func(name string) func() error {
		return func() error { _, err := os.ReadFile(name); return err }
	}
	do("write elsewhere", write(p.Dir))
	do("truncate elsewhere", func() error { return os.Truncate(filepath.Join(p.Dir, "old"), 1) })
	do("read elsewhere", read(filepath.Join(p.Dir, "old")))
	do("read /etc/shadow", read("/etc/shadow"))
	do("read /etc/passwd", read("/etc/passwd"))
	do("list /", func() error { _, err := os.ReadDir("/"); return err })
	for i, dir := range p.Needs.Series {
		do(fmt.Sprint("write series ", i), write(dir))
		do(fmt.Sprint("read series ", i), read(filepath.Join(dir, "old")))
		do(fmt.Sprint("mkdir series ", i), func() error { return os.Mkdir(filepath.Join(dir, "d"), 0o777) })
	}
	for i, name := range p.Needs.Files {
		do(fmt.Sprint("write file ", i), write(filepath.Dir(name)))
		do(fmt.Sprint("read file ", i), read(filepath.Join(filepath.Dir(name), "old")))
	}
	for i, dir := range p.Needs.Trees {
		do(fmt.Sprint("mkdir tree ", i), func() error { return os.MkdirAll(filepath.Join(dir, "a/b"), 0o777) })
		do(fmt.Sprint("write tree ", i), write(filepath.Join(dir, "a/b")))
	}
	if p.Mode == Off || p.Kernel != 0 {
		return // what follows is not harmless
	}
	do("execute", func() error { return exec.Command("/bin/true").Run() })
	do("execute itself", func() error { return unix.Exec("/proc/self/exe", []string{"x", "-test.list=none"}, nil) })
	socket := func(domain, typ, protocol int) func() error {
		return func() error {
			fd, err := unix.Socket(domain, typ, protocol)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	do("packet socket", socket(unix.AF_PACKET, unix.SOCK_RAW, 0))
	do("raw socket", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP))
	do("unix socket", socket(unix.AF_UNIX, unix.SOCK_STREAM, 0))
	do("netlink socket", socket(unix.AF_NETLINK, unix.SOCK_RAW, 0))
	do("udp socket", socket(unix.AF_INET, unix.SOCK_DGRAM, 0))
	// Without MPTCP, which Landlock does not see.
	var d net.Dialer
	d.SetMultipathTCP(false)
	d.Timeout = 5 * time.Second
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	do("connect TCP", func() error {
		c, err := d.Dial("tcp", "127.0.0.1:9")
		if err == nil {
			c.Close()
		}
		return err
	})
	do("listen TCP", func() error {
		l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err == nil {
			l.Close()
		}
		return err
	})
	if l != nil {
		out["accepts"] = l.Addr().String()
		_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Second))
		_, err := l.Accept()
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			out["accepts"] = "ok" // nobody came
		}
	}
	do("setuid 0", func() error { return syscall.Setuid(0) })
	do("ptrace", func() error { return unix.PtraceSeize(os.Getppid()) })
	do("signal the parent", func() error { return unix.Kill(os.Getppid(), 0) })
	do("mount", func() error { return unix.Mount("none", p.Dir, "tmpfs", 0, "") })
	do("user namespace", func() error { return unix.Unshare(unix.CLONE_NEWUSER) })
	do("bpf", func() error {
		_, _, e := unix.Syscall(unix.SYS_BPF, 0, 0, 0)
		if e == unix.EINVAL {
			return nil
		}
		return e
	})
	do("root directory", func() error { return unix.Chroot(p.Dir) })
	do("network namespace", func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	do("device", func() error {
		return unix.Mknod(filepath.Join(p.Dir, "device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1)))
	})
	do("link to elsewhere", func() error { return os.Link(filepath.Join(p.Dir, "old"), filepath.Join(p.Dir, "link")) })
	do("symbolic link elsewhere", func() error { return os.Symlink("/etc/shadow", filepath.Join(p.Dir, "symlink")) })
	do("rename elsewhere", func() error { return os.Rename(filepath.Join(p.Dir, "old"), filepath.Join(p.Dir, "other")) })
	do("remove elsewhere", func() error { return os.Remove(filepath.Join(p.Dir, "old")) })
	do("memory of the parent", read(fmt.Sprintf("/proc/%d/mem", os.Getppid())))
	do("environment of the parent", read(fmt.Sprintf("/proc/%d/environ", os.Getppid())))
	do("read the parent's memory", func() error {
		_, err := unix.ProcessVMReadv(os.Getppid(), []unix.Iovec{{Base: new(byte), Len: 1}}, []unix.RemoteIovec{{Base: 1 << 22, Len: 1}}, 0)
		if err == unix.EFAULT {
			return nil // it has looked
		}
		return err
	})
	do("file by its handle", func() error {
		_, err := unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(1, make([]byte, 8)), unix.O_RDONLY)
		if err == unix.ESTALE || err == unix.EINVAL {
			return nil
		}
		return err
	})
	do("program without a file", func() error {
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{"x"}, nil)
	})
	do("load a module", func() error { return unix.InitModule(nil, "") })
	do("keyring", func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err })
	do("code", func() error {
		m, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err == nil {
			_ = unix.Munmap(m)
		}
		return err
	})
	do("type into the terminal", func() error {
		if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == unix.EPERM || err == unix.ENOSYS {
			return fmt.Errorf("not even its mode")
		}
		_, _, e := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, 0)
		if e == unix.ENOTTY || e == unix.EIO {
			return nil // the kernel has looked at it
		}
		return e
	})
	do("time zone", func() error {
		if time.Now().Location().String() == "" {
			return errors.New("none")
		}
		return nil
	})
	if p.Needs.Datagrams {
		do("write datagram", func() error { _, err := p.open.Write([]byte("x")); return err })
		for i, other := range []string{p.Socket, p.Socket + "2"} {
			do(fmt.Sprint("address datagram ", i), func() error {
				raw, err := p.open.SyscallConn()
				if err != nil {
					return err
				}
				to := &unix.SockaddrUnix{Name: other}
				var sendto, sendmsg error
				err = raw.Control(func(fd uintptr) {
					sendto = unix.Sendto(int(fd), []byte("x"), 0, to)
					sendmsg = unix.Sendmsg(int(fd), []byte("x"), nil, to, 0)
				})
				if err == nil && (sendto == nil) != (sendmsg == nil) {
					return fmt.Errorf("sendto: %v, sendmsg: %v", sendto, sendmsg)
				}
				return errors.Join(err, sendto)
			})
		}
	}
	if p.Needs.Names {
		do("names", func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			r := net.Resolver{PreferGo: true}
			_, err := r.LookupAddr(ctx, "127.0.0.1")
			return err
		})
	}
	// Life goes on: garbage, threads, timers, preemption.
	do("go on", func() error {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				runtime.LockOSThread()
				b := make([][]byte, 0)
				for i := range 100 {
					b = append(b, make([]byte, i<<8))
				}
				runtime.KeepAlive(b)
				<-time.After(time.Millisecond)
			})
		}
		wg.Wait()
		runtime.GC()
		return nil
	})
}

// statuses are the lines of /proc/PID/task/*/status that count, each once, and
// how many threads have not the same.
func statuses(pid int) string {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	seen := map[string]int{}
	for _, name := range tasks {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var keep []string
		for l := range strings.Lines(string(b)) {
			for _, key := range []string{"Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:"} {
				if strings.HasPrefix(l, key) {
					keep = append(keep, strings.Join(strings.Fields(l), " "))
				}
			}
		}
		seen[strings.Join(keep, "\n")]++
	}
	if len(seen) != 1 {
		return fmt.Sprintf("%d different of %d: %v", len(seen), len(tasks), seen)
	}
	for s := range seen {
		return s
	}
	return ""
}

// runChild runs a plan in its own process, and reads its threads' status from outside where the child cannot.
func runChild(t *testing.T, p plan) results {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), child+"="+string(b))
	var diag strings.Builder
	cmd.Stderr = &diag
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	var out results
	err = json.NewDecoder(stdout).Decode(&out)
	if err == nil {
		out["status"] = statuses(cmd.Process.Pid)
	}
	stdin.Close()
	if e := cmd.Wait(); e != nil || err != nil {
		t.Fatalf("%v, %v: %s", err, e, &diag)
	}
	return out
}

// directory makes one with a file in it, which everybody may use.
func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Chmod(filepath.Join(dir, "old"), 0o666)
	return dir
}

// abi makes sure that the kernel has a version of Landlock that can do everything.
func abi(t *testing.T) {
	t.Helper()
	if v, err := ll.LandlockGetABIVersion(); err != nil || v < landlockSignals {
		t.Fatalf("this kernel has version %d of Landlock (%v), the test needs %d", v, err, landlockSignals)
	}
}

func (r results) expect(t *testing.T, want string, what ...string) {
	t.Helper()
	for _, w := range what {
		if r[w] != want {
			t.Errorf("%s: %q, want %q", w, r[w], want)
		}
	}
}

// What a confined process may do is what it needs, and nothing else.
func TestConfined(t *testing.T) {
	abi(t)
	series, files, tree, other := directory(t), directory(t), directory(t), directory(t)
	p := plan{
		Mode: Require, Dir: other, Listen: true, Writes: true,
		Needs: Needs{Series: []string{series}, Files: []string{filepath.Join(files, "f")}, Trees: []string{filepath.Join(tree, "new")}},
	}
	r := runChild(t, p)
	if r["error"] != "" || r["notes"] != "" {
		t.Fatalf("%v", r)
	}
	r.expect(t, "ok", "write series 0", "write file 0", "read file 0", "mkdir tree 0", "write tree 0", "accepts", "time zone", "go on")
	r.expect(t, forbidden, "write elsewhere", "truncate elsewhere", "read elsewhere", "read /etc/shadow", "read /etc/passwd", "list /",
		"read series 0", "mkdir series 0", "execute", "execute itself", "packet socket", "raw socket", "connect TCP", "listen TCP",
		"ptrace", "signal the parent", "mount", "load a module", "root directory", "network namespace", "device", "link to elsewhere",
		"symbolic link elsewhere", "rename elsewhere", "remove elsewhere", "memory of the parent", "environment of the parent", "read the parent's memory",
		"file by its handle")
	if filters {
		r.expect(t, forbidden, "udp socket", "unix socket", "netlink socket", "user namespace", "bpf", "keyring", "code", "setuid 0", "type into the terminal",
			"program without a file") // Landlock knows files of file systems only
	}
	status(t, r, map[string]string{"CapEff": zeros, "CapPrm": zeros, "CapInh": zeros, "CapAmb": zeros, "NoNewPrivs": "1"})
	if filters {
		status(t, r, map[string]string{"Seccomp": "2"})
	}
	status(t, r, map[string]string{"CapBnd": zeros})
}

const zeros = "0000000000000000"

// status checks the lines of the status.
func status(t *testing.T, r results, want map[string]string) {
	t.Helper()
	for key, v := range want {
		if !strings.Contains("\n"+r["status"]+"\n", "\n"+key+": "+v+"\n") {
			t.Errorf("not %s: %s in\n%s", key, v, r["status"])
		}
	}
}

// TestUser needs root. Root becomes the user that was named, who cannot write where it may not.
func TestUser(t *testing.T) {
	abi(t)
	dir, other := directory(t), directory(t)
	r := runChild(t, plan{User: "4711", Mode: Require, Dir: other, Needs: Needs{Series: []string{dir}}})
	if r["error"] != "" {
		t.Fatal(r["error"])
	}
	r.expect(t, "ok", "write series 0", "go on")
	r.expect(t, forbidden, "write elsewhere", "read /etc/shadow", "setuid 0", "packet socket")
	status(t, r, map[string]string{
		"Uid": "4711 4711 4711 4711", "Gid": "4711 4711 4711 4711", "Groups": "4711",
		"CapEff": zeros, "CapPrm": zeros, "CapInh": zeros, "CapAmb": zeros, "CapBnd": zeros, "NoNewPrivs": "1",
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r = runChild(t, plan{User: "4711", Dir: other, Needs: Needs{Series: []string{dir}}})
	if want := "write to " + dir + ": permission denied: captures are written as user 4711"; !strings.Contains(r["error"], want) {
		t.Errorf("%q, want %q", r["error"], want)
	}
}

// Off leaves all as it is.
func TestOff(t *testing.T) {
	dir := directory(t)
	r := runChild(t, plan{Mode: Off, Dir: dir})
	r.expect(t, "ok", "write elsewhere", "read elsewhere", "read /etc/passwd", "list /")
	r.expect(t, "", "notes", "error")
}

// Names of hosts can be looked up if they are needed, and nothing else.
func TestNames(t *testing.T) {
	abi(t)
	dir := directory(t)
	r := runChild(t, plan{Dir: dir, Needs: Needs{Names: true}})
	r.expect(t, "ok", "names", "udp socket", "go on")
	r.expect(t, forbidden, "read /etc/shadow", "read /etc/passwd", "write elsewhere", "connect TCP", "listen TCP", "packet socket")
	if filters {
		r.expect(t, forbidden, "unix socket", "netlink socket")
	}
}

// A socket that is connected is written to, and reaches nobody else.
func TestDatagrams(t *testing.T) {
	abi(t)
	dir := directory(t)
	p := plan{Mode: Require, Dir: directory(t), Socket: filepath.Join(dir, "s"), Needs: Needs{Datagrams: true}}
	for _, name := range []string{p.Socket, p.Socket + "2"} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		// It is the filter that forbids, not permissions of a file.
		if err := os.Chmod(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	r := runChild(t, p)
	r.expect(t, "", "error", "notes")
	r.expect(t, "ok", "write datagram", "go on")
	r.expect(t, forbidden, "read /etc/passwd", "write elsewhere", "packet socket")
	if filters {
		r.expect(t, forbidden, "address datagram 0", "address datagram 1", "unix socket")
	}
}

// What an older kernel cannot do is noted, or an error if it is required.
func TestOldKernel(t *testing.T) {
	abi(t)
	dir := directory(t)
	for _, c := range []struct {
		version int
		want    string
	}{
		{-1, "not sandboxed: files and network: this kernel has no Landlock"},
		{1, "not sandboxed: truncating files, TCP connections, signals to other processes: this kernel has version 1 of Landlock, 6 is needed"},
		{3, "not sandboxed: TCP connections, signals"},
		{5, "not sandboxed: signals to other processes: "},
		{6, ""},
	} {
		r := runChild(t, plan{Dir: dir, Kernel: c.version, Writes: true})
		if r["error"] != "" || !strings.HasPrefix(r["notes"], c.want) || (c.want == "") != (r["notes"] == "") {
			t.Errorf("version %d: %q, %q, want %q", c.version, r["error"], r["notes"], c.want)
		}
		r = runChild(t, plan{Dir: dir, Kernel: c.version, Writes: true, Mode: Require})
		if (r["error"] == "") != (c.want == "") || c.want != "" && !strings.HasPrefix(r["error"], "--sandbox require: ") {
			t.Errorf("version %d, required: %q", c.version, r["error"])
		}
	}
}
