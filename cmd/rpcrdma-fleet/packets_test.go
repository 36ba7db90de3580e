package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// one is what a test compares of a transaction.
type one struct {
	xid   uint32
	key   string
	begin time.Time
	state string
}

// decoded are the transactions of a capture.
func decoded(t *testing.T, name string) (list []one) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for tx, err := range decode.Transactions(r, decode.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, one{tx.XID, string(rpc.AppendConnectionKey(nil, tx.Connection)), time.Unix(0, tx.First().Time).UTC(), fmt.Sprint(tx.State)})
	}
	return list
}

// TestPackets fetches the packets of transactions from rotated captures: also of such as begin in one and end in another.
func TestPackets(t *testing.T) {
	const sample = "rocev2-nfs41-recall.pcap"
	dir := t.TempDir()
	slice(t, sample, filepath.Join(dir, "nfs-7"), 5)
	out := filepath.Join(dir, "out")
	for n := range 3 { // three units
		if status, _, stderr := command(t, "unit", filepath.Join(dir, "nfs-7", fmt.Sprintf("cap-[0-%d].pcap", n+2)), "-w", out, "--tap", "nfs-7"); status != 0 {
			t.Fatal(stderr)
		}
	}
	all := decoded(t, filepath.Join("..", "..", "samples", sample))
	if len(all) != 50 {
		t.Fatal(len(all))
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("sixteen bytes and more"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "found.pcapng")
	for i, x := range all {
		if i%7 != 0 { // decoding takes its time
			continue
		}
		args := []string{"packets", "--xid", fmt.Sprintf("0x%x", x.xid), "--connection-key", x.key, "--time", x.begin.Format(time.RFC3339Nano), "-w", file, out}
		if i%2 != 0 {
			args = append(args, "--scrub", key, "--tap", "nfs-7")
		}
		if status, _, stderr := command(t, args...); status != 0 || !strings.Contains(stderr, "1 transaction, ") {
			t.Fatalf("%q: status %d, %s", args, status, stderr)
		}
		found := false
		for _, y := range decoded(t, file) {
			found = found || y.xid == x.xid && y.begin.Equal(x.begin) && y.state == x.state
		}
		if !found {
			t.Errorf("%+v is not in what was found: %+v", x, decoded(t, file))
		}
	}
	type row struct {
		XID  uint32    `json:"xid"`
		Time time.Time `json:"time"`
		Op   string    `json:"operation"`
	}
	var rep struct{ Slowest []row }
	_, stdout, _ := command(t, "report", "-T", "json", out)
	decodeRow(t, []byte(stdout), &rep)
	slow := rep.Slowest[slices.IndexFunc(rep.Slowest, func(x row) bool { return strings.HasSuffix(x.Op, " READ") })]
	if status, _, stderr := command(t, "packets", "--slowest", "1", "--scrub", key, "-w", file, out); status != 0 || !strings.Contains(stderr, fmt.Sprintf("%s, XID 0x%08x", slow.Op, slow.XID)) {
		t.Errorf("the slowest: status %d, %s", status, stderr)
	}
	if list := decoded(t, file); !slices.ContainsFunc(list, func(x one) bool { return x.xid == slow.XID && x.begin.Equal(slow.Time) }) {
		t.Errorf("the slowest: %+v, want %+v", list, slow)
	}
	x := &all[len(all)-1]
	for args, says := range map[string]string{
		"--xid 1 --tap nfs-7":   "no such transaction",
		"--xid 1 --tap other":   "no unit of a tap other",
		"--xid y --tap nfs-7":   "--xid",
		"--connection-key a|b":  "--connection-key",
		"--tap nfs-7":           "name a transaction",
		"--xid 1 --scrub /none": "--scrub",
	} {
		args := append(strings.Fields("packets "+args), "--time", x.begin.Format(time.RFC3339Nano), "-w", file, out)
		if status, _, stderr := command(t, args...); status == 0 || !strings.Contains(stderr, says) {
			t.Errorf("%q: status %d, %s", args, status, stderr)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "nfs-7")); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := command(t, "packets", "--xid", fmt.Sprint(x.xid), "--time", x.begin.Format(time.RFC3339Nano), "-w", file, out)
	if status != 1 || !strings.Contains(stderr, "cap-4.pcap, which has the packets of that time") {
		t.Errorf("the captures are gone: status %d, %s", status, stderr)
	}
}
