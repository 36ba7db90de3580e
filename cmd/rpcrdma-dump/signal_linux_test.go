package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

const sampleCapture = samples + "/rocev2-nfs41-recall.pcap"

// fifo is a FIFO that holds the beginning of a capture and stays open for writing,
// so that its reader waits.
type fifo struct {
	name string
	f    *os.File
	rest []byte
}

func newFIFO(t *testing.T) *fifo {
	t.Helper()
	p := &fifo{name: filepath.Join(t.TempDir(), "fifo")}
	b, err := os.ReadFile(sampleCapture)
	if err == nil {
		err = syscall.Mkfifo(p.name, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	// For reading, too: it opens at once then, and is never at its end.
	if p.f, err = os.OpenFile(p.name, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.f.Close() })
	const some = 1000
	p.rest = b[some:]
	if _, err := p.f.Write(b[:some]); err != nil {
		t.Fatal(err)
	}
	return p
}

// feed writes the rest and waits until it was read: the program is under way then.
func (p *fifo) feed(t *testing.T, run *clitest.Process) {
	t.Helper()
	written := make(chan error, 1)
	go func() {
		_, err := p.f.Write(p.rest)
		written <- err
	}()
	run.Until(t, "the input is read", func() bool {
		select {
		case err := <-written:
			written <- err
			n, e := unix.IoctlGetInt(int(p.f.Fd()), unix.TIOCINQ)
			return err != nil || e != nil || n == 0
		default:
			return false
		}
	})
}

// exports are commands that write a result, without their input.
var exports = map[string]struct {
	args []string
	out  string // below the directory
}{
	"parquet":   {[]string{"export", "parquet", "-w", "DIR/out"}, "out"},
	"trace":     {[]string{"export", "trace", "-w", "DIR/out"}, "out"},
	"trace.gz":  {[]string{"export", "trace", "-w", "DIR/out.gz"}, "out.gz"},
	"html":      {[]string{"report", "--html", "DIR/out"}, "out"},
	"partition": {[]string{"export", "parquet", "--partition", "time=1d", "-w", "DIR/tree"}, "tree/date=*/part-1.parquet"},
	"extract":   {[]string{"-q", "--extract-data", "DIR/files"}, "files/[^.]*"},
}

func inDir(args []string, dir string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strings.Replace(a, "DIR", dir, 1)
	}
	return out
}

// oldFile puts something where the result is going to be.
func oldFile(t *testing.T, dir, out string) {
	t.Helper()
	if strings.Contains(out, "/") {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, out), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// unchanged fails if the result is there, or the old file is not.
func unchanged(t *testing.T, dir, out string) {
	t.Helper()
	if strings.Contains(out, "/") {
		if found, _ := filepath.Glob(filepath.Join(dir, out)); len(found) > 0 {
			t.Errorf("%q is there", found)
		}
		return
	}
	if b, err := os.ReadFile(filepath.Join(dir, out)); string(b) != "old" {
		t.Errorf("the old file: %.20q, %v", b, err)
	}
}

// endless are flags that name so many packets that no program comes to their end before a signal reaches it, however
// long the test waits for a processor meanwhile.
func endless(t *testing.T) (flags []string) {
	t.Helper()
	return []string{"-r", clitest.Long(t, sampleCapture, 300)}
}

// TestSignals ends exports of a file in the middle: the name stays what it was,
// and nothing is left.
func TestSignals(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-dump")
	input := endless(t)
	for name, e := range exports {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if testing.Short() && int(sig)%3 != len(name)%3 { // one of the three for each
				continue
			}
			t.Run(name+"/"+sig.String(), func(t *testing.T) {
				dir := t.TempDir()
				oldFile(t, dir, e.out)
				p := clitest.Start(t, nil, bin, append(inDir(e.args, dir), input...)...)
				p.Until(t, "a temporary file", func() bool { return len(clitest.Temporary(t, dir)) > 0 })
				p.Signal(t, sig)
				code, by := p.Wait(t)
				if code != 1 && by != sig {
					t.Errorf("exit status %d: %s", code, p.Stderr.String())
				}
				unchanged(t, dir, e.out)
				if left := clitest.Temporary(t, dir); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		}
	}
}

// TestKilled cannot clean up; but only temporary files are left.
func TestKilled(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-dump")
	for name, e := range exports {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			oldFile(t, dir, e.out)
			in := newFIFO(t)
			p := clitest.Start(t, nil, bin, append(inDir(e.args, dir), in.name)...)
			in.feed(t, p)
			p.Until(t, "a temporary file", func() bool { return len(clitest.Temporary(t, dir)) > 0 })
			p.Signal(t, syscall.SIGKILL)
			p.Wait(t)
			unchanged(t, dir, e.out)
		})
	}
}

// TestSignalLive: where others still write the input, a signal is how it ends.
func TestSignalLive(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-dump")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out.json")
			in := newFIFO(t)
			p := clitest.Start(t, nil, bin, "export", "trace", "-w", out, in.name)
			in.feed(t, p)
			p.Signal(t, sig)
			if code, _ := p.Wait(t); code != 0 && code != 3 {
				t.Errorf("exit status %d: %s", code, p.Stderr.String())
			}
			if b, err := os.ReadFile(out); err != nil || !strings.HasSuffix(strings.TrimSpace(string(b)), "}") {
				t.Errorf("%.80q, %v", b, err)
			}
		})
	}
}

// TestSignalFile: a listing, or capture, of a part of a file is not what was requested, and says so.
func TestSignalFile(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-dump")
	input := endless(t)
	for name, args := range map[string][]string{
		"listing":    {"-v"},
		"ndjson":     {"-T", "ndjson"},
		"packets":    {"packets"},
		"operations": {"operations"},
		"capture":    {"capture", "-w", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			// Until somebody reads its output, the program cannot come to the end of the input.
			out := filepath.Join(t.TempDir(), "out")
			if err := syscall.Mkfifo(out, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(out, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			p := clitest.Start(t, nil, "/bin/sh", append([]string{"-c", `out=$1; shift; exec "$0" "$@" >"$out"`, bin, out}, append(args, input...)...)...)
			p.Until(t, "output", func() bool {
				n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
				return err != nil || n > 0
			})
			p.Signal(t, syscall.SIGINT)
			go func() { _, _ = io.Copy(io.Discard, f) }()
			code, _ := p.Wait(t)
			if says := p.Stderr.String(); code != 1 || !strings.Contains(says, "interrupted ") || !strings.Contains(says, "before the end of the input") {
				t.Errorf("exit status %d: %s", code, says)
			}
		})
	}
}

// TestSignalWithoutHandler: before a command waits for signals, one ends the
// process, and what is temporary is gone.
func TestSignalWithoutHandler(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-dump")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		args := []string{"report", "--html", filepath.Join(dir, "out"), "--ftrace", newFIFO(t).name, sampleCapture}
		p := clitest.Start(t, nil, bin, args...)
		p.Until(t, "a temporary file", func() bool { return len(clitest.Temporary(t, dir)) > 0 })
		p.Signal(t, sig)
		if code, by := p.Wait(t); by != sig {
			t.Errorf("%v: exit status %d: %s", sig, code, p.Stderr.String())
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%v: left: %v", sig, left)
		}
	}
}

// TestNohup: an ignored SIGHUP stays ignored.
func TestNohup(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-dump")
	dir := t.TempDir()
	out := filepath.Join(dir, "out.json")
	in := newFIFO(t)
	p := clitest.Start(t, nil, "/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`, bin, "export", "trace", "-w", out, in.name)
	p.Until(t, "a temporary file", func() bool { return len(clitest.Temporary(t, dir)) > 0 })
	p.Signal(t, syscall.SIGHUP)
	in.feed(t, p)
	p.Signal(t, syscall.SIGHUP)
	if _, err := os.Stat(out); err == nil {
		t.Error("SIGHUP has ended the program")
	}
	p.Signal(t, syscall.SIGTERM)
	if code, _ := p.Wait(t); code != 0 && code != 3 {
		t.Errorf("exit status %d: %s", code, p.Stderr.String())
	}
	if !strings.Contains(p.Stderr.String(), "holds what came until then") {
		t.Error(p.Stderr.String())
	}
}

// TestFileSizeLimit: a limit on the size of files is an error like that of a full
// disk. Captures keep what is whole, and say how much; results are not there.
func TestFileSizeLimit(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-dump")
	limited := func(t *testing.T, args ...string) *clitest.Process {
		p := clitest.Start(t, nil, "/bin/sh", append([]string{"-c", `ulimit -f 40; exec "$0" "$@"`, bin}, args...)...)
		if code, _ := p.Wait(t); code != 1 {
			t.Errorf("%q: exit status %d: %s", args, code, p.Stderr.String())
		}
		return p
	}
	for name, e := range exports {
		if name == "extract" || name == "trace.gz" || name == "html" {
			continue // too small for the limit
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			oldFile(t, dir, e.out)
			args := inDir(e.args, dir)
			for _, name := range clitest.Copies(t, sampleCapture, 30) {
				args = append(args, "-r", name)
			}
			limited(t, args...)
			unchanged(t, dir, e.out)
			if left := clitest.Temporary(t, dir); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
	t.Run("annotate", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "out.pcapng")
		p := limited(t, "annotate", "-w", file, sampleCapture)
		n, problems := countPackets(t, file)
		if said := fmt.Sprintf("%s holds the first %d packets only: ", file, n); !strings.Contains(p.Stderr.String(), said) || n == 0 || problems > 0 {
			t.Errorf("%d packets are there, %d problems: %s", n, problems, p.Stderr.String())
		}
	})
	outs := []string{"out.pcapng", "out.pcapng.zst", "out.pcap", "out.pcapng.gz"}
	if testing.Short() {
		outs = outs[:2]
	}
	for _, out := range outs {
		t.Run(out, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), out)
			args := []string{"capture", "-w", file}
			for _, name := range clitest.Copies(t, sampleCapture, 30) {
				args = append(args, "-r", name)
			}
			p := limited(t, args...)
			n, problems := countPackets(t, file)
			said := uint64(0)
			if _, err := fmt.Sscanf(p.Stderr.String(), "rpcrdma-dump: %d packets written", &said); err != nil {
				t.Error(err)
			}
			if n != said || n == 0 || problems > 0 {
				t.Errorf("%d packets are said to be written, %d are there, %d problems: %s", said, n, problems, p.Stderr.String())
			}
			if strings.Count(p.Stderr.String(), "file too large") != 1 {
				t.Error(p.Stderr.String())
			}
		})
	}
	t.Run("annotate", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "out.pcapng")
		limited(t, "annotate", "-w", file, sampleCapture)
		if n, problems := countPackets(t, file); n == 0 || problems > 0 {
			t.Errorf("%d packets, %d problems", n, problems)
		}
	})
}

func countPackets(t *testing.T, name string) (n uint64, problems int) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	for r.Read(&b) == nil {
		n += uint64(len(b.Packets))
	}
	_, problems = r.Problems()
	return n, problems
}
