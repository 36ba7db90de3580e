//go:build scrub

package scrub

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/programs"
	"github.com/rpcrdma/toolkit/internal/testtools/scrubtest"
)

// captures lists the samples, and the captures in the directories of RPCRDMA_CAPTURES.
func captures(t *testing.T) (files []string) {
	t.Helper()
	for _, dir := range append([]string{"../../samples", "../../samples/kerberos"}, filepath.SplitList(os.Getenv("RPCRDMA_CAPTURES"))...) {
		for _, pattern := range []string{"*.pcap", "*.pcapng", "*.erf", "*.zst"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
	}
	if len(files) < 20 {
		t.Fatalf("only %d captures", len(files))
	}
	return files
}

// program builds a program of this module.
func program(t *testing.T, dir, name string) string {
	t.Helper()
	if err := programs.Build(dir, "./cmd/"+name); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// output is what a program prints, whatever its exit code.
func output(name string, args ...string) []byte {
	out, _ := exec.Command(name, args...).Output() // compared is what it says
	return out
}

// protected reports whether Kerberos protects some of what a capture carries: that is zero in the copy, and decoded as little as it can be.
// Linux protects calls about its state with krb5i on mounts with krb5, too.
func protected(file string) bool { return strings.Contains(file, "krb5") }

// closed reports whether Kerberos protects all calls, so that there is nothing to replay.
func closed(file string) bool {
	return strings.Contains(file, "krb5i") || strings.Contains(file, "krb5p")
}

// TestCaptures compares every capture with its copy.
func TestCaptures(t *testing.T) {
	dir := t.TempDir()
	dump, replay := program(t, dir, "rpcrdma-dump"), program(t, dir, "rpcrdma-replay")
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("the key of the test, of any bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, in := range captures(t) {
		name := filepath.Base(in)
		t.Run(name, func(t *testing.T) {
			copied, names := filepath.Join(t.TempDir(), name+".scrubbed.pcapng"), filepath.Join(t.TempDir(), "map")
			keys := keytab(in)
			if out, err := exec.Command(dump, append(keys, "scrub", "--key", key, "--map", names, "-w", copied, in)...).CombinedOutput(); err != nil && !damaged(err) {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := search(t, names, copied); len(keys) > 0 && n < 5 {
				t.Errorf("the keytab opens messages with %d names only", n)
			}
			if protected(name) {
				accuses(t, dump, in, copied)
			} else {
				reports(t, dump, in, copied)
			}
			if !closed(name) {
				replays(t, replay, in, copied, protected(name))
			}
			dissected(t, dump, in, copied)
		})
	}
}

// keytab is the flag with the keys of a capture's server, if they lie beside it.
func keytab(in string) []string {
	base, _, _ := strings.Cut(in, ".pcap")
	for _, name := range []string{base + ".keytab", filepath.Join(base+".truth", "server.keytab")} {
		if _, err := os.Stat(name); err == nil {
			return []string{"--keytab", name}
		}
	}
	return nil
}

// damaged reports the exit code that says that the input is damaged.
func damaged(err error) bool {
	x, ok := err.(*exec.ExitError)
	return ok && x.ExitCode() == 3
}

// reports compares what rpcrdma-dump says.
func reports(t *testing.T, dump, in, copied string) {
	say := func(file string, args []string) []byte {
		out := output(dump, append(args, file)...)
		return bytes.ReplaceAll(out, []byte(filepath.Base(copied)), []byte(filepath.Base(in)))
	}
	for _, args := range [][]string{
		{"report", "-T", "json"}, {"check", "-T", "json"}, {"why", "-T", "json"}, {"connections", "-T", "json"}, {"sessions", "-T", "json"}, {"-T", "ndjson"},
	} {
		if d := scrubtest.Differ(say(in, args), say(copied, args)); d != "" {
			t.Errorf("%v: %s", args, d)
		}
	}
}

// accuses compares what does not depend on what Kerberos protects: whether anybody breaks a rule, and the fabric.
func accuses(t *testing.T, dump, in, copied string) {
	errors := func(file string) bool { return exec.Command(dump, "check", "-q", file).Run() != nil }
	if was, is := errors(in), errors(copied); was != is {
		t.Errorf("check: errors %t become %t", was, is)
	}
	if d := scrubtest.Differ(output(dump, "connections", "-T", "json", in), output(dump, "connections", "-T", "json", copied)); d != "" {
		t.Errorf("connections: %s", d)
	}
}

// replays compares the verdicts of a replay against the built-in server. How many replies are the same, or another one that is as
// good, depends on the moment at which a delegation is recalled. How many calls there are depends on what Kerberos protects.
func replays(t *testing.T, replay, in, copied string, protected bool) {
	verdicts := func(file string) string {
		var r struct {
			Planned  int
			NotDone  int `json:"not_done"`
			Verdicts map[string]int
		}
		out := output(replay, "run", file, "builtin", "--yes", "--write", "--timing", "fast", "-T", "json")
		if len(out) == 0 {
			return ""
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Errorf("replay: %v", err)
		}
		if protected {
			r.Planned = 0
		}
		for _, fine := range []string{"same", "equivalent", "explained", "omitted"} {
			delete(r.Verdicts, fine)
		}
		b, _ := json.Marshal(r) // of numbers
		return string(b)
	}
	if was, is := verdicts(in), verdicts(copied); was != is {
		t.Errorf("replay: %s becomes %s", was, is)
	}
}

// fields are what tshark is asked for.
var fields = []string{
	"frame.number", "frame.len", "frame.protocols", "ip.checksum.status", "udp.checksum.status", "tcp.checksum.status", "tcp.seq_raw", "infiniband.bth.opcode",
	"infiniband.bth.psn", "iwarp_mpa.crc_check", "rpcordma.xid", "rpc.xid", "rpc.program", "rpc.procedure", "rpc.replystat", "rpc.state_accept", "nfs.opcode",
	"nfs.nfsstat3", "nfs.nfsstat4", "nfs.count3", "nfs.offset3", "nfs.offset4", "nfs.count4", "nfs.seqid",
}

// led are layers that tshark is led to by data, or by tokens.
var led = regexp.MustCompile(`:(data|gss-api|spnego|krb5|x509|pkix|ber)\b.*`)

// dissected compares what tshark decodes.
func dissected(t *testing.T, dump, in, copied string) {
	plainFile := filepath.Join(t.TempDir(), "in.pcapng")
	if out, err := exec.Command(dump, "capture", "-r", in, "-w", plainFile).CombinedOutput(); err != nil && !damaged(err) {
		t.Fatalf("%v\n%s", err, out) // not every tshark reads compressed files
	}
	args := []string{"-n", "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	lines := func(file string) []string {
		return strings.Split(string(output("tshark", append(args, "-r", file)...)), "\n")
	}
	was, is := lines(plainFile), lines(copied)
	if len(was) != len(is) {
		t.Errorf("tshark: %d packets become %d", len(was), len(is))
		return
	}
	differ, shown := 0, 3
	for i := range was {
		if a, b := dissection(was[i], protected(in)), dissection(is[i], protected(in)); a != b {
			if differ++; differ <= shown {
				t.Errorf("tshark:\n%s becomes\n%s", a, b)
			}
		}
	}
	if differ > shown {
		t.Errorf("tshark: %d of %d packets differ", differ, len(was))
	}
}

// dissection is a line of tshark's without what the copy cannot have.
func dissection(line string, protected bool) string {
	f := strings.Split(line, "\t")
	if len(f) != len(fields) {
		return line
	}
	f[2] = led.ReplaceAllString(f[2], "")
	if protected {
		f = f[:13] // as far as the procedure
	}
	return strings.Join(f, "\t")
}

// search looks for what the map says was replaced, in the whole file.
func search(t *testing.T, names, copied string) (searched int) {
	t.Helper()
	b, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(names)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(list), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 3 || len(f[1]) < 5 || f[0] == "address" || f[0] == "handle" || f[0] == "number" {
			continue
		}
		if searched++; bytes.Contains(b, []byte(f[1])) {
			t.Errorf("the %s %s is in the copy", f[0], f[1])
		}
	}
	return searched
}
