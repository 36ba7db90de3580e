package fleetgen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

const samples = "../../../samples"

// told is all that is decoded of captures, apart from addresses; ends are the addresses.
func told(t *testing.T, files ...string) (lines []string, ends map[string]bool) {
	t.Helper()
	in, err := capture.Open(files, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ends = make(map[string]bool)
	start := int64(0)
	opt := decode.Options{Observers: []decode.Observer{{Closed: func(c *rdma.Connection) {
		if c.MergedInto == nil {
			s := c.Setup
			lines = append(lines, fmt.Sprintf("%d %s %s %d-%d %+v %+v %d %d %s", c.ID, c.Fabric, c.State, c.First.Number, c.Last.Number, c.Sent, s, c.Ends[0].QPN, c.Ends[1].QPN, strings.Split(c.Terminated, " from ")[0]))
		}
	}}}}
	d := decode.New(opt, func(tx *transaction.Transaction) {
		if start == 0 {
			start = tx.First().Time
		}
		ends[tx.Client().Addr.String()] = true
		ends[tx.Server().Addr.String()] = true
		p, ok := tx.Phases()
		lines = append(lines, fmt.Sprintf("%d %d %v %d/%d/%d %v +%d %d %v %+v %v %d %d %d", tx.Connection.ID, tx.XID, tx.Backward, tx.Program, tx.Version, tx.Procedure,
			tx.State, tx.First().Time-start, tx.First().Number, ok, p, tx.Notes, len(tx.Operations), tx.Retransmits, tx.ReadBytes+tx.WriteBytes))
	})
	if err := d.Run(in); err != nil {
		t.Fatal(err)
	}
	st := d.Stats()
	a := d.Account()
	return append(lines, fmt.Sprintf("%+v %+v", st.Packets, a)), ends
}

// TestRewrite: what is decoded of a rewritten capture is what is decoded of the capture, apart from addresses.
func TestRewrite(t *testing.T) {
	for _, name := range sampled.Captures(t, "*") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			dir := t.TempDir()
			if err := Write(dir, []string{name}, Options{Taps: 1, Slices: 3}); err != nil {
				t.Fatal(err)
			}
			files, _ := filepath.Glob(filepath.Join(dir, "tap-0", "*"))
			if len(files) != 3 {
				t.Fatal(files)
			}
			want, before := told(t, name)
			got, after := told(t, files...)
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("%d and %d lines; line %d:\n%s\nwant\n%s", len(got), len(want), i, get(got, i), get(want, i))
				}
			}
			if len(before) != len(after) {
				t.Errorf("%d hosts became %d", len(before), len(after))
			}
			for a := range after {
				if before[a] || !strings.HasPrefix(a, "10.") && !strings.HasPrefix(a, "fd52:") {
					t.Errorf("%s is still there", a)
				}
			}
		})
	}
}

func get(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

// TestWrite: taps have hosts of their own, and the same options make the same files.
func TestWrite(t *testing.T) {
	in := []string{filepath.Join(samples, "rocev2-nfs41-recall.pcap"), filepath.Join(samples, "iwarp-nfs41-recall.pcap"), filepath.Join(samples, "rocev2-rping.pcap")}
	dir := [2]string{t.TempDir(), t.TempDir()}
	for _, d := range dir {
		if err := Write(d, in, Options{Taps: 3, Slices: 4, Repeat: 2, Seed: 7}); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[string]int)
	kinds := make(map[string]int)
	for tap := range 3 {
		files, _ := filepath.Glob(filepath.Join(dir[0], fmt.Sprint("tap-", tap), "*"))
		if len(files) != 4 {
			t.Fatal(files)
		}
		for _, f := range files {
			rel, _ := filepath.Rel(dir[0], f)
			a, _ := os.ReadFile(f)
			b, err := os.ReadFile(filepath.Join(dir[1], rel))
			if err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s differs, %v", rel, err)
			}
			kinds[strings.TrimLeft(filepath.Base(f), "cap-0123456789")]++
		}
		_, ends := told(t, files...)
		if len(ends) < 8 {
			t.Errorf("tap %d has %d hosts", tap, len(ends))
		}
		for e := range ends {
			if seen[e]++; seen[e] > 1 {
				t.Errorf("%s is at two taps", e)
			}
		}
	}
	if len(kinds) < 4 {
		t.Error(kinds)
	}
	for _, opt := range []Options{{Slices: 1}, {Taps: 1}, {Taps: 300, Slices: 1, Repeat: 300}} {
		if Write(t.TempDir(), in, opt) == nil {
			t.Errorf("%+v: no error", opt)
		}
	}
}
