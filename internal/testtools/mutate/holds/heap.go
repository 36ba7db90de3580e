package holds

import (
	"runtime"
	"runtime/metrics"
)

// Limits of memory, for inputs as package traffic makes them.
const (
	MaxAllocated = 192 << 20 // bytes, in one execution
	MaxHeap      = 512 << 20 // bytes, of all that lives
)

// Memory measures what one execution of a target allocates: a length that was
// only told, and believed, shows here.
type Memory struct {
	samples [2]metrics.Sample
	before  uint64
}

// Start begins an execution.
func (m *Memory) Start() {
	m.samples[0].Name = "/gc/heap/allocs:bytes"
	m.samples[1].Name = "/memory/classes/heap/objects:bytes"
	metrics.Read(m.samples[:1])
	m.before = m.samples[0].Value.Uint64()
}

// End fails the test if the execution has allocated too much, or if too much
// is alive.
func (m *Memory) End(t T) {
	t.Helper()
	metrics.Read(m.samples[:])
	if n := m.samples[0].Value.Uint64() - m.before; n > MaxAllocated {
		t.Fatalf("%d MiB were allocated", n>>20)
	}
	if m.samples[1].Value.Uint64() < MaxHeap {
		return
	}
	runtime.GC()
	metrics.Read(m.samples[1:])
	if n := m.samples[1].Value.Uint64(); n > MaxHeap {
		t.Fatalf("%d MiB are alive", n>>20)
	}
}
