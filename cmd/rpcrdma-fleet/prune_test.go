package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
)

// TestCancel: units of a job that is cancelled are not decoded until somebody retries; then their results can be pruned.
func TestCancel(t *testing.T) {
	t.Setenv(roleVariable, "fleet")
	dir := t.TempDir()
	out, pattern := filepath.Join(dir, "out"), filepath.Join(dir, "caps", "*", "*")
	captures(t, filepath.Join(dir, "caps"), 2, 2)
	st, err := store.Open(t.Context(), out, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	in := store.NewInputs(store.Options{})
	defer in.Close()
	list, err := unit.Plan(t.Context(), in, []string{pattern}, "", layout.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	j, err := newJob(nil, list, layout.DefaultOptions())
	if err == nil {
		err = job.Write(t.Context(), st, j, list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"cancel", out}, 2, "--job names the job"},
		{[]string{"cancel", "--job", "none", out}, 1, "not an ID"},
		{[]string{"cancel", "--job", j.ID, out}, 0, "2 units set aside"},
		{[]string{"cancel", "--job", j.ID, out}, 0, "0 units set aside"},
		{[]string{"run", "-n", "1", pattern, "-w", out}, 3, "the job was cancelled"},
		{[]string{"run", "-n", "1", "--retry", pattern, "-w", out}, 0, "2 of 2 units done"},
		{[]string{"cancel", "--job", j.ID, out}, 0, "0 units set aside"},
		{[]string{"prune", out}, 2, "--keep says"},
		{[]string{"prune", "--keep", "1s", "--dry-run", out}, 0, "would be removed"},
		{[]string{"prune", "--keep", "1s", out}, 0, "removed"},
		{[]string{"prune", "--keep", "1s", out}, 0, "0 objects"},
		{[]string{"report", out}, 0, "2 units"},
	} {
		status, stdout, stderr := command(t, x.args...)
		if status != x.status || !strings.Contains(stdout+stderr, x.says) {
			t.Errorf("%v: status %d, want %d, and not %q in %s%s", x.args, status, x.status, x.says, stdout, stderr)
		}
	}
}
