package cli

import "runtime/debug"

// What a program that decodes captures may take, in bytes of resident memory.
const (
	// DefaultMemory is the limit of a program that is not given one.
	DefaultMemory = 240 << 20
	// LeastMemory is the least limit that can be kept.
	LeastMemory = 32 << 20

	// fixedMemory is what the program takes before it has decoded anything:
	// its code, its tables, the batches of packets under way.
	fixedMemory = 24 << 20
	// codeMemory is the part of it that the garbage collector does not know.
	codeMemory = 12 << 20
)

// LimitMemory has the garbage collector keep the program below total bytes of
// resident memory (0 means DefaultMemory), as far as less than that is in use.
// It returns how much of it a decoder may hold: a third of what there is beside
// the program itself. Another third is for what consumes its transactions, and
// the last for what waits to be collected.
func LimitMemory(total int) (decoder int) {
	if total <= 0 {
		total = DefaultMemory
	}
	total = max(total, LeastMemory)
	debug.SetMemoryLimit(int64(total - codeMemory))
	return (total - fixedMemory) / 3
}
