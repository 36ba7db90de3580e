//go:build tshark

package tshark

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/programs"
)

// TestLua gives annotated captures to tshark with docs/wireshark/transactions.lua and compares the fields that
// it makes of the comments with what the listing says of the same transactions.
func TestLua(t *testing.T) {
	tshark, err := lookUp()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := programs.Build(dir, "./cmd/rpcrdma-dump"); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "rpcrdma-dump")
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-basic.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		file, annotated := filepath.Join("../../samples", name), filepath.Join(dir, name+".pcapng")
		if out, err := exec.Command(exe, "annotate", "-w", annotated, file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		listing, err := exec.Command(exe, "-T", "ndjson", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		fields := []string{"frame.number", "rpcrdma_tx.xid", "rpcrdma_tx.name", "rpcrdma_tx.status", "rpcrdma_tx.latency",
			"rpcrdma_tx.phase.call_transfer", "rpcrdma_tx.phase.argument_pull", "rpcrdma_tx.phase.server", "rpcrdma_tx.phase.result_push", "rpcrdma_tx.phase.reply_transfer"}
		args := []string{"-X", "lua_script:../../docs/wireshark/transactions.lua", "-r", annotated, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;"}
		for _, f := range fields {
			args = append(args, "-e", f)
		}
		cmd := exec.Command(tshark, args...)
		cmd.Env = environment(t)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string][]string{} // by frame
		for line := range strings.Lines(string(out)) {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			rows[cells[0]] = cells
		}
		compared := 0
		for line := range strings.Lines(string(listing)) {
			var x struct {
				XID       uint32             `json:"xid"`
				CallFrame int                `json:"call_frame"`
				Operation string             `json:"operation"`
				Latency   map[string]float64 `json:"latency_ns"`
			}
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			if x.Latency == nil || x.CallFrame == 0 {
				continue
			}
			row := rows[strconv.Itoa(x.CallFrame)]
			if len(row) != len(fields) || strings.Contains(row[1], ";") {
				continue // a frame of several transactions: their values cannot be distinguished
			}
			if row[1] != fmt.Sprintf("0x%08x", x.XID) || !strings.Contains(row[2], " "+x.Operation) {
				t.Fatalf("%s: frame %d: %q, want %08x %s", name, x.CallFrame, row, x.XID, x.Operation)
			}
			for i, key := range []string{"total", "call_transfer", "argument_pull", "server", "result_push", "reply_transfer"} {
				want, got := x.Latency[key]/1e9, 0.0
				if row[4+i] != "" {
					if got, err = strconv.ParseFloat(row[4+i], 64); err != nil {
						t.Fatal(err)
					}
				}
				if math.Abs(got-want) > want*6e-4 { // comments have four digits
					t.Errorf("%s: frame %d: %s is %g s, want %g", name, x.CallFrame, key, got, want)
				}
			}
			compared++
		}
		if compared < 40 {
			t.Errorf("%s: only %d transactions compared", name, compared)
		}
		t.Logf("%s: %d transactions", name, compared)
	}
}
