//go:build unix

package crc

import (
	"os"
	"syscall"
	"testing"
)

// TestBounds has data that begins or ends where memory does: a byte read before or after it is a fault.
func TestBounds(t *testing.T) {
	page := os.Getpagesize()
	m, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(m)
	for _, edge := range [][]byte{m[:page], m[2*page:]} {
		if err := syscall.Mprotect(edge, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	p := m[page : 2*page]
	for n := range page + 1 {
		if a, b := Update(0, p[:n]), Update(0, p[page-n:]); a != b {
			t.Fatalf("%d zeros have the sums %#x and %#x", n, a, b)
		}
	}
}
