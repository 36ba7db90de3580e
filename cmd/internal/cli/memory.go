package cli

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// What a program that decodes captures may take, in bytes of resident memory.
const (
	// DefaultMemory is the limit of a program that is not given one.
	DefaultMemory = 240 << 20
	// LeastMemory is the least limit that can be kept.
	LeastMemory = 40 << 20

	// fixedMemory is what the program takes before it has decoded anything:
	// its code, its tables, the batches of packets under way.
	fixedMemory = 36 << 20
)

// codeMemory is the part of it that the garbage collector does not know: pages of the program
// and of its libraries, in bytes. A busy program has nearly all of them resident.
var codeMemory = mapped()

// mapped is how many bytes of files are mapped into the program to be read, 24 MiB if the system
// does not tell.
func mapped() int {
	const unknown = 24 << 20
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return unknown
	}
	sum := uint64(0)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line) // from-to, permissions, offset, device, inode, name
		if len(f) < 6 || f[4] == "0" || strings.Contains(f[1], "w") {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		a, errA := strconv.ParseUint(from, 16, 64)
		z, errZ := strconv.ParseUint(to, 16, 64)
		if errA == nil && errZ == nil && z > a {
			sum += z - a
		}
	}
	if sum == 0 {
		return unknown
	}
	return int(min(sum, LeastMemory*2/3))
}

// heap is what the garbage collector has been told.
var heap struct {
	limit   int // of the program; 0 is DefaultMemory
	granted int // what options allow beyond the defaults
}

// Memory is the flag --limit-memory of a command that decodes captures: how much
// resident memory the program may take. Zero is DefaultMemory.
type Memory struct {
	limit   Size
	reserve int
}

// Reserve sets aside what a command takes beside the decoder, names and tables, and
// that does not become less with the limit.
func (m *Memory) Reserve(bytes int) { m.reserve = bytes }

// free is what there is beside the program itself, and what is set aside.
func (m *Memory) free() int {
	n := m.total() - fixedMemory
	return n - min(m.reserve, n/2)
}

// Flag adds the flag.
func (m *Memory) Flag(f *pflag.FlagSet) {
	f.Var(&m.limit, "limit-memory", "resident memory of the program, for example 64M; at least 40M (default 240M)")
}

// Given reports whether there is a limit that is not the default.
func (m *Memory) Given() bool { return m.limit != 0 }

// Note says that the limit cannot be kept; empty if it can.
func (m *Memory) Note() string {
	if m.limit == 0 || m.limit >= LeastMemory {
		return ""
	}
	return fmt.Sprintf("--limit-memory %d cannot be kept: the program itself needs %dM, which is the limit now", m.limit, LeastMemory>>20)
}

func (m *Memory) total() int {
	if m.limit == 0 {
		return DefaultMemory
	}
	return max(int(m.limit), LeastMemory)
}

// Decoder has the garbage collector keep the program below the limit, as far as
// less than that is in use. It returns how much of it a decoder may hold: a third
// of what there is beside the program itself. Another third is for what consumes
// its transactions, and the last for what waits to be collected.
func (m *Memory) Decoder() int {
	LimitProcess(m.total())
	return m.Tracker()
}

// Tracker is what Decoder returns, for one of several decoders in a program: see LimitProcess.
func (m *Memory) Tracker() int { return m.free() / 3 }

// MemoryOf is a Memory of the given number of bytes.
func MemoryOf(bytes int) *Memory { return &Memory{limit: Size(bytes)} }

// LimitProcess has the garbage collector keep the program below a limit in bytes, as far as less than that is in use.
func LimitProcess(bytes int) {
	heap.limit = bytes
	tellCollector()
}

// Names is how many bytes of names of files may be remembered.
func (m *Memory) Names() int { return min(m.free()/6, 40<<20) }

// Scale is what n bytes become that a consumer of transactions takes by default:
// as much more or less as there is.
func (m *Memory) Scale(n int) int {
	if m.limit == 0 {
		return n
	}
	return int(int64(n) * int64(m.free()) / (DefaultMemory - fixedMemory))
}

// Batch is how many bytes of packets are read at once where memory is short; 0 for
// as many as is best.
func (m *Memory) Batch() int {
	if m.total() >= 128<<20 {
		return 0
	}
	return 64 << 10
}

// Window is how many bytes a decompressor may keep of what it has written: 0 for as many as the formats usually need. With less
// memory than by default, it is the third of it that is neither the decoder's nor the consumers'; 8 MiB are always granted, which
// is what zstd takes unless it is told otherwise.
func (m *Memory) Window() int {
	if m.total() >= DefaultMemory {
		return 0
	}
	return max(m.free()/3, 8<<20)
}

// GrantMemory raises the limit of the garbage collector by bytes that the user allowed beyond the defaults.
// Calls add up.
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
