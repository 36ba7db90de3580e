package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command is one way to run a program. What it writes into its folder is compared, too.
type command struct {
	name    string
	program string
	args    []string // before the capture
}

// dump is rpcrdma-dump, whose case has a name of its own.
func dump(name string, args ...string) command { return command{name, "rpcrdma-dump", args} }

// commands are run on every capture.
var commands = []command{
	dump("listing"),
	dump("listing-date", "-tttt", "--nano", "--width", "-1", "--sort", "completion"),
	dump("-v", "-v"),
	dump("-vv", "-vv"),
	dump("-x", "-x"),
	dump("-q", "-q"),
	dump("filter", "-Y", "latency > 1ms or op == WRITE or status != ok"),
	dump("ndjson", "-T", "ndjson"),
	dump("json", "-T", "json"),
	dump("trackers", "-T", "ndjson", "--trackers", "2"),
	dump("packets", "packets", "-a"),
	dump("packets-x", "packets", "-x"),
	dump("connections", "connections"),
	dump("connections-v", "connections", "-v"),
	dump("connections-ndjson", "connections", "-T", "ndjson"),
	dump("connections-json", "connections", "-T", "json"),
	dump("operations", "operations"),
	dump("operations-ndjson", "operations", "-T", "ndjson"),
	dump("packets-ndjson", "packets", "-T", "ndjson"),
	dump("report", "report"),
	dump("report-v", "report", "-v", "--by", "client,operation", "--interval", "100ms"),
	dump("report-size", "report", "--by", "size,status", "--top", "3"),
	dump("report-json", "report", "-T", "json", "--interval", "1s"),
	dump("report-html", "report", "--html", "page.html"),
	dump("fabric", "report", "--view", "fabric"),
	dump("fabric-json", "report", "--view", "fabric", "-T", "json"),
	dump("check", "check"),
	dump("check-note", "check", "--severity", "note", "--max", "0", "--profile", "linux"),
	dump("check-ndjson", "check", "-T", "ndjson", "--severity", "note"),
	dump("check-json", "check", "-T", "json", "--profile", "rfc5666"),
	dump("sessions", "sessions", "-v"),
	dump("sessions-ndjson", "sessions", "-T", "ndjson"),
	dump("sessions-json", "sessions", "-T", "json"),
	dump("parquet", "export", "parquet", "-w", "rows.parquet"),
	dump("trace", "export", "trace", "-w", "trace.json"),
	dump("annotate", "annotate", "-w", "annotated.pcapng"),
	dump("split", "split", "--by", "connection", "-w", "part-{n}.pcapng"),
	{"batch", "rpcrdma-top", []string{"--batch", "0", "-r"}},
	{"batch-intervals", "rpcrdma-top", []string{"--batch", "5", "-d", "0.2", "-r"}},
	{"plan", "rpcrdma-replay", []string{"plan", "-o", "calls.plan"}},
	{"plan-pattern", "rpcrdma-replay", []string{"plan", "--payload", "pattern", "-o", "calls.plan"}},
}

// testCase is a command on a capture.
type testCase struct {
	command
	file string
	show []string // arguments of show other than XIDs
}

// name is what -only and the file of differences select by.
func (c *testCase) name() string { return c.command.name + " " + filepath.Base(c.file) }

// allCases are all commands on all captures.
func allCases(files, fields []string) []*testCase {
	all := []string{"-T", "fields", "-E", "header=y"}
	for _, f := range fields {
		all = append(all, "-e", f)
	}
	var cases []*testCase
	add := func(c command, file string) { cases = append(cases, &testCase{command: c, file: file}) }
	for _, file := range files {
		for _, c := range commands {
			add(c, file)
		}
		add(dump("fields", all...), file)
		add(dump("diff", "diff", file), file)
		cases = append(cases,
			&testCase{command: dump("show"), file: file, show: []string{"show"}},
			&testCase{command: dump("show-v"), file: file, show: []string{"show", "-v"}},
			&testCase{command: dump("show-json"), file: file, show: []string{"show", "-T", "json"}})
		if k := kernel(file); len(k) > 0 {
			add(dump("kernel", append([]string{"kernel"}, k...)...), file)
			add(dump("kernel-json", append([]string{"kernel", "-T", "json"}, k...)...), file)
			add(dump("report-kernel", append([]string{"report"}, k...)...), file)
		}
		if k := keytab(file); k != "" {
			for _, c := range []command{dump("keytab", "-v"), dump("keytab-ndjson", "-T", "ndjson"), dump("keytab-check", "check"), dump("keytab-report", "report")} {
				c.args = append(c.args, "--keytab", k)
				add(c, file)
			}
		}
	}
	return cases
}

// stem is the path of a capture without what its name ends in.
func stem(file string) string {
	dir, name := filepath.Split(file)
	name, _, _ = strings.Cut(name, ".pcap")
	return filepath.Join(dir, name)
}

// kernel are the flags that name the records of the kernels that lie beside a capture, or in a folder beside it.
func kernel(file string) []string {
	var flags []string
	for _, place := range []string{stem(file) + ".", stem(file) + ".truth/"} {
		for _, f := range []struct{ flag, name string }{{"--ftrace", "trace.client"}, {"--ftrace", "trace.server"}, {"--mountstats", "mountstats"}} {
			if _, err := os.Stat(place + f.name); err == nil {
				flags = append(flags, f.flag, place+f.name)
			}
		}
	}
	return flags
}

// keytab is the file of keys that lies beside a capture, or in a folder beside it.
func keytab(file string) string {
	for _, name := range []string{stem(file) + ".keytab", stem(file) + ".truth/server.keytab"} {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return ""
}

// result is what a program did: what it printed and wrote, by name, and its exit status.
type result map[string][]byte

// compare runs a case with both programs. It returns nil if they do the same.
func (c *testCase) compare(ctx context.Context, dir, before, after string, declared []*difference) []finding {
	args := c.args
	if c.show != nil {
		xids, err := someXIDs(ctx, filepath.Join(before, c.program), c.file)
		if err != nil {
			return []finding{{stream: "cannot run", text: err.Error()}}
		}
		if len(xids) == 0 {
			return nil
		}
		args = append(c.show, xids...)
	}
	args = append(args[:len(args):len(args)], c.file)
	var results [2]result
	for i, bin := range []string{before, after} {
		var err error
		if results[i], err = execute(ctx, dir, filepath.Join(bin, c.program), args); err != nil {
			return []finding{{stream: "cannot run", text: err.Error()}}
		}
	}
	return compare(c.name(), results[0], results[1], declared)
}

// execute runs a program in an empty folder.
func execute(ctx context.Context, dir, program string, args []string) (result, error) {
	work, err := os.MkdirTemp(dir, "work")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, &stdout, &stderr
	cmd.Env = []string{"HOME=" + work, "LANG=C.UTF-8", "TZ=UTC"}
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	r := result{"stdout": stdout.Bytes(), "stderr": stderr.Bytes(), "status": []byte(cmd.ProcessState.String())}
	return r, filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		r["file "+strings.TrimPrefix(path, work+"/")] = b
		return err
	})
}

// someXIDs are up to five XIDs of a capture, spread over its transactions. Two of one kind are rarely next to each other.
func someXIDs(ctx context.Context, program, file string) ([]string, error) {
	cmd := exec.CommandContext(ctx, program, "-T", "fields", "-e", "xid", file)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 3) {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	var xids []string
	all := strings.Fields(string(out))
	for i := range min(5, len(all)) {
		xids = append(xids, all[i*len(all)/5])
	}
	return xids, nil
}
