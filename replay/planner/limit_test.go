package planner

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// A plan is read up to a limit, and no line of it takes much more memory than its text.
func TestLimits(t *testing.T) {
	name := build(t, "../../samples/rocev2-nfs41-recall.pcap", Options{})
	st, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string, limit int64, stream bool) error {
		r, err := plan.Open(name, limit)
		if err != nil {
			return err
		}
		defer r.Close()
		if stream {
			r.Stream()
		}
		for {
			if _, _, err := r.Next(); err != nil {
				return err
			}
		}
	}
	var long *plan.TooLongError
	if err := read(name, st.Size(), false); !errors.Is(err, io.EOF) {
		t.Errorf("a plan as long as the limit: %v", err)
	}
	if err := read(name, st.Size()-1, false); !errors.As(err, &long) || long.Limit != st.Size()-1 {
		t.Errorf("a plan longer than the limit: %v", err)
	}
	if err := read(name, st.Size()-1, true); !errors.Is(err, io.EOF) {
		t.Errorf("a plan of which no operation is kept: %v", err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	bomb := filepath.Join(t.TempDir(), "bomb")
	text := first + "\n" + `{"op":{"id":1,"args":[` + strings.Repeat("{},", 1<<19) + `{}]}}` + "\n"
	if err := os.WriteFile(bomb, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := read(bomb, 0, false); err == nil || !strings.Contains(err.Error(), "objects and lists") {
		t.Errorf("a line of %d objects: %v", 1<<19, err)
	}
}
