package clitest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Long is a capture that holds the packets of another one again and again. It takes little room: it is compressed, in frames that
// hold them 200 times.
func Long(t *testing.T, sample string, frames int) string {
	t.Helper()
	b, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	const header = 24
	frame := w.EncodeAll(bytes.Repeat(b[header:], 200), nil)
	long := filepath.Join(t.TempDir(), "long.pcap.zst")
	if err := os.WriteFile(long, append(w.EncodeAll(b[:header], nil), bytes.Repeat(frame, frames)...), 0o600); err != nil {
		t.Fatal(err)
	}
	return long
}

// Copies are files with the contents of another one: no program reads one file twice.
func Copies(t *testing.T, file string, n int) (names []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range n {
		name := filepath.Join(dir, fmt.Sprint(i, "-", filepath.Base(file)))
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}
