package plan

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
)

func buildFile(t testing.TB, name string, opt Options) string {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := filepath.Join(t.TempDir(), "p.plan")
	opt.Sources = []string{name}
	if _, err := Build(context.Background(), r, out, decode.Options{}, opt); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestX(t *testing.T) {
	name := os.Getenv("CAP")
	out := buildFile(t, name, Options{})
	b, _ := os.ReadFile(out)
	os.WriteFile("/tmp/plan/out.plan", b, 0o644)
	r, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	r.Tables.Header.Text(os.Stdout)
	if _, err := r.All(); err != nil {
		t.Fatal(err)
	}
}
