package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// TestShowAsListed compares the transactions of show -T json with those of -T ndjson, with and without an index.
func TestShowAsListed(t *testing.T) {
	small(t, 1)
	for _, name := range []string{"rocev2-nfs41-mixed-load.pcap.zst", "rocev2-nfs3-loss.both.pcapng.zst", "iwarp-nfs3-loss.pcap.zst"} {
		dir := t.TempDir()
		file := uncompressed(t, dir, filepath.Join("..", "..", "samples", name))
		var stdout bytes.Buffer
		run([]string{"-T", "ndjson", file}, &cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: io.Discard})
		lost, waited, shown := 0, 0, 0
		listed := make(map[uint32][]string)
		var xids []uint32
		for line := range strings.Lines(stdout.String()) {
			var tx struct {
				XID  uint32 `json:"xid"`
				Wait int64  `json:"slot_wait_ns"`
				Lost *struct {
					Total int64 `json:"total"`
				} `json:"lost_ns"`
			}
			if err := json.Unmarshal([]byte(line), &tx); err != nil {
				t.Fatal(err)
			}
			listed[tx.XID] = append(listed[tx.XID], strings.TrimSuffix(line, "\n"))
			if tx.Wait > 0 {
				waited++
			} else if tx.Lost != nil && tx.Lost.Total > 0 {
				lost++
			} else if len(listed)%50 != 0 {
				continue
			}
			if shown++; shown <= 12 {
				xids = append(xids, tx.XID)
			}
		}
		if strings.Contains(name, "loss") && lost == 0 || strings.Contains(name, "load") && waited == 0 {
			t.Errorf("%s: %d transactions with a loss, %d waited for a slot: the sample does not show them any more", name, lost, waited)
		}
		for _, xid := range xids {
			word := fmt.Sprintf("0x%08x", xid)
			// With less memory, batches are smaller.
			for _, args := range [][]string{nil, {"--index", filepath.Join(dir, "x.idx")}} {
				var got []string
				for line := range strings.Lines(showWith(t, append(args, "--limit-memory", "100M", "-T", "json", word, file)...).out) {
					var x struct {
						Transaction json.RawMessage `json:"transaction"`
					}
					if err := json.Unmarshal([]byte(line), &x); err != nil {
						t.Fatal(err)
					}
					got = append(got, string(x.Transaction))
				}
				if want := listed[xid]; strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("%s %s %v: %s\nlisted %s", name, word, args, got, want)
				}
			}
		}
	}
}
