package parquet

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// at is a transaction of a call without a reply.
func at(when time.Time) *rpc.View {
	tx := &transaction.Transaction{Connection: &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}, State: transaction.NoReply}
	tx.Connection.Ends[0].Addr = netip.MustParseAddr("192.0.2.2")
	tx.Connection.Ends[1].Addr = netip.MustParseAddr("192.0.2.1")
	tx.Call.First = rdma.Ref{Time: when.UnixNano(), Number: 1}
	tx.Call.Last = tx.Call.First
	v := &rpc.View{}
	v.Set(tx)
	return v
}

func tree(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(list)
	return list
}

func TestTree(t *testing.T) {
	day := time.Date(2026, 11, 21, 22, 58, 0, 0, time.UTC)
	cases := []struct {
		layout string
		want   []string
	}{
		{"time=1h,host", []string{
			"date=2026-11-21/hour=22/host=nfs%2F7/part-0.parquet", "date=2026-11-21/hour=23/host=nfs%2F7/part-0.parquet",
			"date=2026-11-22/hour=00/host=nfs%2F7/part-0.parquet",
		}},
		{"host", []string{"host=nfs%2F7/part-0.parquet"}},
		{"time=1d", []string{"date=2026-11-21/part-0.parquet", "date=2026-11-22/part-0.parquet"}},
		{"time=30m", []string{
			"date=2026-11-21/hour=22/minute=30/part-0.parquet", "date=2026-11-21/hour=23/minute=00/part-0.parquet",
			"date=2026-11-21/hour=23/minute=30/part-0.parquet", "date=2026-11-22/hour=00/minute=00/part-0.parquet",
		}},
	}
	for _, c := range cases {
		l, host, err := ParseLayout(c.layout)
		if err != nil {
			t.Fatal(err)
		}
		if host {
			l.Host = "nfs/7"
		}
		dir := t.TempDir()
		for run := range 2 {
			w := NewTree(dir, l, nil)
			for i := range 45 {
				if err := w.Add(at(day.Add(time.Duration(i) * 2 * time.Minute))); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if w.Rows() != 45 || w.Files() != len(c.want) {
				t.Errorf("%s: %d rows in %d files", c.layout, w.Rows(), w.Files())
			}
			want := append([]string(nil), c.want...)
			if run == 1 { // a second run leaves the first one's files alone
				for _, f := range c.want {
					want = append(want, strings.Replace(f, "part-0", "part-1", 1))
				}
			}
			sort.Strings(want)
			if got := tree(t, dir); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: files\n%s", c.layout, strings.Join(got, "\n"))
			}
		}
		rows := 0
		for _, f := range tree(t, dir) {
			b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f)))
			if err != nil {
				t.Fatal(err)
			}
			rows += len(readRows(t, b))
		}
		if rows != 90 {
			t.Errorf("%s: %d rows in the files", c.layout, rows)
		}
	}
}

func TestParseLayoutRejects(t *testing.T) {
	for _, s := range []string{"", "time", "time=", "time=0h", "time=-1h", "time=5h", "time=7m", "time=2d", "time=1", "host=a", "host,host", "time=1h,time=1h", "day", "time=1hh"} {
		if _, _, err := ParseLayout(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

// TestTreeOfJumpingClock makes sure that a capture whose times jump about ends
// in an error, not in files without end.
func TestTreeOfJumpingClock(t *testing.T) {
	w := NewTree(t.TempDir(), Layout{Step: time.Hour}, nil)
	w.limit = 8
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		err = w.Add(at(start.Add(time.Duration(i*7%90) * time.Hour)))
	}
	if err == nil || !strings.Contains(err.Error(), "more than 8 files") {
		t.Errorf("error %v", err)
	}
	if err := w.Close(); err != nil || w.Files() != 8 {
		t.Errorf("%d files, %v", w.Files(), err)
	}
}

func TestAddAllocatesLittle(t *testing.T) {
	w := NewWriter(discard{}, nil)
	var v *rpc.View
	n := 0.0
	each(t, filepath.Join(samples, "rocev2-nfs41-recall.pcap"), func(x *rpc.View) {
		if v = x; v.Tx.XID == 0xb1466d78 { // a READ with a Write chunk and a name
			n = testing.AllocsPerRun(2000, func() {
				if err := w.Add(v); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	if w.Rows() == 0 {
		t.Fatal("no such transaction")
	}
	if n > 0 { // on average: a page is written now and then
		t.Errorf("%.1f allocations a row", n)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
