//go:build live && linux

package live

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestExtcap has tshark, as nobody with CAP_NET_RAW only, capture through the extcap program on the loopback
// interface, while a replay runs there over soft RoCEv2. Without tshark or setpriv, run leaves it out and says so.
func TestExtcap(t *testing.T) {
	dir, err := os.MkdirTemp("", "extcap-") //nolint:usetesting // another user cannot enter that of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	extcap := filepath.Join(dir, "extcap")
	if err := os.Mkdir(extcap, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nexec " + os.Getenv("RPCRDMA_DUMP") + " extcap \"$@\"\n"
	if err := os.WriteFile(filepath.Join(extcap, "rpcrdma"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var out, diag bytes.Buffer
	tshark := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+net_raw", "--ambient-caps=+net_raw",
		"tshark", "-l", "-i", "rpcrdma", "-o", "extcap.rpcrdma.device:lo", "-o", "extcap.rpcrdma.delay:3s", "-c", "40",
		"-T", "fields", "-e", "frame.comment")
	tshark.Dir = home
	tshark.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "WIRESHARK_EXTCAP_DIR="+extcap)
	tshark.Stdout, tshark.Stderr = &out, &diag
	before := bound()
	if err := tshark.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- tshark.Wait() }()
	for deadline := time.Now().Add(time.Minute); bound() == before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("tshark does not capture: %s", &diag)
		}
	}
	replay := exec.Command(os.Getenv("RPCRDMA_REPLAY"), "run", "../../samples/rocev2-nfs41-recall.pcap", "builtin", "--provider", "rocev2", "--yes", "--write", "--timing", "fast")
	if b, err := replay.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = tshark.Process.Kill()
		t.Fatalf("tshark did not end: %s%s", &out, &diag)
	}
	comments := 0
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, " xid 0x") {
			comments++
		}
	}
	if lines := strings.Count(out.String(), "\n"); comments < 20 || !strings.Contains(out.String(), "; ok in ") {
		t.Errorf("%s of %s packets have comments: %s%s", strconv.Itoa(comments), strconv.Itoa(lines), &out, &diag)
	}
}
