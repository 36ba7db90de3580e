package parquet

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzUsual writes the transactions of changed captures, as if nothing had been lost, with rows that are counted and with each row at once.
// The files are the same.
func FuzzUsual(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), uint8(0), []byte{})
		f.Add(uint8(i), uint8(1), []byte{})
	}
	f.Fuzz(func(t *testing.T, which, size uint8, program []byte) { alike(t, which, size, program) })
}

func alike(t *testing.T, which, size uint8, program []byte) (usual int) {
	t.Helper()
	var short, full bytes.Buffer
	group := (1 + int(size)) << 10
	a, b := NewSmallWriter(&short, nil, group), NewSmallWriter(&full, nil, group)
	holds.Each(t, traffic.Apply(which, program), decode.Options{}, func(v *rpc.View) {
		if p, ok := v.Tx.Phases(); ok && p.Divided() {
			v.Tx.NewQuiet(&p)
		}
		if err := a.Add(v); err != nil {
			t.Fatal(err)
		}
		if e := &a.enc; e.done[bunchCalled] < e.begun && e.done[bunchUnusual] < e.begun {
			usual++
		}
		long(t, b, v)
	})
	for _, w := range []*Writer{a, b} {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(short.Bytes(), full.Bytes()) {
		t.Fatalf("%d and %d bytes, which differ", short.Len(), full.Len())
	}
	return usual
}

// long writes a transaction without what is known of those before.
func long(t *testing.T, w *Writer, v *rpc.View) {
	t.Helper()
	if v.Tx.Blame != nil {
		v.Tx.Blame.Quiet = false
	}
	if err := w.Add(v); err != nil {
		t.Fatal(err)
	}
	e := &w.enc
	e.flush()
	e.parties, e.calls, e.places = [64]party{}, [32]procedure{}, [rpc.Places]placed{}
	e.kinds, e.compounds = compound.Kinds{}, [compound.Most]operated{}
}

// TestUsualFiles writes the transactions of a capture with names in both ways, several times, into row groups of all sizes, and changes
// what they are about.
func TestUsualFiles(t *testing.T) {
	for _, group := range []int{1 << 10, 3 << 10, 100 << 10} {
		var short, full bytes.Buffer
		a, b := NewSmallWriter(&short, nil, group), NewSmallWriter(&full, nil, group)
		random := rand.New(rand.NewPCG(uint64(group), 7))
		for round := range 3 {
			v := rpc.View{Names: &rpc.Names{}}
			d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
				v.Set(tx)
				if f := v.File(); f != nil {
					holds.ChangeFile(random, f)
				}
				if p, ok := tx.Phases(); ok && p.Divided() {
					tx.NewQuiet(&p)
				}
				if err := a.Add(&v); err != nil {
					t.Error(err)
				}
				long(t, b, &v)
				v.Learn()
			})
			r, err := capture.Open([]string{filepath.Join("..", "..", "samples", "rocev2-nfs3-meta.pcap.zst")}, capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Run(r); err != nil {
				t.Fatal(err)
			}
			r.Close()
			if round < 2 {
				continue
			}
			for _, w := range []*Writer{a, b} {
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !bytes.Equal(short.Bytes(), full.Bytes()) || short.Len() == 0 {
			t.Errorf("groups of %d bytes: %d and %d bytes, which differ", group, short.Len(), full.Len())
		}
	}
}

func TestUsual(t *testing.T) {
	usual := 0
	for i := range traffic.Count() {
		usual += alike(t, uint8(i), uint8(i), nil)
	}
	t.Logf("%d rows are usual", usual)
	if usual == 0 {
		t.Error("none")
	}
}
