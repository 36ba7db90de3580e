package edge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

const agent = "0123456789abcdef0123456789abcdef"

func partFile(t *testing.T, dir string, n, size int) string {
	t.Helper()
	name := fmt.Sprintf("2026-01-02.%s.%d.parquet", agent, n)
	if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestUploader begins with files of an earlier agent, removes the oldest beyond the
// limit, and leaves what is not its own.
func TestUploader(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	out, err := store.Open(t.Context(), to, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	other := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		partFile(t, dir, n, 100)
	}
	u, err := NewUploader(dir, "rack 1", 450, out, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for n := 4; n < 7; n++ {
		if err := u.Add(&Part{File: partFile(t, dir, n, 100), Rows: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "../../etc/passwd", "2026-13-02." + agent + ".1.parquet", "2026-01-02.x.1.parquet", "notes.txt"} {
		if err := u.Add(&Part{File: bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if u.Removed() != 3 || u.Waiting() != 4 {
		t.Fatalf("%d removed, %d waiting", u.Removed(), u.Waiting())
	}
	u.End()
	if err := u.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(to, "transactions", "day=2026-01-02", "*", agent+"-*.parquet"))
	if err != nil || len(list) != 4 {
		t.Errorf("%q, %v", list, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if b, err := os.ReadFile(other); string(b) != "mine" {
		t.Error(err)
	}
}

// TestUploaderCanceled: the end of the context ends waiting.
func TestUploaderCanceled(t *testing.T) {
	out, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	u, err := NewUploader(t.TempDir(), "t", 1, out, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { err = u.Run(ctx) })
	cancel()
	wg.Wait()
	if err == nil {
		t.Error("no error")
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte("{\"note\":\"a\"}\n{\"part\":{\"file\":\"x\",\"rows\":1,\"rows_lost\":0}}\n{\"damaged\":true}\n"))
	f.Add([]byte("{\"summary\":{}}\n"))
	f.Add([]byte("{\"note\":1}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		lines := 0
		err := Records(strings.NewReader(string(b)), func(*Record) error {
			lines++
			return nil
		})
		if n := strings.Count(string(b), "\n"); lines > n || err == nil && lines != n {
			t.Fatalf("%d records in %d lines, %v", lines, n, err)
		}
	})
}

func TestLongLine(t *testing.T) {
	err := Records(strings.NewReader("{\"note\":\""+strings.Repeat("x", maxLine)+"\"}\n"), func(*Record) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "line of more than") {
		t.Error(err)
	}
}
