package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

// TestHostileText looks at tables and metrics for characters that bite. The
// screens are made of the same tables.
func TestHostileText(t *testing.T) {
	samples := []string{"../../samples/rocev2-nfs41-recall.pcap", "../../samples/rocev2-nfs3-meta.pcap.zst"}
	if testing.Short() {
		samples = samples[:1]
	}
	for _, sample := range samples {
		in := clitest.Hostile(t, t.TempDir(), sample)
		for _, args := range [][]string{
			{"--batch", "0"}, {"--batch", "3", "--interval", "10ms"}, {"--batch", "0", "--ascii"}, {"--batch", "0", "-Y", "xid"},
			{"--batch", "0", "-Y", "\u202e\x1b"}, {"--batch", "0", in + "x"}, {"--speed", "\u202e\x1b"},
		} {
			var out, problems bytes.Buffer
			run(append(args, "--no-icrc", in), &cli.Streams{Out: &out, Err: &problems})
			for _, s := range []string{out.String(), problems.String()} {
				if raw := clitest.Raw(s); raw != "" {
					t.Errorf("%q: %q", args, raw)
				}
			}
			if len(args) == 2 && args[1] == "0" && !clitest.Shown(out.String()) {
				t.Errorf("%q: nothing of the hostile text is there: %s", args, out.String())
			}
		}
		p := clitest.Start(t, nil, clitest.Binary(t, "rpcrdma-top"), "-r", in, "--no-icrc", "--batch", "0", "--speed", "0.01", "--listen", "127.0.0.1:0")
		p.Until(t, "metrics", func() bool { return strings.Contains(p.Stderr.String(), "/metrics\n") })
		_, at, _ := strings.Cut(p.Stderr.String(), "metrics at ")
		at, _, _ = strings.Cut(at, "\n")
		resp, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || clitest.Raw(string(b)) != "" || !strings.Contains(string(b), "rpcrdma_packets_total") {
			t.Errorf("metrics: %q, %v", clitest.Raw(string(b)), err)
		}
	}
}
