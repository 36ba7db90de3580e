package latency

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Transactions are taken without allocations once their groups are known.
func TestAddAllocations(t *testing.T) {
	lists := [][]Key{{ByOperation}, {ByClient, ByServer, ByConnection, ByFabric}, {ByFile, BySize}, {ByStatus, ByModel, ByProcedure}, {}}
	if testing.Short() {
		lists = lists[1:2]
	}
	for _, by := range lists {
		r := New(Options{By: by, Inline: DefaultInline, Top: 10})
		record(t, filepath.Join(samples, "rocev2-nfs41-recall.pcap"), Options{}, func(v *rpc.View) {
			for range 12000 {
				r.Add(v)
			}
			if n := testing.AllocsPerRun(50, func() { r.Add(v) }); n != 0 {
				t.Errorf("%v: %v allocations", by, n)
			}
		})
	}
}

// The same is true if connections are distinguished.
func TestCollectAllocations(t *testing.T) {
	c := NewCollector(Options{Inline: DefaultInline, Top: 10})
	record(t, filepath.Join(samples, "rocev2-nfs41-recall.pcap"), Options{}, func(v *rpc.View) {
		for range 12000 {
			c.Add(v)
		}
		if n := testing.AllocsPerRun(50, func() { c.Add(v) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	for _, name := range []string{"rocev2-nfs3-meta.pcap.zst", "rocev2-nfs41-mixed-load.pcap.zst"} {
		b.Run(name+"/apart", func(b *testing.B) {
			c := NewCollector(Options{Inline: DefaultInline, Top: 10})
			benchmarkAdd(b, name, c.Add)
		})
		b.Run(name, func(b *testing.B) {
			r := New(Options{Inline: DefaultInline, Top: 10})
			benchmarkAdd(b, name, func(v *rpc.View) { r.Add(v) })
		})
	}
}

// benchmarkAdd measures add. Transactions cannot be kept: each is added some times, in the order of the sample, as
// often as needed.
func benchmarkAdd(b *testing.B, name string, add func(*rpc.View)) {
	const times = 64
	var spent time.Duration
	n := 0
	for n < b.N {
		record(b, filepath.Join(samples, name), Options{}, func(v *rpc.View) {
			start := time.Now()
			for range times {
				add(v)
			}
			spent += time.Since(start)
			n += times
		})
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(n), "ns/transaction")
}
