package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// TestPreviewCounts: a run sends as many calls as the preview with the same flags says. The
// built-in server may or may not give the delegations of the capture.
func TestPreviewCounts(t *testing.T) {
	names := sampled.Captures(t, "*")
	send := regexp.MustCompile(`(?m)^send (\d+) calls?`)
	delegated := regexp.MustCompile(`(?m)^  (\d+) of them only if it gives delegations`)
	number := func(r *regexp.Regexp, text string) int {
		m := r.FindStringSubmatch(text)
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	check := func(name string, flags ...string) {
		t.Helper()
		args := append([]string{"run", name, "builtin"}, flags...)
		preview, problems, code := command(t, nil, args...)
		if code != 0 {
			return // nothing to replay, as other tests show
		}
		file := filepath.Join(t.TempDir(), "report")
		command(t, nil, append(args, "--yes", "--timing", "fast", "--provider", "tcp", "-q", "--report", file)...)
		b, err := os.ReadFile(file)
		var r struct{ Sent, Retried, Extra int }
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil {
			t.Errorf("%s %q: %v, %s", filepath.Base(name), flags, err, problems)
			return
		}
		most, sent := number(send, preview), r.Sent-r.Retried-r.Extra
		if sent > most || sent < most-number(delegated, preview) {
			t.Errorf("%s %q: %d calls were sent; the preview:\n%.600s", filepath.Base(name), flags, sent, preview)
		}
	}
	for _, n := range names {
		if info, err := os.Stat(n); err == nil && info.Size() < 170_000 {
			check(n)
		}
	}
	some := []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs3-crc.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst"}
	if testing.Short() {
		some = some[:1]
	}
	for _, n := range some {
		check(filepath.Join(samples, n), "--write")
		check(filepath.Join(samples, n), "--no-prepare")
		check(filepath.Join(samples, n), "--write", "--clones", "2", "--max-ops", "20")
	}
}
