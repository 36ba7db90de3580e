//go:build live && linux

package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
)

// program starts a command that captures, and waits until it says so or has
// bound its socket.
type program struct {
	*exec.Cmd
	out, diag bytes.Buffer
}

func start(t *testing.T, name string, sockets int, args ...string) *program {
	t.Helper()
	exe := os.Getenv(name)
	if exe == "" {
		t.Fatalf("%s is not set: run test/live/run", name)
	}
	p := &program{Cmd: exec.Command(exe, args...)}
	p.Stdout, p.Stderr = &p.out, &p.diag
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	for deadline := time.Now().Add(time.Minute); bound() < sockets; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not capture: %s", name, &p.diag)
		}
	}
	return p
}

func (p *program) stop(t *testing.T) {
	t.Helper()
	_ = p.Process.Signal(syscall.SIGINT)
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &p.diag)
	}
}

// bound counts the packet sockets that run.
func bound() (n int) {
	b, _ := os.ReadFile("/proc/net/packet")
	for i, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if f := strings.Fields(l); i > 0 && len(f) > 5 && f[3] == "0003" && f[5] == "1" {
			n++
		}
	}
	return n
}

// counts holds the calls of one kind of operation, and its failures.
type counts struct{ calls, errors uint64 }

var metric = regexp.MustCompile(`^rpcrdma_(transactions|errors)_total\{(.*)\} ([0-9.e+]+)$`)

// metrics reads counters by operation from a page of Prometheus.
func metrics(t *testing.T, page string) map[string]counts {
	t.Helper()
	list := make(map[string]counts)
	for l := range strings.Lines(page) {
		m := metric.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil {
			continue
		}
		label := func(name string) string {
			_, rest, _ := strings.Cut(m[2], name+`="`)
			v, _, _ := strings.Cut(rest, `"`)
			return v
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		key := label("operation")
		c := list[key]
		if m[1] == "transactions" {
			c.calls += uint64(v)
		} else {
			c.errors += uint64(v)
		}
		list[key] = c
	}
	return list
}

// The totals of rpcrdma-top on an interface equal those of rpcrdma-dump report on
// the same packets, as another process has captured them beside it.
func TestTop(t *testing.T) {
	dump := os.Getenv("RPCRDMA_DUMP")
	samples, err := filepath.Glob("../../samples/*.pcap*")
	if err != nil || len(samples) == 0 {
		t.Fatal("no samples")
	}
	a, b := veth(t)
	for _, c := range []struct{ watch, send string }{{b, a}, {"lo", "lo"}} {
		t.Run(c.watch, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.pcapng")
			send := sender(t, c.send)
			var top *program
			for rate := 50000; ; rate /= 3 { // beside others, a program may be too late for some packets
				capturing := start(t, "RPCRDMA_DUMP", 1, "capture", "-i", c.watch, "-w", file, "--rpc")
				top = start(t, "RPCRDMA_TOP", 2, "-i", c.watch, "--batch", "0", "--rpc")
				for _, name := range samples {
					if strings.Contains(name, "loss.both") {
						continue // both ends: each packet twice
					}
					replay(t, name, rate, send)
				}
				top.stop(t)
				capturing.stop(t)
				if strings.Contains(top.diag.String(), " 0 packets dropped") && strings.Contains(capturing.diag.String(), ", 0 dropped") {
					break
				}
				if rate < 1000 {
					t.Fatalf("packets were dropped, so that nothing can be compared: %s%s", &top.diag, &capturing.diag)
				}
			}
			want := reported(t, dump, file)
			got := table(t, top.out.String())
			if !maps.Equal(got, want) || len(want) < 40 {
				for k := range want {
					if got[k] != want[k] {
						t.Errorf("%s: %+v, report says %+v", k, got[k], want[k])
					}
				}
				for k := range got {
					if _, ok := want[k]; !ok {
						t.Errorf("%s: not in the report", k)
					}
				}
				t.Errorf("%d operations, want %d (at least 40)", len(got), len(want))
			}
		})
	}
}

// replay sends the packets of a capture at a steady rate, packets a second, or slower.
func replay(t *testing.T, name string, rate int, send func([]byte)) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var batch capture.Batch
	next := time.Now()
	for r.Read(&batch) == nil {
		for i := range batch.Packets {
			p := &batch.Packets[i]
			if p.Link != capture.LinkEthernet || len(p.Data) < 60 {
				continue
			}
			switch d := time.Until(next); {
			case d > 200*time.Microsecond:
				time.Sleep(d)
			case d < -time.Millisecond:
				next = next.Add(-d) // what was missed is not sent at once
			}
			send(p.Data)
			next = next.Add(time.Second / time.Duration(rate))
		}
	}
}

// reported returns the counts of rpcrdma-dump report.
func reported(t *testing.T, dump, file string) map[string]counts {
	t.Helper()
	cmd := exec.Command(dump, "report", "-T", "json", file)
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 3 { // cut samples are cut here, too
		t.Fatal(err)
	}
	var report struct {
		Groups []struct {
			Key           []string
			Count, Errors uint64
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	list := make(map[string]counts)
	for _, g := range report.Groups {
		list[g.Key[0]] = counts{g.Count, g.Errors}
	}
	return list
}

// table reads the operations of a batch.
func table(t *testing.T, out string) map[string]counts {
	t.Helper()
	_, out, _ = strings.Cut(out, "\nOperations\n")
	out, _, _ = strings.Cut(out, "\n\n")
	head, out, _ := strings.Cut(out, "\n")
	cell := func(line []rune, name string) string { // columns of numbers end with their headings
		end := strings.Index(head, name) + len(name)
		if end < len(name) || end > len(line) {
			t.Fatalf("no column %s: %s", name, head)
		}
		f := strings.Fields(string(line[:end]))
		return f[len(f)-1]
	}
	list := make(map[string]counts)
	for l := range strings.Lines(out) {
		var c counts
		line := []rune(l)
		if v := cell(line, "ERR"); v != "-" {
			c.errors, _ = strconv.ParseUint(v, 10, 64)
		}
		var err error
		if c.calls, err = strconv.ParseUint(cell(line, "COUNT"), 10, 64); err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(l)
		list[f[0]+" "+f[1]] = c
	}
	return list
}

// 100,000 packets a second go through rpcrdma-top without a drop, in less than
// half a processor, its screen's figures included.
func TestTopRate(t *testing.T) {
	a, b := veth(t)
	send := sender(t, a)
	list := roceFrames(t)
	rated(t, func(t *testing.T) (got attempt, slow bool) {
		top := start(t, "RPCRDMA_TOP", 1, "-i", b, "--batch", "0", "--listen", "127.0.0.1:9750")
		before := waiting(top.Process.Pid)
		got.sent, got.took, slow = paced(send, list)
		got.waited = waiting(top.Process.Pid) - before
		wait(t, "metrics", func() bool {
			resp, err := http.Get("http://127.0.0.1:9750/metrics")
			if err != nil {
				t.Fatal(err)
			}
			page, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			return err == nil && (slow || len(metrics(t, string(page))) > 0)
		})
		top.stop(t)
		got.cpu = top.ProcessState.UserTime() + top.ProcessState.SystemTime()
		dropped := -1
		_, counts, _ := strings.Cut("\n"+top.diag.String(), "\nrpcrdma-top: "+b+": ")
		if _, err := fmt.Sscanf(counts, "%d packet", &dropped); err != nil {
			t.Errorf("%v:\n%s", err, &top.diag)
		}
		got.dropped = dropped != 0
		return got, slow
	})
}
