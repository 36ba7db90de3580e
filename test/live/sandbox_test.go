//go:build live && linux

package live

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
)

// builds are the folders of the programs to test: as they are, and with the
// filter of system calls if there is one.
func builds(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{"as it is": filepath.Dir(os.Getenv("RPCRDMA_DUMP"))}
	if dir := os.Getenv("RPCRDMA_FILTERED"); dir != "" {
		list["with libseccomp"] = dir
	}
	return list
}

// threads reads a status line of all threads of a process, each value once.
func threads(t *testing.T, pid int, key string) string {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(names) == 0 {
		t.Fatalf("no threads of %d: %v", pid, err)
	}
	var values []string
	seen := map[string]bool{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		for l := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(l, key+":"); ok {
				v = strings.Join(strings.Fields(v), " ")
				if !seen[v] {
					seen[v] = true
					values = append(values, v)
				}
			}
		}
	}
	return strings.Join(values, ", ")
}

const noCapabilities = "0000000000000000"

// unprivileged checks the status of a process: user IDs
// (one number four times), and nothing to regain privilege with.
func unprivileged(t *testing.T, pid int, uid, groups string, filtered bool) {
	t.Helper()
	want := map[string]string{
		"Uid": strings.TrimSpace(strings.Repeat(uid+" ", 4)), "Groups": groups,
		"CapInh": noCapabilities, "CapPrm": noCapabilities, "CapEff": noCapabilities, "CapBnd": noCapabilities, "CapAmb": noCapabilities,
		"NoNewPrivs": "1",
	}
	if filtered {
		want["Seccomp"] = "2"
	}
	for key, v := range want {
		if got := threads(t, pid, key); got != v {
			t.Errorf("%s of the threads: %s, want %s", key, got, v)
		}
	}
	// The packet socket is not to be had with a debugger of the same user.
	if st, err := os.Stat(fmt.Sprintf("/proc/%d/mem", pid)); err != nil || st.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the process can be debugged by its user: %v", err)
	}
}

// wait polls until a condition is true.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// settled waits until a program has given up its privileges, as far as /proc shows: the filter
// comes last, and Landlock is not visible.
func settled(t *testing.T, pid int, filtered bool) {
	t.Helper()
	wait(t, "no_new_privs and the filter", func() bool {
		return threads(t, pid, "NoNewPrivs") == "1" && (!filtered || threads(t, pid, "Seccomp") == "2")
	})
}

// folder is a directory that a user may write to, reachable by all.
func folder(t *testing.T, uid int) string {
	t.Helper()
	dir := t.TempDir()
	for d := filepath.Dir(dir); len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A capture goes on as another user: files are rotated, removed, compressed and
// named by time, and what is written is whole. Each ends in its own way.
func TestUnprivilegedCapture(t *testing.T) {
	const uid = 4711
	for build, dir := range builds(t) {
		for _, c := range []struct {
			name string
			env  []string
			user []string
			args []string
			uid  string
			want int // files, at least
		}{
			{"one file", nil, []string{"-Z", "4711"}, []string{"-w", "a.pcapng"}, "4711", 1},
			{"one file, compressed", nil, []string{"-Z", "4711"}, []string{"-w", "a.pcap.zst"}, "4711", 1},
			{"rotation by size", []string{"SUDO_UID=4711", "SUDO_GID=4711"}, nil, []string{"-w", "a.pcapng", "-C", "20K"}, "4711", 5},
			{"newest files", nil, []string{"-Z", "4711"}, []string{"-w", "a.pcap.gz", "-C", "20K", "-W", "2"}, "4711", 2},
			{"names by time", nil, []string{"-Z", "4711"}, []string{"-w", "nfs-%F-%H%M%S.pcapng.zst", "-G", "0.05"}, "4711", 2},
			{"root", nil, nil, []string{"-w", "a.pcapng", "-C", "20K"}, "0", 5},
			{"root, asked for", []string{"SUDO_UID=4711", "SUDO_GID=4711"}, []string{"-Z", "root"}, []string{"-w", "a.pcapng", "-C", "20K"}, "0", 5},
			{"required", nil, []string{"-Z", "4711", "--sandbox", "require"}, []string{"-w", "a.pcapng", "-C", "20K"}, "4711", 5},
		} {
			t.Run(build+"/"+c.name, func(t *testing.T) {
				a, b := veth(t)
				send := sender(t, a)
				out := folder(t, uid)
				if c.uid == "0" {
					out = folder(t, 0)
				}
				cmd := exec.Command(filepath.Join(dir, "rpcrdma-dump"), append(append([]string{"capture", "-i", b, "--all"}, c.user...), c.args...)...)
				cmd.Dir = out
				cmd.Env = append(os.Environ(), c.env...)
				p := &program{Cmd: cmd}
				p.Stdout, p.Stderr = &p.out, &p.diag
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = p.Process.Kill() })
				wait(t, "capturing", func() bool { return bound() > 0 })
				settled(t, p.Process.Pid, build != "as it is")
				groups := "4711"
				if c.uid == "0" {
					groups = threads(t, p.Process.Pid, "Groups")
				}
				unprivileged(t, p.Process.Pid, c.uid, groups, build != "as it is")
				const n = 400
				f := make([]byte, 1000)
				for i := range n {
					f[900], f[901] = byte(i>>8), byte(i)
					send(f)
					time.Sleep(time.Millisecond)
				}
				p.stop(t)
				if want := fmt.Sprintf("%s: %d packets captured, 0 dropped", b, n); !strings.Contains(p.diag.String(), want) {
					t.Errorf("no %q in:\n%s", want, &p.diag)
				}
				files, _ := filepath.Glob(filepath.Join(out, "*"))
				if len(files) < c.want || strings.Contains(c.name, "newest") && len(files) != c.want {
					t.Errorf("%d files, want %d", len(files), c.want)
				}
				packets := 0
				for _, name := range files {
					st, err := os.Stat(name)
					if err != nil || fmt.Sprint(st.Sys().(*syscall.Stat_t).Uid) != c.uid {
						t.Errorf("%s belongs to another: %v", name, err)
					}
					r, err := capture.Open([]string{name}, capture.Options{})
					if err != nil {
						t.Fatal(err)
					}
					var batch capture.Batch
					for r.Read(&batch) == nil {
						packets += len(batch.Packets)
					}
					r.Close()
				}
				if packets != n && !strings.Contains(c.name, "newest") {
					t.Errorf("%d packets in %d files, want %d", packets, len(files), n)
				}
			})
		}
	}
}

// A user who cannot write the files is told at once, with a remedy.
func TestUnwritable(t *testing.T) {
	_, b := veth(t)
	for _, args := range [][]string{{"-w", "a.pcapng"}, {"-w", "a.pcapng", "-C", "1M"}} {
		cmd := exec.Command(os.Getenv("RPCRDMA_DUMP"), append([]string{"capture", "-i", b, "-Z", "4711"}, args...)...)
		cmd.Dir = folder(t, 0)
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "permission denied") || !strings.Contains(string(out), "as user 4711") {
			t.Errorf("%v: %s", err, out)
		}
	}
	out, err := exec.Command(os.Getenv("RPCRDMA_DUMP"), "-i", b, "-Z", "no-such-user").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `there is no user "no-such-user"`) {
		t.Errorf("%v: %s", err, out)
	}
}

// Conditions that end a capture, statistics, an interface that goes and one that
// comes: all with nothing left to open.
func TestUnprivilegedEnds(t *testing.T) {
	const sample = "../../samples/rocev2-nfs3-meta.pcap.zst"
	for build, dir := range builds(t) {
		exe := filepath.Join(dir, "rpcrdma-dump")
		t.Run(build+"/stop-filter", func(t *testing.T) {
			a, b := veth(t)
			p := startAt(t, exe, 1, folder(t, 4711), "capture", "-i", b, "-w", "a.pcapng", "-C", "1M", "-Z", "4711", "--stop-filter", "op == LOOKUP", "--after", "0.01")
			replay(t, sample, 5000, sender(t, a))
			if err := p.Wait(); err != nil || !strings.Contains(p.diag.String(), "stopped by packet") {
				t.Errorf("%v: %s", err, &p.diag)
			}
		})
		t.Run(build+"/stop-rule", func(t *testing.T) {
			a, b := veth(t)
			p := startAt(t, exe, 1, folder(t, 4711), "capture", "-i", b, "-w", "a.pcapng", "-Z", "4711", "--stop-latency", "1ns", "--stop-rule", "rnr-nak")
			replay(t, sample, 5000, sender(t, a))
			if err := p.Wait(); err != nil || !strings.Contains(p.diag.String(), "stopped by packet") {
				t.Errorf("%v: %s", err, &p.diag)
			}
		})
		t.Run(build+"/down", func(t *testing.T) {
			_, b := veth(t)
			p := startAt(t, exe, 1, folder(t, 4711), "capture", "-i", b, "-w", "a.pcapng", "-Z", "4711")
			ip(t, "link set "+b+" down")
			_ = p.Wait()
			if !strings.Contains(p.diag.String(), b+": the interface went down\n") {
				t.Errorf("%s", &p.diag)
			}
		})
		t.Run(build+"/gone", func(t *testing.T) {
			_, b := veth(t)
			p := startAt(t, exe, 1, folder(t, 4711), "capture", "-i", b, "-w", "a.pcapng", "-Z", "4711")
			ip(t, "link del "+b)
			_ = p.Wait()
			// The kernel takes an interface down before it removes it.
			if s := p.diag.String(); !strings.Contains(s, b+": the interface is gone\n") && !strings.Contains(s, b+": the interface went down\n") {
				t.Errorf("%s", &p.diag)
			}
		})
		t.Run(build+"/any", func(t *testing.T) {
			out := folder(t, 4711)
			p := startAt(t, exe, 1, out, "capture", "-i", "any", "-w", "a.pcapng", "-Z", "4711", "-f", "ether proto 0x8915")
			a, b := veth(t) // comes later
			send := sender(t, a)
			wait(t, "a packet in the file", func() bool { // a new link passes nothing for a moment
				send([]byte{12: 0x89, 13: 0x15, 59: 0})
				st, err := os.Stat(filepath.Join(out, "a.pcapng"))
				return err == nil && st.Size() > 200
			})
			p.stop(t)
			r, err := capture.Open([]string{filepath.Join(out, "a.pcapng")}, capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var batch capture.Batch
			for r.Read(&batch) == nil {
			}
			names := ""
			for _, tap := range r.(capture.Tapper).Taps() {
				names += tap.Name + " "
			}
			if names != a+" "+b+" " {
				t.Errorf("interfaces %s, want %s %s; %s", names, a, b, &p.diag)
			}
		})
	}
}

// startAt starts a program in a directory and waits until it captures and has
// given up what it gives up.
func startAt(t *testing.T, exe string, sockets int, dir string, args ...string) *program {
	t.Helper()
	extra := os.Getenv("RPCRDMA_FILTERED")
	filtered := extra != "" && filepath.Dir(exe) == filepath.Clean(extra)
	p := &program{Cmd: exec.Command(exe, args...)}
	p.Dir, p.Stdout, p.Stderr = dir, &p.out, &p.diag
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	wait(t, "capturing", func() bool { return bound() >= sockets })
	settled(t, p.Process.Pid, filtered)
	return p
}

// Listings, reports, exports and the live view become nobody.
func TestUnprivilegedListing(t *testing.T) {
	const sample = "../../samples/rocev2-nfs3-meta.pcap.zst"
	for build, dir := range builds(t) {
		dump := filepath.Join(dir, "rpcrdma-dump")
		for name, c := range map[string]struct {
			args []string
			uid  string
			file string
		}{
			"listing":  {[]string{}, "65534", ""},
			"names":    {[]string{"--resolve"}, "65534", ""},
			"times":    {[]string{"-tt", "-v"}, "65534", ""},
			"packets":  {[]string{"packets", "--resolve"}, "65534", ""},
			"check":    {[]string{"check"}, "65534", ""},
			"page":     {[]string{"report", "--html", "page.html", "-Z", "4711"}, "4711", "page.html"},
			"parquet":  {[]string{"export", "parquet", "-w", "t.parquet", "-Z", "4711"}, "4711", "t.parquet"},
			"table":    {[]string{"export", "parquet", "--partition", "time=1d", "-w", "tree", "-Z", "4711"}, "4711", "tree/*/*.parquet"},
			"trace":    {[]string{"export", "trace", "-w", "t.json", "-Z", "4711"}, "4711", "t.json"},
			"data":     {[]string{"--extract-data", "data", "-Z", "4711"}, "4711", "data/manifest.ndjson"},
			"annotate": {[]string{"annotate", "-w", "n.pcapng", "-Z", "4711"}, "4711", "n.pcapng"},
			"split":    {[]string{"split", "--by", "client", "-w", "c-{client}.pcapng", "-Z", "4711"}, "4711", "c-*.pcapng"},
		} {
			t.Run(build+"/"+name, func(t *testing.T) {
				a, b := veth(t)
				out := folder(t, 4711)
				p := startAt(t, dump, 1, out, append(c.args, "-i", b)...)
				unprivileged(t, p.Process.Pid, c.uid, threads(t, p.Process.Pid, "Groups"), build != "as it is")
				replay(t, sample, 20000, sender(t, a))
				_ = p.Process.Signal(syscall.SIGINT)
				if err := p.Wait(); err != nil && p.ProcessState.ExitCode() != 3 {
					t.Fatalf("%v: %s", err, &p.diag)
				}
				if c.file == "" {
					if p.out.Len() < 200 {
						t.Errorf("%s\n%s", &p.out, &p.diag)
					}
					return
				}
				files, _ := filepath.Glob(filepath.Join(out, c.file))
				if len(files) == 0 {
					t.Fatalf("no %s: %s", c.file, &p.diag)
				}
				if st, err := os.Stat(files[0]); err != nil || st.Size() == 0 || st.Sys().(*syscall.Stat_t).Uid != 4711 {
					t.Errorf("%s: %v", files[0], err)
				}
			})
		}
		t.Run(build+"/top", func(t *testing.T) {
			a, b := veth(t)
			p := startAt(t, filepath.Join(dir, "rpcrdma-top"), 1, folder(t, 4711), "-i", b, "--batch", "0", "--listen", "127.0.0.1:9751")
			unprivileged(t, p.Process.Pid, "65534", threads(t, p.Process.Pid, "Groups"), build != "as it is")
			replay(t, sample, 20000, sender(t, a))
			var page []byte
			wait(t, "metrics", func() bool {
				resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}}).Get("http://127.0.0.1:9751/metrics")
				if err != nil {
					return false
				}
				page, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
				return strings.Contains(string(page), "rpcrdma_transactions_total{")
			})
			p.stop(t)
			if len(table(t, p.out.String())) == 0 {
				t.Errorf("%s\n%s", &p.out, &p.diag)
			}
		})
	}
}
