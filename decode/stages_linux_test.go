package decode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
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
// little. The file is copied from the page cache by other goroutines (capture.Options.Ahead): that is measured by itself, on one thread
// and on as many side by side as there are copiers. Reading, sorting and merging are done by one goroutine at a time each; copying is
// divided among the copiers, and dissecting and tracking among the trackers. Then the same runs with
// 16 trackers on 16 threads: what it takes more is the price of handing over, and of copying side by side. With n processors, the model has the time of
// the longest of
//
//   - each of the stages that are not divided
//   - what each copier takes
//   - 1/n of all stages together, and of the price
//
// and the gain is what all stages take together, with one copier, divided by that.
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

// copiers is how many goroutines copy the file, as rpcrdma-dump has with eight trackers and processors or more.
const copiers = 2

// copying is the time that copying a file from the page cache takes of threads side by side, all together. A thread copies some blocks, the
// next one those behind them.
func copying(b *testing.B, name string, threads int) int64 {
	const block, together = 82 << 10, 3 // some 512 small packets, as long as blocks are
	f, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var sum atomic.Int64
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var memory [together * 2][block]byte
			before := spent(b, ofThread)
			var err error
			for n := 0; err == nil; n++ {
				at := n/together*together*threads + i*together + n%together
				_, err = f.ReadAt(memory[n%len(memory)][:], int64(at)*block)
			}
			sum.Add(spent(b, ofThread) - before)
		})
	}
	wg.Wait()
	return sum.Load()
}

func stages(b *testing.B, name string, ordered bool) {
	open := func() capture.Reader {
		r, err := capture.Open([]string{name}, capture.Options{Ahead: copiers})
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
	parallel, beside := int64(0), int64(0)
	for b.Loop() {
		r := open()
		d := sideBySide(16, ordered)
		d.RunInTurn(r, 16, 0)
		r.Close()
		packets += float64(d.Stats().Packets)
		took["copy"] += copying(b, name, 1)
		beside += copying(b, name, copiers)

		r = open()
		before, procs := spent(b, ofProcess), runtime.GOMAXPROCS(16)
		if err := sideBySide(16, ordered).Run(r); err != nil {
			b.Fatal(err)
		}
		runtime.GOMAXPROCS(procs)
		parallel += spent(b, ofProcess) - before
		r.Close()
	}
	total := 0.0
	serial := float64(beside) / packets / copiers
	b.ReportMetric(copiers, "copiers")
	b.ReportMetric(serial, "ns-copier")
	for stage, ns := range took {
		each := float64(ns) / packets
		b.ReportMetric(each, "ns-"+stage)
		total += each
		if stage != "track" && stage != "copy" {
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
