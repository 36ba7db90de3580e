package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

// attempt runs a command over hostile files. Nothing of them controls a terminal, JSON is JSON, and counts and times are possible.
func attempt(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	var out, problems bytes.Buffer
	code := run(args, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems})
	if code != 0 && code != 1 && code != 3 || strings.Contains(problems.String(), "internal error") {
		t.Errorf("status %d: %.500s", code, &problems)
	}
	if raw := clitest.Raw(out.String() + problems.String()); raw != "" {
		t.Errorf("it shows %q", raw)
	}
	if out.Len() > 1<<20 || problems.Len() > 1<<16 {
		t.Errorf("it prints %d and %d bytes", out.Len(), problems.Len())
	}
	if out.Len() > 0 && out.Bytes()[0] == '{' && !json.Valid(out.Bytes()) {
		t.Errorf("no JSON: %.500s", &out)
	}
	if m := impossible.FindString(out.String()); m != "" {
		t.Errorf("it says %q", m)
	}
	return out.String()
}

// impossible are values that only wrong sums give.
var impossible = regexp.MustCompile(`NaN|[+-]Inf|"(count|bytes|calls|errors|records)": -`)

// TestHostileRecords reads records of kernels that somebody made up, beside a sample.
func TestHostileRecords(t *testing.T) {
	sample := samples + "/rocev2-nfs41-recall.pcap"
	text := func(name string) string {
		b, err := os.ReadFile(samples + "/rocev2-nfs41-recall." + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	client, server, mounts := text("trace.client"), text("trace.server"), text("mountstats")
	times := regexp.MustCompile(`\d+\.\d{6}:`)
	numbers := regexp.MustCompile(`(backlog|rtt|execute|hdr|credits)=\d+`)
	counts := regexp.MustCompile(`: \d+ \d+ `)
	for name, c := range map[string]struct{ trace, mountstats string }{
		"nothing":                        {trace: " "},
		"zeros":                          {trace: strings.Repeat("\x00", 1<<16)},
		"a line without end":             {trace: strings.Repeat("x", 1<<20)},
		"many empty lines":               {trace: strings.Repeat("\n", 1<<17)},
		"lines that end in CR":           {trace: strings.ReplaceAll(client, "\n", "\r")},
		"another alphabet":               {trace: strings.ReplaceAll(client, "xid=0x", "xid=０ｘ")},
		"control characters":             {trace: strings.ReplaceAll(client, "mount.nfs", "\x1b]0;x\a\u202e")},
		"names of operations":            {trace: strings.ReplaceAll(client, " nfsv4 ", " \x1b[2Jnfsv4\u202e ")},
		"times of centuries":             {trace: times.ReplaceAllString(client, "9223372036854775807.999999:")},
		"times below zero":               {trace: times.ReplaceAllString(client, "-1.000001:")},
		"times that are no numbers":      {trace: times.ReplaceAllString(client, "NaN.000000:")},
		"one time for all":               {trace: times.ReplaceAllString(client, "1.000000:")},
		"times backwards":                {trace: times.ReplaceAllStringFunc(client, func(s string) string { return fmt.Sprintf("%d.%s", 1000-len(s), s[len(s)-7:]) })},
		"the largest numbers":            {trace: numbers.ReplaceAllString(client, "$1=18446744073709551615")},
		"large numbers":                  {trace: numbers.ReplaceAllString(client, "$1=9223372036854775807")},
		"numbers that overflow":          {trace: numbers.ReplaceAllString(client, "$1="+strings.Repeat("9", 400))},
		"numbers below zero":             {trace: numbers.ReplaceAllString(client, "$1=-1")},
		"one XID":                        {trace: regexp.MustCompile(`xid=0x[0-9a-f]+`).ReplaceAllString(client, "xid=0x97466d78")},
		"every call ten times":           {trace: strings.Repeat(client, 10)},
		"client and server in one":       {trace: client + server},
		"a server that ran before":       {trace: times.ReplaceAllString(server, "0.000000:")},
		"half of every line":             {trace: regexp.MustCompile(`(?m)^(.{60}).*$`).ReplaceAllString(client, "$1")},
		"a gzip of nothing":              {trace: "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"},
		"zstd without its frame":         {trace: "\x28\xb5\x2f\xfd\xff\xff"},
		"a capture":                      {trace: "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a"},
		"mounts without operations":      {mountstats: strings.SplitAfter(mounts, "per-op")[0]},
		"operations without a mount":     {mountstats: strings.SplitAfter(mounts, "\n")[13] + strings.Repeat("\tREAD: 1 1 1 1 1 1 1 1\n", 9)},
		"mounts of the largest numbers":  {mountstats: counts.ReplaceAllString(mounts, ": 18446744073709551615 18446744073709551615 ")},
		"mounts of numbers that wrap":    {mountstats: counts.ReplaceAllString(mounts, ": 99999999999999999999 -5 ")},
		"a thousand mounts":              {mountstats: strings.Repeat(strings.SplitAfter(mounts, "\n")[0], 1000)},
		"a mount with control":           {mountstats: strings.ReplaceAll(mounts, "/export", "/\x1b[2J\u202e\u0085")},
		"one operation a thousand times": {mountstats: mounts + strings.Repeat("\t        READ: 6 6 0 1032 48640 1 44 47 0\n", 1000)},
		"versions that are not":          {mountstats: strings.ReplaceAll(mounts, "vers=4.1", "vers=99999999999.-1")},
	} {
		t.Run(name, func(t *testing.T) {
			flag, content := "--ftrace", c.trace
			if c.mountstats != "" {
				flag, content = "--mountstats", c.mountstats
			}
			file := filepath.Join(t.TempDir(), "records")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if !testing.Short() {
				attempt(t, "kernel", flag, file, sample)
			}
			attempt(t, "kernel", "-T", "json", flag, file, sample)
		})
	}
}

// TestHostileDiff compares a sample with captures that somebody made up, in both orders.
func TestHostileDiff(t *testing.T) {
	sample := samples + "/rocev2-nfs41-recall.pcap"
	good, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	const header, record = 24, 16
	le := binary.LittleEndian
	// each changes every record: its header, its bytes and its number.
	each := func(change func(r, b []byte, n int)) []byte {
		all := bytes.Clone(good)
		n := 0
		for at := header; at < len(all); n++ {
			size := int(le.Uint32(all[at+8:]))
			change(all[at:][:record], all[at+record:][:size], n)
			at += record + size
		}
		return all
	}
	times := func(seconds func(n int) uint32) []byte {
		return each(func(r, _ []byte, n int) { le.PutUint32(r, seconds(n)) })
	}
	for name, b := range map[string][]byte{
		"no packet":                   good[:header],
		"one packet":                  good[:header+record+int(le.Uint32(good[header+8:]))],
		"half of it":                  good[:len(good)/2],
		"itself":                      good,
		"itself twice":                append(bytes.Clone(good), good[header:]...),
		"itself ten times":            append(bytes.Clone(good), bytes.Repeat(good[header:], 10)...),
		"backwards":                   times(func(n int) uint32 { return uint32(1 << 20 >> (n % 20)) }),
		"no time":                     times(func(int) uint32 { return 0 }),
		"the end of time":             times(func(int) uint32 { return 1<<32 - 1 }),
		"a century between packets":   times(func(n int) uint32 { return uint32(n%2) * (1<<32 - 1) }),
		"nanoseconds beyond a second": each(func(r, _ []byte, _ int) { le.PutUint32(r[4:], 1<<32-1) }),
		"lengths of gigabytes":        each(func(r, _ []byte, _ int) { le.PutUint32(r[12:], 1<<31-1) }),
		"lengths of nothing":          each(func(r, _ []byte, _ int) { le.PutUint32(r[12:], 0) }),
		"another link type":           append(append(bytes.Clone(good[:20]), 0x71, 0, 0, 0), good[header:]...),
		"no link type":                append(append(bytes.Clone(good[:20]), 0xff, 0xff, 0, 0), good[header:]...),
		"another byte order":          append([]byte{0xa1, 0xb2, 0x3c, 0x4d}, good[4:]...),
		"zeros":                       each(func(_, b []byte, _ int) { clear(b[14:]) }),
		"noise":                       each(func(_, b []byte, n int) { b[len(b)-1-n%len(b)] ^= byte(n) }),
		"noise in every packet":       each(func(_, b []byte, n int) { b[min(len(b)-1, 54+n%40)] ^= 0xff }),
		"every reply lost":            each(func(_, b []byte, _ int) { clear(b[:min(len(b), int(b[29])%2*60)]) }),
		"one packet number":           each(func(_, b []byte, _ int) { copy(b[min(len(b), 50):min(len(b), 54)], []byte{0, 0, 0, 1}) }),
		"text":                        []byte(strings.Repeat("not a capture\n", 100)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "made\x1b[2Jup\u202e.pcap")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			attempt(t, "diff", "-T", "json", "--by", "file,client", sample, file)
			if !testing.Short() {
				attempt(t, "diff", file, sample)
				attempt(t, "diff", "--html", filepath.Join(dir, "page"), "--by", "status", file, sample)
			}
		})
	}
}

// TestHostileExtcap passes to extcap what tries to become another option, another command or another file. Nothing is started; or else
// all of it is one word of the command that the remote shell sees.
func TestHostileExtcap(t *testing.T) {
	bad := []string{
		"-oProxyCommand=id", "--", "", " ", "a b", "h;id", "h|id", "h&id", "$(id)", "`id`", "h\nid", "h\x00", "h>x", "h'", `h"`, `h\`, "h*", "{a,b}", "~root", "h%n", "../h",
		"fe80::1%eth0;id", "fe80::1%$(id)", "fe80::1%-o", "fe80::1% ", "h\u202e", "ｈ", "h=x y",
	}
	for _, s := range bad {
		for _, o := range []extcapOptions{
			{iface: extcapSSH, how: "tcpdump", device: "any", host: s},
			{iface: extcapSSH, how: "tcpdump", device: s, host: "h"},
			{iface: extcapSSH, how: s, device: "any", host: "h"},
			{iface: extcapSSH, how: "tcpdump", device: "any", host: "h", port: s},
			{iface: extcapSSH, how: "tcpdump", device: "any", host: "h", user: s},
		} {
			if args, err := o.ssh(); err == nil && (s != "" || o.port+o.user != "" || o.host == "" || o.device == "" || o.how == "") {
				t.Errorf("%q passes: %q", s, args)
			}
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, filter := range []string{
		"host 192.0.2.1", "host h'; id; '", "tcp) or (udp", "port 1 -w /tmp/x", "$(id)", "`id`", "tcp\nid", "' -z id '", "-r /etc/passwd", "tcp # x", "not not tcp", "ether[0] & 1 = 1", "tcp || udp",
		"tcp && id", "tcp; id", "tcp > x", "tcp\x00", strings.Repeat("(", 5000) + "tcp", "\\'tcp", "dst host 2001:db8::1",
	} {
		for _, how := range remotePrograms {
			o := extcapOptions{iface: extcapSSH, how: how, device: "any", host: "h", filter: filter}
			args, err := o.ssh()
			if err != nil {
				continue
			}
			command := strings.TrimPrefix(args[len(args)-1], "sudo -n ")
			name, _, _ := strings.Cut(command, " ")
			got, err := exec.Command(sh, "-c", strings.Replace(command, name, `printf '[%s]\n'`, 1)).Output()
			if want := filter + "]"; err != nil || !strings.Contains(string(got), want) && !strings.Contains(string(got), filter+")]") {
				t.Errorf("%s: %q becomes %s, %v", how, filter, got, err)
			}
		}
	}
}
