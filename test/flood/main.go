// Command flood measures how a server of the toolkit serves a well-behaved peer
// while others flood it: with connections that say nothing, with connection
// requests that nobody completes, with calls whose replies nobody reads, and with
// records that never end. The server is another process, so that its memory can be
// told from that of the attack. Everything stays on the loopback interface.
//
//	go run ./test/flood                      # what others get while a server is under attack
//	go run ./test/flood -only rocev2/req     # the rows whose names contain that
//
// The exit status is 1 if a legitimate connect took longer than -limit, or if the
// server's resident memory exceeded -memory.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	silentN = flag.Int("silent", 3000, "silent connections")
	rate    = flag.Int("rate", 20000, "connection requests a second")
	readers = flag.Int("readers", 400, "connections that call for large READs and never read")
	tries   = flag.Int("tries", 20, "legitimate connects for each row")
	only    = flag.String("only", "", "rows whose names contain this")
	limit   = flag.Duration("limit", time.Second, "the longest that a legitimate connect may take")
	memory  = flag.Int("memory", 1024, "MiB that the server may have resident")
	patient = flag.Duration("patient", 30*time.Second, "when a legitimate connect is given up")
	verbose = flag.Bool("v", false, "show what the server says")
	serveAs = flag.String("serve", "", "be the server of this fabric (used by the command itself)")
	at      = flag.String("at", "", "where the server listens (used by the command itself)")
)

// idleGoroutines is the number of goroutines of a server without connections.
const idleGoroutines = 4

// row is an attack on a fabric.
type row struct {
	name   string
	fabric string
	attack func(ctx context.Context, s *server) (what string, err error)
}

func main() {
	flag.Parse()
	if *serveAs != "" {
		if err := serve(*serveAs, *at); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	raiseFiles()
	rows := []row{
		{"tcp/none", "tcp", none},
		{"tcp/silent/same", "tcp", silent(same)},
		{"tcp/silent/other", "tcp", silent(other)},
		{"tcp/silent/many", "tcp", silent(many)},
		{"tcp/null-then-silent/same", "tcp", nullThenSilent},
		{"tcp/unread", "tcp", unreadTCP},
		{"tcp/slow-records", "tcp", slowRecords},
		{"iwarp/none", "iwarp", none},
		{"iwarp/silent/same", "iwarp", silent(same)},
		{"iwarp/silent/other", "iwarp", silent(other)},
		{"iwarp/setup-then-silent", "iwarp", setupThenSilent},
		{"iwarp/unread", "iwarp", unreadRDMA},
		{"rocev2/none", "rocev2", none},
		{"rocev2/req100/other", "rocev2", requests(other, 100)},
		{"rocev2/req/same", "rocev2", requests(same, 0)},
		{"rocev2/req/other", "rocev2", requests(other, 0)},
		{"rocev2/req/many", "rocev2", requests(many, 0)},
		{"rocev2/unread", "rocev2", unreadRDMA},
	}
	fmt.Printf("| attack | what it did | connect and NULL: median | slowest | failed | MiB resident | MiB heap | goroutines after |\n|-|-|-:|-:|-:|-:|-:|-:|\n")
	bad := false
	for _, r := range rows {
		if !strings.Contains(r.name, *only) {
			continue
		}
		ok, err := run(&r)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", r.name, err)
			ok = false
		}
		bad = bad || !ok
	}
	if bad {
		os.Exit(1)
	}
}

func run(r *row) (ok bool, err error) {
	s, err := startServer(r.fabric)
	if err != nil {
		return false, err
	}
	defer s.stop()
	ctx, cancel := context.WithCancel(context.Background())
	what, err := r.attack(ctx, s)
	if err != nil {
		cancel()
		return false, err
	}
	var times []time.Duration
	failed := 0
	for range *tries {
		d, err := s.connect()
		times = append(times, d)
		if err != nil {
			failed++
			if *verbose {
				fmt.Fprintf(os.Stderr, "%s: %v after %v\n", r.name, err, d)
			}
		}
		time.Sleep(20 * time.Millisecond)
		if failed >= 2 {
			break // it will not get better
		}
	}
	heap, _, err := s.stats()
	if err != nil {
		cancel()
		return false, err
	}
	peak := s.peak()
	cancel()
	s.attackers.Wait()
	// Connections that end take a moment: two seconds for a peer to read why.
	var goroutines int
	for range 50 {
		time.Sleep(200 * time.Millisecond)
		if _, goroutines, err = s.stats(); err != nil {
			return false, err
		}
		if goroutines <= idleGoroutines {
			break
		}
	}
	slices.Sort(times)
	slowest := times[len(times)-1]
	fmt.Printf("| %s | %s | %s | %s | %d of %d | %d | %d | %d |\n", r.name, what, short(times[len(times)/2]), short(slowest), failed, len(times), peak, heap, goroutines)
	return failed == 0 && slowest <= *limit && peak <= *memory && goroutines <= idleGoroutines, nil
}

func short(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

// raiseFiles allows as many open files as the system lets us.
func raiseFiles() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		l.Cur = l.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	}
}

// startServer runs this program again as the server.
func startServer(fabric string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	port := uint16(0)
	if fabric == "rocev2" {
		port = 20049
	}
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.4.1"), port)
	s := &server{fabric: fabric}
	s.cmd = exec.Command(self, "-serve", fabric, "-at", addr.String())
	s.cmd.Stderr = io.Discard
	if *verbose {
		s.cmd.Stderr = os.Stderr
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the server does not start: %w", err)
	}
	if s.addr, err = netip.ParseAddrPort(strings.TrimSpace(line)); err != nil {
		return nil, err
	}
	return s, s.prepare()
}

func (s *server) stop() {
	s.close()
	_ = s.in.Close()
	_ = s.cmd.Wait()
}

// stats asks the server for its heap in MiB and its goroutines.
func (s *server) stats() (heap, goroutines int, err error) {
	if _, err := fmt.Fprintln(s.in); err != nil {
		return 0, 0, err
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(line, &heap, &goroutines)
	return heap, goroutines, err
}

// peak is the server's peak resident memory in MiB.
func (s *server) peak() int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return -1
	}
	for l := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(l, "VmHWM:"); ok {
			kib, _ := strconv.Atoi(strings.Fields(v)[0])
			return kib >> 10
		}
	}
	return -1
}

// answer serves the parent's questions until its end.
func answer() {
	in := bufio.NewReader(os.Stdin)
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		tell()
		fmt.Println(m.HeapAlloc>>20, runtime.NumGoroutine())
	}
}
