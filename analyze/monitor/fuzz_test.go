package monitor

import (
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
		n := 0
		for i := range packets {
			n += len(packets[i].Data)
		}
		data := make([]byte, 0, n)
		for i := range packets {
			// The model's batches may be kept.
			data = append(data, packets[i].Data...)
			packets[i].Data = data[len(data)-len(packets[i].Data) : len(data) : len(data)]
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
			if most < 1 {
				look()
			}
		}
		m.Flush(nil)
		look()
		// A report takes as long as some ten packets.
		if len(program)%4 == 0 && m.Report(latency.Source{}) == nil {
			t.Fatal("no report")
		}
		memory.End(t)
	})
}
