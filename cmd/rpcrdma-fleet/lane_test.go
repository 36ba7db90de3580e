//go:build lane

// The tests of this file run a cluster for real: three NATS servers, a server of S3, and workers, each a process of
// its own, which are killed. See lane/run.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/internal/testtools/fleetgen"
)

func init() {
	roles["nats"] = natsServer
	roles["halting"] = haltingWorker
}

// natsServer is a node: its configuration is the first argument.
func natsServer() int {
	o, err := server.ProcessConfigFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o.NoSigs = true
	s, err := server.NewServer(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	signal.Reset()
	s.Start()
	s.WaitForShutdown()
	return 0
}

// haltingWorker is a worker that says so at some place, and goes on when it is told to: its arguments are the place
// (begin, middle, result, never) and, for a worker that dies there instead, a tap.
func haltingWorker() int {
	place, poison := os.Args[1], ""
	if len(os.Args) > 2 {
		poison = os.Args[2]
	}
	notes := cli.NewProblems("halting worker", os.Stderr)
	in := bufio.NewReader(os.Stdin)
	halted := false
	halt := func(u *layout.Unit) {
		switch {
		case poison != "" && u.Tap == poison:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case poison == "" && !halted:
			halted = true
			fmt.Println("halted in", u.Tap)
			if _, err := in.ReadString('\n'); err != nil {
				os.Exit(9)
			}
		}
	}
	real := decoder(conditions{Most: 1 << 30}, notes)
	decode := func(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, progress func(queue.Progress)) error {
		if place == "begin" {
			halt(u)
		}
		err := real(ctx, u, in, out, func(p queue.Progress) {
			if place == "middle" && p.File >= len(u.Files)*2/3 {
				halt(u)
			}
			progress(p)
		})
		if place == "result" && err == nil {
			halt(u)
		}
		return err
	}
	ctx, stop := cli.Context(context.Background())
	defer stop()
	allow := strings.Split(os.Getenv("LANE_ALLOW"), " ")
	if err := labour(ctx, queue.NewName(), queue.Address{Servers: os.Getenv("LANE_NATS")}, conditions{Allow: allow, Most: 1 << 30}, decode, notes); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a child.
type process struct {
	*exec.Cmd
	in    io.WriteCloser
	lines chan string // of its standard output
	said  *words
}

// words are what a process says, for whoever looks at them meanwhile.
type words struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// start starts this program in a role.
func start(t *testing.T, role string, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 100), said: &words{}}
	p.Env = append(append(os.Environ(), roleVariable+"="+role), env...)
	p.Stderr = p.said
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	t.Cleanup(func() { p.kill() })
	return p
}

// kill ends a process as kill -9 does.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// halted waits until a worker says where it is.
func (p *process) halted(t *testing.T) {
	t.Helper()
	select {
	case s, ok := <-p.lines:
		if ok && strings.HasPrefix(s, "halted") {
			t.Log(s)
			return
		}
		t.Fatalf("the worker ended: %s %s", s, p.said)
	case <-time.After(patience):
		t.Fatalf("the worker does not come to its place: %s", p.said)
	}
}

// reserve finds a port for a server that is started, or started again, later. A socket keeps it until the test ends: it
// does not listen, so that a server may, and neither does the kernel give the port to anybody who connects or asks for
// any, nor to whoever else reserves one.
func reserve(t *testing.T) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})); err != nil {
		t.Fatal(err)
	}
	a, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return a.(*syscall.SockaddrInet4).Port
}

// cluster are three NATS servers.
type cluster struct {
	*testing.T
	files [3]string
	nodes [3]*process
	urls  string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t}
	dir := t.TempDir()
	var ports, routes [3]int
	var list, peers []string
	for i := range 3 {
		ports[i], routes[i] = reserve(t), reserve(t)
		list = append(list, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
		peers = append(peers, fmt.Sprintf("nats://127.0.0.1:%d", routes[i]))
	}
	c.urls = strings.Join(list, ",")
	for i := range 3 {
		c.files[i] = filepath.Join(dir, fmt.Sprintf("node%d.conf", i))
		conf := fmt.Sprintf("server_name: node%d\nlisten: 127.0.0.1:%d\njetstream { store_dir: %q, max_mem: 32M, max_file: 4G }\ncluster { name: fleet, listen: 127.0.0.1:%d, routes: [%s] }\n",
			i, ports[i], filepath.Join(dir, fmt.Sprint("node", i)), routes[i], strings.Join(peers, ", "))
		if err := os.WriteFile(c.files[i], []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		c.start(i)
	}
	return c
}

func (c *cluster) start(i int) { c.nodes[i] = start(c.T, "nats", nil, c.files[i]) }

// AckWaits of the lane: see queue/queue_test.go. A part in which workers are killed has one at a time who lives. Where a
// server is killed, what was on its way comes again after it; choosing another leader takes up to nine seconds.
const (
	longWait   = 30 * time.Second
	mediumWait = 10 * time.Second
	shortWait  = 3 * time.Second
)

// queue makes the queue.
func (c *cluster) queue() (*queue.Queue, jetstream.JetStream) {
	c.Helper()
	deadline := time.Now().Add(patience)
	for {
		nc, err := queue.Dial(queue.Address{Servers: c.urls}, queue.Submitter, "lane", func(string, ...any) {})
		if err == nil {
			ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
			q, err2 := queue.Create(ctx, nc, queue.Setup{AckWait: longWait})
			cancel()
			if err2 == nil {
				js, err := jetstream.New(nc)
				if err != nil {
					c.Fatal(err)
				}
				c.Cleanup(nc.Close)
				return q, js
			}
			nc.Close()
			err = err2
		}
		if time.Now().After(deadline) {
			c.Fatalf("the cluster does not come up: %v\n%s", err, c.nodes[0].said)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// leader is the node that leads the stream, when the two others have all that it has.
func (c *cluster) leader(js jetstream.JetStream) int {
	c.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		s, err := js.Stream(c.Context(), queue.Stream)
		if err == nil {
			info := s.CachedInfo()
			if x := info.Cluster; x != nil && strings.HasPrefix(x.Leader, "node") && len(x.Replicas) == 2 && x.Replicas[0].Current && x.Replicas[1].Current {
				return int(x.Leader[len("node")] - '0')
			}
			err = fmt.Errorf("%+v", info.Cluster)
		}
		if time.Now().After(deadline) {
			c.Fatalf("the queue is not kept by three servers: %v", err)
		}
	}
}

// missed sets the AckWait of the queue, for workers that are started afterwards.
func (l *lane) missed(ackWait time.Duration) {
	l.Helper()
	set := func() error {
		c, err := l.js.Consumer(l.Context(), queue.Stream, queue.Consumer)
		if err != nil {
			return err
		}
		config := c.CachedInfo().Config
		config.AckWait = ackWait
		if _, err = l.js.UpdateConsumer(l.Context(), queue.Stream, config); err != nil {
			return err
		}
		s, err := l.js.Stream(l.Context(), "KV_"+queue.WorkerBucket)
		if err != nil {
			return err
		}
		bucket := s.CachedInfo().Config
		bucket.MaxAge = ackWait
		bucket.Duplicates = min(bucket.Duplicates, ackWait)
		_, err = l.js.UpdateStream(l.Context(), bucket)
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		err := set()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			l.Fatalf("AckWait cannot be set: %v", err)
		}
	}
}

// s3 is a server of S3, with a proxy in front that can make it fail.
type s3 struct {
	root  string // its buckets are folders here
	url   string // of the proxy
	away  atomic.Bool
	fails atomic.Int64
	// underway are requests that the server has: also of those who have ended since, and whose objects may appear yet.
	underway atomic.Int64
	// halt, if set, says which requests get no answer.
	halt atomic.Pointer[func(*http.Request) bool]
}

func newS3(t *testing.T) *s3 {
	t.Helper()
	program := os.Getenv("LANE_VERSITYGW")
	if program == "" {
		t.Fatal("LANE_VERSITYGW names no server of S3: use lane/run")
	}
	s := &s3{root: t.TempDir()}
	for _, b := range []string{"caps", "out"} {
		if err := os.Mkdir(filepath.Join(s.root, b), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const access, secret = "lane", "lane-secret"
	t.Setenv("AWS_ACCESS_KEY_ID", access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	port := reserve(t)
	gw := exec.Command(program, "--port", fmt.Sprintf("127.0.0.1:%d", port), "--quiet", "posix", "--sidecar", t.TempDir(), s.root)
	gw.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+access, "ROOT_SECRET_KEY="+secret)
	var said words
	gw.Stdout, gw.Stderr = &said, &said
	if err := gw.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = gw.Process.Kill()
		_ = gw.Wait()
	})
	target := &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	pass := httputil.NewSingleHostReverseProxy(target) // it keeps the Host that was signed
	pass.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if halt := s.halt.Load(); halt != nil && (*halt)(r) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		if !s.away.Load() {
			s.underway.Add(1)
			defer s.underway.Add(-1)
			ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
			defer cancel()
			pass.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		if s.fails.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0) // a reset
			c.Close()
		}
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	s.url = "http://" + l.Addr().String()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if r, err := http.Get(s.url); err == nil {
			r.Body.Close()
			if r.StatusCode != http.StatusBadGateway {
				return s
			}
		}
	}
	t.Fatalf("the server of S3 does not come up: %s", &said)
	return nil
}

// at is the URL of a place in a bucket.
func (s *s3) at(place string) string { return "s3://" + place + "?endpoint=" + s.url }

// put copies captures into the bucket caps, through the server.
func (s *s3) put(t *testing.T, dir string) {
	t.Helper()
	st, err := store.Open(t.Context(), s.at("caps"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	list, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.WriteSmall(t.Context(), filepath.ToSlash(strings.TrimPrefix(name, dir+"/")), b); err != nil {
			t.Fatal(err)
		}
	}
}

const laneTaps = 8

// lane is all of it, and what the results must be.
type lane struct {
	*testing.T
	c    *cluster
	s    *s3
	q    *queue.Queue
	js   jetstream.JetStream
	want map[string]string
	told map[string]string // reports over what one process made
	n    int
	out  string // of the current test
	caps string // the captures, as files
}

func (l *lane) env() []string {
	return []string{"LANE_NATS=" + l.c.urls, "LANE_ALLOW=" + l.s.at("caps") + " " + l.s.at("out")}
}

// worker starts one that is whole.
func (l *lane) worker() *process {
	return start(l.T, "fleet", nil, "worker", "--nats", l.c.urls, "--allow", l.s.at("caps"), "--allow", l.s.at("out"))
}

// halting starts one that stops at a place.
func (l *lane) halting(args ...string) *process { return start(l.T, "halting", l.env(), args...) }

// part makes several Parquet files of a unit: places to go on from. Patience is how long a test waits for workers.
var (
	part     = "20K"
	patience = 3 * time.Minute
)

// memory of a worker is enough for units and rpcrdma-dump, which divide it in other ways, to reach no limit.
const memory = "400M"

// laneCaptures writes the captures of 8 taps in 10 slices: each tap has one of the samples. If RPCRDMA_CAPTURES names a
// folder, each tap has all of its captures instead, in another order and of other hosts.
func laneCaptures(t *testing.T, dir string) {
	t.Helper()
	from := os.Getenv("RPCRDMA_CAPTURES")
	if from == "" {
		captures(t, dir, laneTaps, 10)
		return
	}
	part, patience = "8M", 15*time.Minute
	var in []string
	for _, pattern := range []string{"*.pcap", "*.pcapng"} {
		list, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, list...)
	}
	if err := fleetgen.Write(dir, in, fleetgen.Options{Taps: laneTaps, Slices: 10, Seed: 7}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d captures at each of %d taps", len(in), laneTaps)
}

// submit queues all taps for a store of their own.
func (l *lane) submit(t *testing.T, more ...string) {
	t.Helper()
	l.T = t
	if len(more) == 0 {
		l.n++
		l.out = fmt.Sprint("out/", l.n)
	}
	args := append([]string{"submit", "--nats", l.c.urls, "--part", part, "--limit-memory", memory, l.s.at("caps/*/*.pcap*"), "-w", l.s.at(l.out)}, more...)
	if status, _, stderr := command(t, args...); status != 0 {
		t.Fatalf("submit: status %d, %s", status, stderr)
	}
}

func (l *lane) status() (int, *shown) {
	l.Helper()
	code, stdout, stderr := command(l.T, "status", "--nats", l.c.urls, "--format", "json", l.s.at(l.out))
	x := &shown{}
	if err := json.Unmarshal([]byte(stdout), x); err != nil {
		l.Fatalf("status: %d, %v, %s", code, err, stderr)
	}
	return code, x
}

// until waits for a status.
func (l *lane) until(what string, ok func(*shown) bool) *shown {
	l.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		code, x := l.status()
		if ok(x) {
			if (code == 0) != x.Complete {
				l.Errorf("exit status %d, complete: %v", code, x.Complete)
			}
			return x
		}
		if time.Now().After(deadline) {
			l.Fatalf("%s: not within %v: %+v", what, patience, x)
		}
	}
}

func (l *lane) complete() {
	l.Helper()
	l.until("all units done", func(x *shown) bool { return x.Complete })
}

// same compares the results of the current test with those of one process.
func (l *lane) same() {
	l.Helper()
	l.sameReports() // a unit is done as soon as its done.json is there
	l.quiet()
	same(l.T, l.Name(), results(l.T, filepath.Join(l.s.root, l.out)), l.want)
}

// quiet waits until nothing is left in the queue: what was delivered again was found done. A worker acknowledges a unit
// after it has removed what it had kept for resuming; until then objects of the unit come and go.
func (l *lane) quiet() {
	l.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		s, err := l.js.Stream(l.Context(), queue.Stream)
		if err == nil {
			var info *jetstream.StreamInfo
			if info, err = s.Info(l.Context()); err == nil && info.State.Msgs == 0 {
				return
			}
		}
		if time.Now().After(deadline) {
			l.Fatalf("the queue does not become empty: %v", err)
		}
	}
}

func TestLane(t *testing.T) {
	l := &lane{T: t, c: newCluster(t), s: newS3(t)}
	l.q, l.js = l.c.queue()
	dir := t.TempDir()
	l.caps = dir
	laneCaptures(t, dir)
	l.s.put(t, dir)
	decodeAlone(t, func(tap int) string { return l.s.at(fmt.Sprintf("caps/tap-[%d]/*.pcap*", tap)) }, laneTaps, l.s.at("out/alone"), "--part", part, "--limit-memory", memory)
	l.want = results(t, filepath.Join(l.s.root, "out/alone"))
	t.Logf("%d results of one process", len(l.want))
	if len(l.want) < 4*laneTaps {
		t.Fatal("too few")
	}
	times := 1
	if n := os.Getenv("LANE_TIMES"); n != "" {
		var err error
		if times, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		name    string
		run     func(*testing.T, *lane)
		ackWait time.Duration
	}{
		{"Embedded", embedded, longWait}, {"OneProcess", outside, longWait}, {"Cluster", plain, longWait}, {"KilledInUnit", killedInUnit, shortWait},
		{"KilledBeforeAck", killedBeforeAck, shortWait}, {"NodeKilled", nodeKilled, mediumWait}, {"StoreAway", storeAway, longWait},
		{"Duplicates", duplicates, longWait}, {"Poison", poison, shortWait}, {"Stopped", stopped, longWait},
	} {
		for range times {
			t.Run(x.name, func(t *testing.T) {
				l.T = t
				start := time.Now()
				l.missed(x.ackWait)
				x.run(t, l)
				t.Logf("%.1f s", time.Since(start).Seconds())
			})
			l.T = t
		}
	}
}

// embedded: any number of workers on one machine.
func embedded(t *testing.T, l *lane) {
	t.Setenv(roleVariable, "fleet")
	for _, n := range []string{"1", "2", "4"} {
		l.n++
		l.out = fmt.Sprint("out/", l.n)
		if status, _, stderr := command(t, "run", "-n", n, "--part", part, "--limit-memory", memory, l.s.at("caps/*/*.pcap*"), "-w", l.s.at(l.out)); status != 0 {
			t.Fatalf("run -n %s: status %d, %s", n, status, stderr)
		}
		same(t, "run -n "+n, results(t, filepath.Join(l.s.root, l.out)), l.want)
		l.sameReports()
	}
}

// reports are those over a store, as JSON.
func (l *lane) reports(out string) map[string]string {
	l.Helper()
	m := map[string]string{}
	for _, c := range []string{"report", "check", "connections"} {
		status, stdout, stderr := command(l.T, c, "-T", "json", l.s.at(out))
		found := c == "check" && status == 1 && strings.Contains(stderr, errFindings.Error())
		if status != 0 && status != 3 && !found || !regexp.MustCompile(fmt.Sprintf(`"done": ?%d,`, laneTaps)).MatchString(stdout) {
			l.Fatalf("%s: status %d, %.300s %s", c, status, stdout, stderr)
		}
		m[c] = fmt.Sprintf("status %d\n%s", status, stdout)
	}
	return m
}

// plain is a report over what one process made, without its status.
func (l *lane) plain(c string) string {
	_, s, _ := strings.Cut(l.told[c], "\n")
	return s
}

// sameReports compares the reports of the current test.
func (l *lane) sameReports() {
	l.Helper()
	if l.told == nil { // the units of one process, with the job that they are of
		jobs := os.DirFS(filepath.Join(l.s.root, l.out, "jobs"))
		if err := os.CopyFS(filepath.Join(l.s.root, "out/alone/jobs"), jobs); err != nil {
			l.Fatal(err)
		}
		l.told = l.reports("out/alone")
	}
	for c, got := range l.reports(l.out) {
		if got != l.told[c] {
			l.Errorf("%s differs from that of one process: %d bytes, want %d", c, len(got), len(l.told[c]))
		}
	}
}

func plain(t *testing.T, l *lane) {
	l.submit(t)
	l.worker()
	l.worker()
	l.complete()
	l.same()
}

// killedInUnit: kill -9 when two thirds of a unit are done. Another goes on from the last part.
func killedInUnit(t *testing.T, l *lane) {
	l.submit(t)
	w := l.halting("middle")
	w.halted(t)
	w.kill()
	l.worker()
	l.complete()
	l.same()
	failures, err := filepath.Glob(filepath.Join(l.s.root, l.out, "units", "*", "failed", "*.json"))
	if err != nil || len(failures) != 1 {
		t.Errorf("%d crashes are noted in the store, want 1 (%v)", len(failures), err)
	}
}

// killedBeforeAck: kill -9 when the result is there, and nobody knows it.
func killedBeforeAck(t *testing.T, l *lane) {
	l.submit(t)
	w := l.halting("result")
	w.halted(t)
	_, x := l.status()
	if n := x.Jobs[0].Numbers; n.Done+n.Damaged != 1 {
		t.Errorf("the result of one unit should be there: %+v", n)
	}
	w.kill()
	l.worker()
	l.complete()
	l.same()
}

// nodeKilled: kill -9 of the server that leads the queue while a unit is decoded, and its return.
func nodeKilled(t *testing.T, l *lane) {
	l.submit(t)
	w := l.halting("middle")
	w.halted(t)
	n := l.c.leader(l.js)
	l.c.nodes[n].kill()
	if _, err := io.WriteString(w.in, "go on\n"); err != nil {
		t.Fatal(err)
	}
	l.worker()
	// Half of the work without it, half with it.
	l.until("half of the units done", func(x *shown) bool { n := x.Jobs[0].Numbers; return n.Done+n.Damaged >= laneTaps/2 })
	l.c.start(n)
	l.complete()
	l.same()
}

// storeAway: every request fails for a while, in the middle of a unit.
func storeAway(t *testing.T, l *lane) {
	l.submit(t)
	w := l.halting("middle")
	w.halted(t)
	l.s.away.Store(true)
	if _, err := io.WriteString(w.in, "go on\n"); err != nil {
		t.Fatal(err)
	}
	l.worker()
	// Both try again and again, and wait longer each time.
	before := l.s.fails.Load()
	for deadline := time.Now().Add(patience); l.s.fails.Load() < before+12; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d requests failed", l.s.fails.Load()-before)
		}
	}
	l.s.away.Store(false)
	l.complete()
	l.same()
	failures, err := filepath.Glob(filepath.Join(l.s.root, l.out, "units", "*", "failed", "*.json"))
	if err != nil || len(failures) != 0 {
		t.Errorf("%d failures, want a delay only (%v)", len(failures), err)
	}
}

// duplicates: units are delivered again while they are decoded, and after.
func duplicates(t *testing.T, l *lane) {
	l.submit(t)
	w := l.halting("middle")
	w.halted(t)
	var acks []string
	for deadline := time.Now().Add(patience); len(acks) == 0; time.Sleep(100 * time.Millisecond) {
		s, err := l.q.Look(t.Context())
		if err == nil {
			for name, x := range s.Workers {
				// A worker of an earlier test, killed with its sign of life, may still seem to have one.
				if r := s.Records[x.Key]; r != nil && r.State == queue.Running && r.Worker == name && strings.HasPrefix(x.Ack, "$JS.ACK.") {
					acks = append(acks, x.Ack)
				}
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no worker has a unit: %+v, %v", s, err)
		}
	}
	if len(acks) != 1 {
		t.Errorf("%d workers have a unit", len(acks))
	}
	for _, ack := range acks {
		if err := l.js.Conn().Publish(ack, []byte("-NAK")); err != nil {
			t.Fatal(err)
		}
	}
	l.worker()
	if _, err := io.WriteString(w.in, "go on\n"); err != nil {
		t.Fatal(err)
	}
	l.complete()
	l.same()
	st, err := store.Open(t.Context(), l.s.at(l.out), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for round := range 2 {
		_, x := l.status()
		for _, u := range x.Jobs[0].Units {
			job := jobOf(t, l)
			if queued, err := l.q.Put(t.Context(), queue.Task{Store: st.URL(), Job: job, Unit: u.Unit}, round == 1); err != nil || !queued {
				t.Fatalf("%v, %v", queued, err)
			}
		}
		l.same()
	}
}

func jobOf(t *testing.T, l *lane) string {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(l.s.root, l.out, "jobs"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0].Name()
}

// poison: a unit at which every worker dies is set aside, and the others are done.
func poison(t *testing.T, l *lane) {
	l.submit(t)
	const tap = "tap-3"
	deadline := time.Now().Add(patience)
	for {
		w := l.halting("begin", tap)
		for {
			_, x := l.status()
			n := x.Jobs[0].Numbers
			if n.Aside == 1 && n.Done+n.Damaged == laneTaps-1 {
				w.kill()
				goto aside
			}
			if w.Process.Signal(syscall.Signal(0)) != nil || exited(w) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("not set aside: %+v\n%s", n, w.said)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
aside:
	code, x := l.status()
	if code != 3 {
		t.Errorf("exit status %d, want 3", code)
	}
	for _, u := range x.Jobs[0].Units {
		if u.Tap == tap && (u.State != "aside" || !strings.Contains(u.Reason, "3 workers crashed")) {
			t.Errorf("%+v", u)
		}
	}
	got := results(t, filepath.Join(l.s.root, l.out))
	for name := range got {
		if strings.HasSuffix(name, "/aside.json") {
			delete(got, name)
		}
	}
	for name, hash := range got {
		if l.want[name] != hash && !strings.HasSuffix(name, "/progress") {
			t.Errorf("%s has %.12s, want %.12s", name, hash, l.want[name])
		}
	}
	// It stays aside, until somebody asks for another try.
	l.submit(t, "--tap=")
	if _, x := l.status(); x.Jobs[0].Numbers.Aside != 1 {
		t.Error("a set aside unit is tried again")
	}
	l.submit(t, "--retry")
	l.worker()
	l.complete()
	l.same()
}

// exited reports whether a child is a zombie by now.
func exited(p *process) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(state, "Z")
}

// stopped: run is ended by a signal when some units are done and some are not, and a later one goes on.
func stopped(t *testing.T, l *lane) {
	l.n++
	l.out = fmt.Sprint("out/", l.n)
	args := []string{"run", "-n", "2", "--part", part, "--limit-memory", memory, l.s.at("caps/*/*.pcap*"), "-w", l.s.at(l.out)}
	// Only the first result gets through, so that the work does not end before the signal.
	var first atomic.Value
	halt := func(r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/done.json") {
			return false
		}
		first.CompareAndSwap(nil, r.URL.Path)
		return first.Load() != r.URL.Path
	}
	l.s.halt.Store(&halt)
	defer l.s.halt.Store(nil)
	p := start(t, "fleet", nil, args...)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		list, _ := filepath.Glob(filepath.Join(l.s.root, l.out, "units", "*", "done.json"))
		if len(list) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is done: %s", p.said)
		}
	}
	_ = p.Process.Signal(os.Interrupt)
	err := p.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(p.said.String(), "the same command goes on") {
		t.Errorf("%v: %s", err, p.said)
	}
	if list, _ := filepath.Glob(filepath.Join(l.s.root, l.out, "units", "*", "failed", "*.json")); len(list) != 0 {
		t.Errorf("a signal is not a failure: %q", list)
	}
	l.s.halt.Store(nil)
	for deadline := time.Now().Add(patience); l.s.underway.Load() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("requests of a program that has ended are still under way")
		}
	}
	p = start(t, "fleet", nil, args...)
	if err := p.Wait(); err != nil {
		t.Errorf("%v: %s", err, p.said)
	}
	same(t, "after a signal", results(t, filepath.Join(l.s.root, l.out)), l.want)
}
