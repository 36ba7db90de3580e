package roce

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
)

// TestFoldBounds has packets that begin or end where memory does: a byte read before or after them is a fault.
func TestFoldBounds(t *testing.T) {
	ways := foldWays(t)
	r := rand.New(rand.NewPCG(16, 95))
	page := os.Getpagesize()
	pages, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(pages)
	for _, edge := range [][]byte{pages[:page], pages[2*page:]} {
		if err := syscall.Mprotect(edge, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	p := pages[page : 2*page]
	for _, x := range foldPackets {
		for n := x.net + udpSize + BTHSize; icrcOnes+n <= page; n++ {
			m, want := foldMessage(r, x.net, n)
			for _, at := range []int{0, page - len(m)} {
				copy(p[at:], m)
				for _, way := range ways {
					if got := ^way.fold(&p[at], len(m), x.ones); got != want {
						t.Fatalf("%s, %s of %d bytes at %d: ICRC %#x, want %#x", way.name, x.name, n, at, got, want)
					}
				}
			}
		}
	}
}
