package bench

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// repeats is how often the traffic of a sample is repeated, with sequence
// numbers and XIDs that go on.
const repeats = 10

// sample is a capture of RoCEv2 with one connection: mount, files of many
// sizes, directories, locks, unmount.
const sample = "../../samples/rocev2-nfs3-basic.pcap.zst"

// iwarpSample is the same over iWARP. It is not repeated: a decoder meets it
// once and ends.
const iwarpSample = "../../samples/iwarp-nfs40-basic.pcap.zst"

// smallSample has small packets only.
const smallSample = "../../samples/rocev2-nfs3-meta.pcap.zst"

// repeated returns the sample's traffic, n times.
func repeated(t testing.TB, n int) []byte { return repeatedBy(t, sample, n, 1) }

// repeatedBy returns the traffic of a sample, n times by each of several pairs of hosts.
func repeatedBy(t testing.TB, sample string, n, pairs int) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "repeated.pcap")
	cmd := exec.Command("go", "run", "../../internal/testtools/repeat", "-n", strconv.Itoa(n), "-pairs", strconv.Itoa(pairs), sample, out)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, text)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sideBySide decodes a capture in memory up to fields, with trackers side by side: each group of hosts by itself, or all
// in the order of the capture.
func sideBySide(t testing.TB, b []byte, trackers int, ordered bool) decode.Stats {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(b), "memory", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var v rpc.View
	opt := decode.Options{Trackers: trackers, Concurrent: true}
	if !ordered {
		opt.Group = func(int) func(*transaction.Transaction) bool {
			v := new(rpc.View)
			return func(tx *transaction.Transaction) bool {
				v.Set(tx)
				return true
			}
		}
	}
	d := decode.New(opt, func(tx *transaction.Transaction) { v.Set(tx) })
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	return d.Stats()
}

// BenchmarkTrackers has sixteen pairs of hosts followed by one tracker, and by several side by side.
func BenchmarkTrackers(b *testing.B) {
	data := repeatedBy(b, smallSample, 4, 16)
	for _, n := range []int{0, 1, 2, 4, 16} {
		b.Run(strconv.Itoa(n)+"/groups", func(b *testing.B) {
			measure(b, len(data), func() uint64 { return sideBySide(b, data, n, false).Packets })
		})
		b.Run(strconv.Itoa(n)+"/ordered", func(b *testing.B) {
			measure(b, len(data), func() uint64 { return sideBySide(b, data, n, true).Packets })
		})
	}
}

// inMemory is made once for all benchmarks.
var inMemory struct {
	once sync.Once
	b    []byte
}

func large(b *testing.B) []byte {
	inMemory.once.Do(func() { inMemory.b = repeated(b, repeats) })
	if inMemory.b == nil {
		b.Fatal("no input")
	}
	return inMemory.b
}

// unpacked returns the records of a sample.
func unpacked(b *testing.B, name string) []byte {
	b.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return pcap(b, r, func(*capture.Packet) {})
}

// pcap returns the packets of a capture as a file, after a change of each, and closes the capture.
func pcap(b *testing.B, r capture.Reader, change func(p *capture.Packet)) []byte {
	b.Helper()
	defer r.Close()
	var out bytes.Buffer
	w := capture.NewWriter(&out, capture.WriterOptions{Format: capture.Pcap})
	var batch capture.Batch
	for {
		err := r.Read(&batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		for i := range batch.Packets {
			change(&batch.Packets[i])
			if err := w.Write(&batch.Packets[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// stage is how far transactions are taken.
type stage int

const (
	transactions stage = iota // as the trackers report them
	fields                    // with RPC headers, arguments and results decoded
	lines                     // as lines of ndjson
)

// pipeline decodes a capture in memory and returns the counts.
func pipeline(t testing.TB, b []byte, s stage, concurrent bool) decode.Stats {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(b), "memory", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	v := rpc.View{Names: &rpc.Names{}}
	var e ndjson.Encoder
	var line []byte
	d := decode.New(decode.Options{Concurrent: concurrent}, func(tx *transaction.Transaction) {
		switch s {
		case fields:
			v.Set(tx)
		case lines:
			v.Set(tx)
			line = e.Append(line[:0], &v)
			v.Learn()
		}
	})
	if concurrent {
		if err := d.Run(r); err != nil {
			t.Fatal(err)
		}
		return d.Stats()
	}
	var batch capture.Batch
	for {
		err := r.Read(&batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		d.Batch(&batch)
	}
	d.Flush()
	return d.Stats()
}

// measure runs f until the time is up, and reports the cost of a packet.
func measure(b *testing.B, size int, f func() uint64) {
	b.Helper()
	b.SetBytes(int64(size))
	f() // so that caches are warm and the first growth of memory is not counted
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	packets := uint64(0)
	b.ResetTimer()
	for range b.N {
		packets += f()
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	n := float64(packets)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/packet")
	b.ReportMetric(n/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/packet")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/packet")
}

// BenchmarkDecode takes captures through the whole pipeline: records, headers,
// ICRC, connections, operations, transactions; and on to fields and to text.
func BenchmarkDecode(b *testing.B) {
	inputs := []struct {
		name string
		make func(*testing.B) []byte
	}{
		{"rocev2", large},
		{"iwarp", func(b *testing.B) []byte { return unpacked(b, iwarpSample) }},
	}
	for _, in := range inputs {
		for _, s := range []struct {
			name       string
			stage      stage
			concurrent bool
		}{
			{"transactions", transactions, false},
			{"fields", fields, false},
			{"ndjson", lines, false},
			{"concurrent", fields, true},
		} {
			b.Run(in.name+"/"+s.name, func(b *testing.B) {
				data := in.make(b)
				measure(b, len(data), func() uint64 { return pipeline(b, data, s.stage, s.concurrent).Packets })
			})
		}
	}
}

// BenchmarkWalk reads the records, finds the InfiniBand packets and checks
// their ICRCs: what the decoder's speed is compared with.
func BenchmarkWalk(b *testing.B) {
	data := large(b)
	measure(b, len(data), func() uint64 {
		r, err := capture.NewReader(bytes.NewReader(data), "memory", capture.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		var (
			batch   capture.Batch
			f       link.Frame
			c       roce.Checker
			packets uint64
		)
		for {
			err := r.Read(&batch)
			if errors.Is(err, io.EOF) {
				return packets
			}
			if err != nil {
				b.Fatal(err)
			}
			for i := range batch.Packets {
				p := &batch.Packets[i]
				packets++
				link.Decode(p.Link, p.Data, p.Length, &f)
				if f.Proto == link.UDP && f.DstPort == decode.RoCEPort && c.Check(&f) == roce.Bad {
					b.Fatal("bad ICRC")
				}
			}
		}
	})
}

// TestSteadyState checks that more traffic of the same kind costs no more
// memory. A few large messages outgrow the buffers that are kept, hence the
// allowance.
func TestSteadyState(t *testing.T) {
	short, long := repeated(t, 2), repeated(t, 8)
	small, smallLong := repeatedBy(t, smallSample, 12, 4), repeatedBy(t, smallSample, 40, 4)
	for _, s := range []struct {
		name        string
		short, long []byte
		run         func(b []byte) decode.Stats
	}{
		{"transactions", short, long, func(b []byte) decode.Stats { return pipeline(t, b, transactions, false) }},
		{"fields", short, long, func(b []byte) decode.Stats { return pipeline(t, b, fields, false) }},
		{"one processor", small, smallLong, func(b []byte) decode.Stats {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			return pipeline(t, b, fields, true)
		}},
		{"trackers", small, smallLong, func(b []byte) decode.Stats { return sideBySide(t, b, 3, true) }},
		{"groups", small, smallLong, func(b []byte) decode.Stats { return sideBySide(t, b, 3, false) }},
	} {
		t.Run(s.name, func(t *testing.T) {
			short, long := s.short, s.long
			cost := func(b []byte) (allocs, size uint64, stats decode.Stats) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				stats = s.run(b)
				runtime.ReadMemStats(&after)
				return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc, stats
			}
			cost(short)
			a1, b1, s1 := cost(short)
			a2, b2, s2 := cost(long)
			if s2.BadICRC != 0 || s2.Undecodable != 0 || s2.Transactions < 3*s1.Transactions {
				t.Fatalf("the repeated traffic is not decoded: %+v", s2)
			}
			n := float64(s2.Packets - s1.Packets)
			allocs, size := (float64(a2)-float64(a1))/n, (float64(b2)-float64(b1))/n
			t.Logf("%.5f allocations and %.2f bytes a packet", allocs, size)
			if allocs > 0.01 || size > 128 {
				t.Errorf("%.5f allocations and %.2f bytes for each of %.0f more packets", allocs, size, n)
			}
		})
	}
}
