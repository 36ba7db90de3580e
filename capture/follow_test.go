package capture

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that grows is read as it grows, whatever pieces it grows by.
func TestFollow(t *testing.T) {
	ps := []Packet{{Time: 1, Link: 1, Data: []byte("one"), Length: 3}, {Time: 2, Link: 1, Data: []byte("two"), Length: 3}}
	whole := write(t, WriterOptions{}, ps)
	name := filepath.Join(t.TempDir(), "a.pcapng")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fo, err := Follow(name)
	if err != nil {
		t.Fatal(err)
	}
	defer fo.Close()
	fo.every = time.Millisecond
	got := make(chan string)
	failed := make(chan error, 1)
	go func() {
		r, err := NewReader(fo, name, Options{})
		if err != nil {
			failed <- err
			return
		}
		var b Batch
		for {
			if err := r.Read(&b); err != nil {
				failed <- err
				return
			}
			for _, p := range b.Packets {
				got <- string(p.Data)
			}
		}
	}()
	for i := range whole {
		if _, err := f.Write(whole[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"one", "two"} {
		select {
		case s := <-got:
			if s != want {
				t.Errorf("%s, want %s", s, want)
			}
		case err := <-failed:
			t.Fatal(err)
		}
	}
	fo.Close()
	if err := <-failed; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

func TestFollowErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Follow(dir); err == nil {
		t.Error("a directory is followed")
	}
	name := filepath.Join(dir, "a")
	if _, err := Follow(name); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("12345678"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Follow(name)
	if err != nil {
		t.Fatal(err)
	}
	var b [8]byte
	if _, err := io.ReadFull(f, b[:]); err != nil || string(b[:]) != "12345678" {
		t.Error(err)
	}
	if err := os.Truncate(name, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(b[:]); !errors.Is(err, errShrunk) {
		t.Error(err)
	}
	if err := errors.Join(f.Close()); err != nil {
		t.Error(err)
	}
}
