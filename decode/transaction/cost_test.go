package transaction_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// loads are kinds of steady traffic.
var loads = []struct {
	name   string
	config rocetest.Config
}{
	{"small RPCs", rocetest.Config{Seed: 1, CM: true, Calls: 8_000, Kinds: []rocetest.Kind{rocetest.Small}, StayOpen: true}},
	{"Writes of 4 KiB packets", rocetest.Config{
		Seed: 1, CM: true, Calls: 150, MTU: 4096, Data: 1 << 20, Transfer: 1 << 20, Segment: 1 << 17,
		Kinds: []rocetest.Kind{rocetest.ReadData}, StayOpen: true,
	}},
	{"Reads of 4 KiB packets", rocetest.Config{
		Seed: 1, CM: true, Calls: 150, MTU: 4096, Data: 1 << 20, Transfer: 20480, Segment: 1 << 17,
		Kinds: []rocetest.Kind{rocetest.WriteData}, StayOpen: true,
	}},
	{"all kinds", rocetest.Config{Seed: 1, CM: true, Calls: 2000, Callbacks: 50, Invalidate: true, MTU: 1024, StayOpen: true}},
}

// TestNoAllocations wants a long stream to be tracked without a single allocation, once the memory that it needs is there:
// also if the packets of transactions are listed and told.
func TestNoAllocations(t *testing.T) {
	for _, l := range loads {
		records := rocetest.Make(l.config).Taps[0]
		noAllocations(t, l.name, records, transaction.Options{})
		noAllocations(t, l.name, records, transaction.Options{Packets: 600, Attribute: func(*transaction.Transaction, *transaction.Packet) {}})
	}
}

func noAllocations(t *testing.T, name string, records []rocetest.Record, opt transaction.Options) {
	tx := transaction.NewTracker(opt, func(*transaction.Transaction) {})
	f := rocetest.Feeder{Tracker: roce.NewTracker(tx, tx.Hooks(), new(rdma.Numbers), roce.Limits{})}
	at := len(records) * 3 / 4
	for i := range at {
		f.Feed(&records[i])
	}
	const runs = 20
	step := (len(records) - at) / (runs + 2)
	least := 1e9
	most := 0.0
	for range runs {
		n := testing.AllocsPerRun(1, func() {
			for range step / 2 {
				f.Feed(&records[at])
				at++
			}
		})
		least, most = min(least, n), max(most, n)
	}
	// Maps clean up from time to time.
	if least != 0 || most > float64(step)/20 {
		t.Errorf("%s: %v to %v allocations for %d packets", name, least, most, step/2)
	}
}

func BenchmarkTrackers(b *testing.B) {
	for _, l := range loads {
		b.Run(l.name, func(b *testing.B) {
			records := rocetest.Make(l.config).Taps[0]
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				b.StopTimer()
				tx := transaction.NewTracker(transaction.Options{}, func(*transaction.Transaction) {})
				f := rocetest.Feeder{Tracker: roce.NewTracker(tx, tx.Hooks(), new(rdma.Numbers), roce.Limits{})}
				b.StartTimer()
				f.All(records)
				tx.Flush()
				n += len(records)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/packet")
		})
	}
}
