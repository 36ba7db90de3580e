package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestListWhileWritten lists a local folder in which others write and remove objects. What is there all the time is
// listed each time, and files that are not whole yet, which come and go, are no error.
func TestListWhileWritten(t *testing.T) {
	out, err := Open(t.Context(), t.TempDir(), quick())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	const objects = 50
	for i := range objects {
		if _, err := out.WriteSmall(t.Context(), fmt.Sprintf("a/%d/there", i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("a/%d/gone-%d", i%objects, w)
				_, err := out.WriteSmall(t.Context(), name, []byte("x"))
				if err = errors.Join(err, out.Remove(t.Context(), name)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	defer writers.Wait()
	defer close(stop)
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		n := 0
		for o, err := range out.List(t.Context(), "a/") {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(o.Name, "/there") {
				n++
			}
		}
		if n != objects {
			t.Fatalf("%d objects, want %d", n, objects)
		}
		n = 0
		for _, err := range out.Folders(t.Context(), "a/") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != objects {
			t.Fatalf("%d folders, want %d", n, objects)
		}
	}
}

// tidied is what is written while somebody else tidies up: the file that is not whole yet is removed at its end, so
// often.
type tidied struct {
	*strings.Reader
	dir   string
	times int
}

func (r *tidied) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) && r.times > 0 {
		r.times--
		list, _ := filepath.Glob(filepath.Join(r.dir, "*.tmp"))
		for _, name := range list {
			os.Remove(name)
		}
	}
	return n, err
}

// TestWriteWhileTidied: a file that is not whole yet may be taken for what a killed worker has left. It is written again.
func TestWriteWhileTidied(t *testing.T) {
	dir := t.TempDir()
	out, err := Open(t.Context(), dir, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if w, err := out.WriteWhole(t.Context(), "a/b", &tidied{strings.NewReader("abc"), filepath.Join(dir, "a"), 2}); err != nil || w.Size != 3 {
		t.Fatal(w, err)
	}
	if b, err := out.ReadSmall(t.Context(), "a/b", 3); err != nil || string(b) != "abc" {
		t.Error(b, err)
	}
}
