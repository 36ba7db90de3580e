package monitor

import (
	"bytes"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/internal/mutate/holds"
	changed "github.com/rpcrdma/toolkit/internal/mutate/traffic"
)

// FuzzModel feeds changed captures to the state behind the live view, and looks
// at it in between.
func FuzzModel(f *testing.F) {
	for i := range changed.Count() {
		f.Add(uint8(i), uint8(i), []byte{})
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := changed.Apply(which, program)
		for i := range packets {
			packets[i].Data = bytes.Clone(packets[i].Data) // the model's batches may be kept
		}
		memory.Start()
		m := New(Options{
			Interval: time.Duration(1+how&7) * 10 * time.Millisecond, History: 4, Linger: time.Duration(how&8) * time.Millisecond, Packets: 20,
			Groups: how&16 != 0,
		})
		most := 0
		look := func() {
			s := m.Snapshot()
			if s == nil {
				t.Fatal("no snapshot")
			}
			most++
		}
		for len(packets) > 0 {
			n := min(len(packets), 1+int(how>>5)*4)
			m.Packets(packets[:n])
			packets = packets[n:]
			if most < 3 {
				look()
			}
		}
		m.Flush(nil)
		look()
		if m.Report(latency.Source{}) == nil {
			t.Fatal("no report")
		}
		memory.End(t)
	})
}
