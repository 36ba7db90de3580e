package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// broken is a pipe whose reader has left.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestOutputErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{&os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, cli.ExitOK},
		{syscall.ENOSPC, cli.ExitFailure},
	} {
		var diag bytes.Buffer
		code := run([]string{"-v", filepath.Join(samples, "rocev2-nfs41-recall.pcap")},
			&cli.Streams{In: strings.NewReader(""), Out: broken{c.err}, Err: &diag})
		if code != c.code || (diag.Len() > 0) != (c.code != cli.ExitOK) {
			t.Errorf("%v: exit code %d, %q", c.err, code, &diag)
		}
	}
}

// What is written for a live capture arrives without a full buffer.
func TestLiveOutput(t *testing.T) {
	r, w := io.Pipe()
	o := newOutput(&cli.Streams{Out: w}, true, false)
	o.end(append(o.begin(), "line\n"...))
	b := make([]byte, 16)
	n, err := r.Read(b)
	if err != nil || string(b[:n]) != "line\n" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
}

// An interrupt ends a capture that waits for packets, and what is there is
// printed.
func TestInterrupt(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(samples, "rocev2-nfs41-recall.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	defer w.Close()
	go func() { _, _ = w.Write(b) }()
	in, err := openInput([]string{"-"}, r, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var batch capture.Batch
	packets := 0
	for packets < 281 {
		if err := in.Read(&batch); err != nil {
			t.Fatal(err)
		}
		packets += len(batch.Packets)
	}
	done := make(chan error)
	go func() { done <- in.Read(&batch) }()
	close(in.interrupt)
	if err := <-done; !errors.Is(err, io.EOF) || len(batch.Packets) != 0 {
		t.Errorf("%v, %d packets", err, len(batch.Packets))
	}
	if err := in.Read(&batch); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// A capture that grows is shown as it grows. What has been shown often enough ends the command, although the
// capture may continue.
func TestFollow(t *testing.T) {
	sample := filepath.Join(samples, "rocev2-nfs41-recall.pcap")
	b, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if code := run([]string{"--sort", "completion", "-c", "40", sample}, &cli.Streams{Out: &want, Err: io.Discard}); code != cli.ExitOK {
		t.Fatal(code)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "a.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	half := len(b)/2 + 3 // within a packet
	if _, err := f.Write(b[:half]); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	var diag bytes.Buffer
	code := make(chan int)
	go func() {
		code <- run([]string{"--follow", "-c", "40", f.Name()}, &cli.Streams{Out: w, Err: &diag})
		w.Close()
	}()
	out := bufio.NewReader(r)
	first, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b[half : len(b)-9]); err != nil { // the last packet stays cut
		t.Fatal(err)
	}
	rest := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(out)
		rest <- b
	}()
	if c := <-code; c != cli.ExitOK || diag.Len() > 0 {
		t.Errorf("exit code %d: %s", c, &diag)
	}
	if got := first + string(<-rest); got != want.String() {
		t.Errorf("got\n%swant\n%s", got, &want)
	}
}

// BenchmarkSummary is the cost of everything but the output.
func BenchmarkSummary(b *testing.B) {
	benchmark(b, "-q")
}

func BenchmarkListing(b *testing.B) {
	benchmark(b)
}

func BenchmarkNDJSON(b *testing.B) {
	benchmark(b, "-T", "ndjson")
}

func benchmark(b *testing.B, args ...string) {
	file := filepath.Join(samples, "rocev2-nfs41-mixed-load.pcap.zst")
	st, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	args = append(args, file)
	for b.Loop() {
		if code := run(args, &cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}); code != cli.ExitOK {
			b.Fatal(code)
		}
	}
}
