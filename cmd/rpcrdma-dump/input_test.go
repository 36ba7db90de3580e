package main

import (
	"runtime"
	"testing"
)

// TestCopiers: only trackers with processors of their own are worth a goroutine that copies the file.
func TestCopiers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, c := range []struct{ trackers, processors, files, want int }{
		{0, 16, 1, 0}, {3, 16, 1, 0}, {4, 16, 1, 1}, {7, 16, 1, 1}, {8, 16, 1, 2}, {64, 64, 1, 2},
		{16, 1, 1, 0}, {16, 3, 1, 0}, {16, 4, 1, 1}, {16, 8, 1, 2}, {16, 16, 2, 0},
	} {
		runtime.GOMAXPROCS(c.processors)
		if got := (&inputOptions{trackers: c.trackers}).copiers(c.files); got != c.want {
			t.Errorf("%d trackers, %d processors, %d files: %d copy, want %d", c.trackers, c.processors, c.files, got, c.want)
		}
	}
}
