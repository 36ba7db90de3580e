package queue

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
)

func randomText() string { return rand.Text() }

// resident is how many bytes of memory this process has, 0 where the system does not tell.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	n, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return 0
	}
	return n * int64(os.Getpagesize())
}
