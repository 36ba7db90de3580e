package html

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// fabricReport is what RDMA itself did in a capture.
func fabricReport(t *testing.T, file string) *fabric.Report {
	t.Helper()
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := fabric.New(fabric.Options{Top: 5})
	if err := decode.New(decode.Options{Observers: []decode.Observer{r.Observer()}}, func(*transaction.Transaction) {}).Run(in); err != nil {
		t.Fatal(err)
	}
	return r.Report([]string{filepath.Base(file)})
}

func writeFabric(t *testing.T, rep *fabric.Report, tables []Table) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteFabric(&b, rep, tables, "rpcrdma-dump 1"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFabric draws the rate of captures with and without losses, and an empty report.
func TestFabric(t *testing.T) {
	for _, file := range []string{"rocev2-nfs3-loss.both.pcapng.zst", "iwarp-nfs3-loss.pcap.zst", "rocev2-rping.pcap"} {
		rep := fabricReport(t, filepath.Join(samples, file))
		page := writeFabric(t, rep, []Table{{Title: "Losses", Header: []string{"cause", "lost"}, Right: []bool{false, true}, Rows: [][]string{{"nak", "12.5ms"}}}})
		if m := outside.FindString(page); m != "" {
			t.Errorf("%s: the page refers to something outside: %s", file, m)
		}
		if wellFormed(t, page) < 1 || !strings.Contains(page, file) || !strings.Contains(page, "12.5ms") {
			t.Errorf("%s: drawing, name or table is missing", file)
		}
		if lossy := strings.Contains(file, "loss"); lossy != strings.Contains(page, "</i>again<") {
			t.Errorf("%s: packets sent again are drawn: %t", file, !lossy)
		}
	}
	if page := writeFabric(t, &fabric.Report{}, nil); wellFormed(t, page) != 0 {
		t.Error("an empty report has drawings")
	}
}

// TestFabricHostile has a file name, a note and cells that are code, and a table that is too long.
func TestFabricHostile(t *testing.T) {
	const evil = `</title></script></svg>"'><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}` + "\x00\u202e"
	rep := &fabric.Report{Inputs: []string{evil}, Notes: []string{evil}}
	rows := [][]string{{evil, evil}}
	for range maxRows {
		rows = append(rows, []string{"a", "1"})
	}
	page := writeFabric(t, rep, []Table{{Title: evil, Header: []string{evil, "n"}, Right: []bool{false, true}, Rows: rows}})
	for _, bad := range []string{"<script>alert", "<img", "</script></svg>", "\x00", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if n := strings.Count(page, "<tr"); n > maxRows+3 {
		t.Errorf("%d rows", n)
	}
}
