package decode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	shown "github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Clocks of processor time, of <time.h>.
const (
	ofProcess = 2
	ofThread  = 3
)

// spent is processor time in nanoseconds.
func spent(b *testing.B, clock uintptr) int64 {
	var t syscall.Timespec
	if _, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); e != 0 {
		b.Fatal(e)
	}
	return t.Nano()
}

// BenchmarkStages measures the stages of decoding with trackers side by side, and computes from them what more processors
// than there are can gain. RPCRDMA_PAIRS names a capture with many pairs of hosts, which internal/testtools/repeat makes; otherwise
// it is a sample with one, for which the model makes no sense but runs.
//
//	go run ./internal/testtools/repeat -n 40 -pairs 16 samples/rocev2-nfs3-meta.pcap.zst pairs.pcap
//	RPCRDMA_PAIRS=$PWD/pairs.pcap go test -run '^$' -bench Stages -benchtime 3x ./decode
//
// Each stage takes its turn on one thread, whose processor time is measured, so that other load on the machine matters
// little. Reading, sorting and merging are done by one goroutine at a time each; dissecting and tracking are divided among
// the trackers. Then the same runs with 16 trackers on 16 threads: what it takes more is the price of handing over. With n
// processors, the model has the time of the longest of
//
//   - each of the stages that are not divided
//   - 1/n of all stages together, and of the price
//
// and the gain is what all stages take together, divided by that.
func BenchmarkStages(b *testing.B) {
	name := os.Getenv("RPCRDMA_PAIRS")
	if name == "" {
		name = filepath.Join("..", "samples", "rocev2-nfs3-meta.pcap.zst")
	}
	for _, ordered := range []bool{false, true} {
		b.Run(map[bool]string{false: "groups", true: "ordered"}[ordered], func(b *testing.B) { stages(b, name, ordered) })
	}
}

// sideBySide makes a decoder whose transactions are decoded by group, or in order.
func sideBySide(trackers int, ordered bool) *decode.Decoder {
	opt := decode.Options{Trackers: trackers}
	if !ordered {
		opt.Group = func(int) func(*transaction.Transaction) bool {
			v := new(shown.View)
			return func(tx *transaction.Transaction) bool {
				v.Set(tx)
				return true
			}
		}
	}
	var v shown.View
	return decode.New(opt, func(tx *transaction.Transaction) { v.Set(tx) })
}

func stages(b *testing.B, name string, ordered bool) {
	open := func() capture.Reader {
		r, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := make(map[string]int64)
	last := int64(0)
	decode.Lap = func(stage string) {
		now := spent(b, ofThread)
		if stage != "" {
			took[stage] += now - last
		}
		last = now
	}
	defer func() { decode.Lap = nil }()
	packets := 0.0
	parallel := int64(0)
	for b.Loop() {
		r := open()
		d := sideBySide(16, ordered)
		d.RunInTurn(r, 16, 0)
		r.Close()
		packets += float64(d.Stats().Packets)

		r = open()
		before, procs := spent(b, ofProcess), runtime.GOMAXPROCS(16)
		if err := sideBySide(16, ordered).Run(r); err != nil {
			b.Fatal(err)
		}
		runtime.GOMAXPROCS(procs)
		parallel += spent(b, ofProcess) - before
		r.Close()
	}
	total, serial := 0.0, 0.0
	for stage, ns := range took {
		each := float64(ns) / packets
		b.ReportMetric(each, "ns-"+stage)
		total += each
		if stage != "track" {
			serial = max(serial, each)
		}
	}
	price := max(float64(parallel)/packets-total, 0)
	b.ReportMetric(price, "ns-price")
	for _, n := range []float64{2, 4, 8, 16} {
		b.ReportMetric(total/max(serial, (total+price)/n), fmt.Sprintf("gain-%.0f", n))
	}
	b.ReportMetric(0, "ns/op") // says nothing
}
