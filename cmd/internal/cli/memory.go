package cli

import (
	"os"
	"runtime/debug"
)

// What a program that decodes captures may take, in bytes of resident memory.
const (
	// DefaultMemory is the limit of a program that is not given one.
	DefaultMemory = 240 << 20
	// LeastMemory is the least limit that can be kept.
	LeastMemory = 40 << 20

	// fixedMemory is what the program takes before it has decoded anything:
	// its code, its tables, the batches of packets under way.
	fixedMemory = 28 << 20
	// codeMemory is the part of it that the garbage collector does not know.
	codeMemory = 16 << 20
)

// heap is what the garbage collector has been told.
var heap struct {
	limit   int // of the program; 0 is DefaultMemory
	granted int // what options allow beyond the defaults
}

// LimitMemory has the garbage collector keep the program below total bytes of
// resident memory (0 means DefaultMemory), as far as less than that is in use.
// It returns how much of it a decoder may hold: a third of what there is beside
// the program itself. Another third is for what consumes its transactions, and
// the last for what waits to be collected.
func LimitMemory(total int) (decoder int) {
	if total <= 0 {
		total = DefaultMemory
	}
	heap.limit = max(total, LeastMemory)
	tellCollector()
	return (heap.limit - fixedMemory) / 3
}

// GrantMemory tells the garbage collector that the user has allowed so many bytes
// beyond the defaults. Each call adds to what the calls before have asked for.
func GrantMemory(extra int) {
	heap.granted += max(extra, 0)
	tellCollector()
}

// tellCollector sets the soft limit of the heap. Tables and messages are bounded
// by themselves; by default Go lets as much garbage grow beside them, and near the
// limit it collects earlier instead. A GOMEMLIMIT in the environment counts more.
func tellCollector() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := heap.limit
	if limit == 0 {
		limit = DefaultMemory
	}
	// Where there is room, some is left for what is allocated while the collector
	// runs.
	slack := max(limit-LeastMemory*2, 0) / 6
	debug.SetMemoryLimit(int64(limit - codeMemory - slack + heap.granted))
}
