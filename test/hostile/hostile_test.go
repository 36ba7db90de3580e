//go:build hostile

// Package hostile_test damages every sample in many ways. In all cases decoding ends, reports
// what is wrong, stays within its memory, and reports everything before the damage as if there
// were none.
package hostile_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// all damages every byte instead of some. It takes hours.
var all = flag.Bool("all", false, "cut each sample at every length and flip every byte")

// rounds is how many cuts and how many flips are tried of each sample.
const rounds = 150

func samples(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../../samples/*.pcap*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples (%v)", err)
	}
	m := make(map[string][]byte)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(f) == ".zst" {
			d, err := zstd.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if b, err = io.ReadAll(d); err != nil {
				t.Fatal(err)
			}
			d.Close()
		}
		m[filepath.Base(f)] = b
	}
	return m
}

// result is what was decoded of a capture.
type result struct {
	lines    []string // one for each transaction
	problems int
	err      error
}

// run decodes a capture and everything that can be shown of it.
func run(b []byte) result {
	var r result
	reader, err := capture.NewReader(bytes.NewReader(b), "damaged", capture.Options{})
	if err != nil {
		r.err = err
		return r
	}
	defer reader.Close()
	var (
		enc    ndjson.Encoder
		lister text.Lister
		tree   = text.Tree{Level: 2, Hex: true}
		line   []byte
		shown  []byte
	)
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		line = enc.Append(line[:0], &v)
		shown = lister.Append(shown[:0], &v)
		shown = tree.Append(shown[:0], &v)
		v.Learn()
		r.lines = append(r.lines, string(line))
		if p, ok := tx.Phases(); ok && p.Divided() && p.CallTransfer+p.ArgumentPull+p.Server+p.ResultPush+p.ReplyTransfer != p.Total {
			r.err = fmt.Errorf("xid %08x: phases do not sum to the total", tx.XID)
		}
	})
	var batch capture.Batch
	for {
		err := reader.Read(&batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.problems++
			break
		}
		d.Batch(&batch)
	}
	d.Flush()
	_, n := reader.Problems()
	r.problems += n
	return r
}

func TestCut(t *testing.T) {
	for name, b := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := run(b)
			if whole.err != nil || whole.problems != 0 {
				t.Fatalf("undamaged: %v, %d problems", whole.err, whole.problems)
			}
			for n := range positions(len(b)) {
				r := run(b[:n])
				if r.err != nil && n > 24 {
					t.Fatalf("cut at %d: %v", n, r.err)
				}
				if len(r.lines) > len(whole.lines)+1 {
					t.Fatalf("cut at %d: %d transactions, %d in the whole", n, len(r.lines), len(whole.lines))
				}
			}
		})
	}
}

func TestFlip(t *testing.T) {
	for name, b := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			damaged := bytes.Clone(b)
			for n := range positions(len(b)) {
				mask := byte(1 << (n % 8))
				if n%3 == 0 {
					mask = 0xff
				}
				damaged[n] ^= mask
				if r := run(damaged); r.err != nil && n >= 256 {
					t.Fatalf("byte %d ^ %#x: %v", n, mask, r.err)
				}
				damaged[n] ^= mask
			}
		})
	}
}

// TestMemory damages the payloads of a sample thoroughly, and compares the memory that is in
// use afterwards with a bound.
func TestMemory(t *testing.T) {
	for name, b := range samples(t) {
		rnd := rand.New(rand.NewPCG(1, uint64(len(b))))
		damaged := bytes.Clone(b)
		for range len(b) / 200 {
			damaged[24+rnd.IntN(len(b)-24)] ^= byte(1 + rnd.IntN(255))
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		run(damaged)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
			t.Errorf("%s: %d MiB allocated for a capture of %d KiB", name, n>>20, len(b)>>10)
		}
	}
}

// positions chooses where to damage n bytes: all, or a fixed choice of them
// with the beginning as its main part.
func positions(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		if *all {
			for i := range n {
				if !yield(i) {
					return
				}
			}
			return
		}
		rnd := rand.New(rand.NewPCG(2, uint64(n)))
		for i := range rounds {
			at := rnd.IntN(n)
			if i < rounds/4 {
				at = rnd.IntN(min(n, 4096))
			}
			if !yield(at) {
				return
			}
		}
	}
}
