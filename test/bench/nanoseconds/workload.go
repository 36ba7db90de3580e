package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// workload is traffic of one kind.
type workload struct {
	name, file string
	// repeat is a sample and how often it is repeated; without one, bench does these jobs against a server over a fabric.
	repeat, times string
	fabric        string
	flags         []string // of the server
	jobs          [][]string
	iwarp         bool // its CRC is CRC32C
	none          bool // nothing has a CRC
}

var workloads = []workload{
	{name: "small RoCEv2", file: "small.pcap", repeat: "samples/rocev2-nfs3-meta.pcap.zst", times: "200"},
	{name: "4 KiB RoCEv2", file: "large.pcap", repeat: "samples/rocev2-nfs3-bulk.pcap.zst", times: "60"},
	{name: "iWARP with CRC", file: "iwarp.pcapng", fabric: "iwarp", flags: []string{"--crc"}, iwarp: true, jobs: [][]string{
		{"--job", "read,write", "--size", "64K", "--outstanding", "8", "--file-size", "16M", "--time", "100ms"},
		{"--job", "fileop", "--files", "1000", "--size", "4K"},
	}},
	{name: "TCP", file: "tcp.pcapng", fabric: "tcp", none: true, jobs: [][]string{
		{"--job", "read,write", "--size", "64K", "--outstanding", "8", "--file-size", "16M", "--time", "100ms"},
		{"--job", "fileop", "--files", "1000", "--size", "4K"},
	}},
	{name: "NFSv4.2 metadata", file: "nfs42.pcapng", fabric: "rocev2", jobs: [][]string{
		{"--job", "fileop,postmark", "--files", "1000", "--size", "1K", "--nfs", "4.2"},
	}},
}

// tools are programs of this tree.
type tools struct{ dump, replay, repeat, root string }

// build builds the programs into dir.
func build(ctx context.Context, dir string) (t tools, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return t, fmt.Errorf("go list: %w", err)
	}
	t.root = strings.TrimSpace(string(root))
	for pkg, to := range map[string]*string{"./cmd/rpcrdma-dump": &t.dump, "./cmd/rpcrdma-replay": &t.replay, "./internal/testtools/repeat": &t.repeat} {
		*to = filepath.Join(dir, filepath.Base(pkg))
		cmd := exec.CommandContext(ctx, "go", "build", "-o", *to, pkg)
		cmd.Dir, cmd.Stderr = t.root, os.Stderr
		if err := cmd.Run(); err != nil {
			return t, fmt.Errorf("%s: %w", pkg, err)
		}
	}
	return t, nil
}

// make makes the capture of a workload in dir, unless it is there.
func (w *workload) make(ctx context.Context, t *tools, dir string) (name string, err error) {
	name = filepath.Join(dir, w.file)
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	if w.repeat != "" {
		cmd := exec.CommandContext(ctx, t.repeat, "-n", w.times, filepath.Join(t.root, w.repeat), name)
		cmd.Stderr = os.Stderr
		return name, cmd.Run()
	}
	return name, w.serve(ctx, t, name)
}

var listening = regexp.MustCompile(`127\.0\.0\.2[: ](?:port )?(\d+)`)

// The client of RoCEv2 has an address of its own, 127.0.0.1: all that is sent to one comes to the same UDP port.

// serve has a server write what it sends and receives, while bench does its jobs.
func (w *workload) serve(ctx context.Context, t *tools, name string) (err error) {
	args := []string{"serve", "--listen", "127.0.0.2", "--provider", w.fabric, "--rdma-port", "0", "--tcp-port", "0", "--memory", "2G", "--capture", name}
	server := exec.CommandContext(ctx, t.replay, append(args, w.flags...)...)
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, server.Process.Signal(os.Interrupt))
		_ = server.Wait() // it was interrupted
		if err != nil {
			os.Remove(name)
		}
	}()
	r := bufio.NewReader(out)
	var addr string
	for addr == "" {
		line, err := r.ReadString('\n')
		if m := listening.FindStringSubmatch(line); m != nil {
			addr = "127.0.0.2:" + m[1]
		} else if err != nil {
			return fmt.Errorf("the server did not say where it listens: %w", err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	for _, job := range w.jobs {
		args := append([]string{"bench", "--write", "--provider", w.fabric}, job...)
		cmd := exec.CommandContext(ctx, t.replay, append(args, addr)...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%v: %w", args, err)
		}
	}
	return nil
}
