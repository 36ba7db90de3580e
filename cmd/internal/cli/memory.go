package cli

import (
	"os"
	"runtime/debug"
)

// Memory tells the garbage collector what a program may need: 200 MiB, and what
// the user has allowed beyond the defaults. Tables and messages are bounded by
// themselves. By default Go lets as much garbage grow beside them; near the
// limit it collects earlier instead. A GOMEMLIMIT in the environment counts
// more.
//
// Each call adds to what the calls before have asked for.
func Memory(extra int) {
	granted += int64(max(extra, 0))
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit + granted)
	}
}

const softLimit = 200 << 20

var granted int64
