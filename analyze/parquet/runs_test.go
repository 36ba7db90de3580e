package parquet

import (
	"bytes"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzUsual writes the transactions of changed captures, as if nothing had been lost, with rows that are counted and with each row at once.
// The row groups are the same; for a quarter of the sizes, all of the files. 60 packets are enough for all kinds of rows, and leave
// time for many tries.
func FuzzUsual(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), uint8(i), []byte{})
	}
	var pairs pairs
	f.Fuzz(func(t *testing.T, which, size uint8, program []byte) {
		pairs.alike(t, which, size, program, 60, size/4%4 == 0)
	})
}

// pair is two writers with what they write.
type pair struct {
	counted, each         *Writer
	countedFile, eachFile bytes.Buffer
}

// pairs are for row groups of 1, 4, 16 and 64 KB. They are used again: to make writers takes longer than to write most files.
type pairs [4]*pair

// begin begins two files. Their writers know nothing of the files before.
func (all *pairs) begin(size uint8) *pair {
	size %= uint8(len(all))
	p := all[size]
	if p == nil {
		p = &pair{}
		p.counted, p.each = NewSmallWriter(&p.countedFile, nil, 1<<10<<(2*size)), NewSmallWriter(&p.eachFile, nil, 1<<10<<(2*size))
		all[size] = p
	}
	for w, file := range map[*Writer]*bytes.Buffer{p.counted: &p.countedFile, p.each: &p.eachFile} {
		file.Reset()
		w.Reset(file)
		w.enc = encoder{rows: w.enc.rows}
		forget(&w.enc)
	}
	return p
}

func (all *pairs) alike(t *testing.T, which, size uint8, program []byte, most int, whole bool) (usual int) {
	t.Helper()
	p := all.begin(size)
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		if ph, ok := tx.Phases(); ok && ph.Divided() {
			tx.NewClean(&ph)
		}
		v.Set(tx)
		if err := p.counted.Add(&v); err != nil {
			t.Fatal(err)
		}
		if e := &p.counted.enc; e.runs[fields.OfProgram].rows > 0 && e.rowsAlike > 0 {
			usual++
		}
		long(t, p.each, &v)
		v.Learn()
	})
	packets := traffic.Apply(which, program)
	traffic.Run(d, packets[:min(len(packets), most)], 16)
	for _, w := range []*Writer{p.counted, p.each} {
		end := w.w.Flush
		if whole {
			end = w.Close
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(p.countedFile.Bytes(), p.eachFile.Bytes()) {
		if !whole {
			t.Fatalf("%d and %d bytes, which differ", p.countedFile.Len(), p.eachFile.Len())
		}
		differ(t, p.countedFile.Bytes(), p.eachFile.Bytes())
	}
	return usual
}

// long writes a transaction without what is known of those before.
func long(t *testing.T, w *Writer, v *rpc.View) {
	t.Helper()
	if v.Tx.Blame != nil {
		v.Tx.Blame.Clean = false
	}
	if err := w.Add(v); err != nil {
		t.Fatal(err)
	}
	e := &w.enc
	e.flush()
	forget(e)
}

// forget forgets what is known of rows before.
func forget(e *encoder) {
	for i := range e.runs {
		e.runs[i].values = nil
	}
	e.alike = 0
	e.parties, e.party, e.places = [64]party{}, nil, [rpc.Places]placed{}
	e.kinds, e.compounds = compound.Kinds{}, [compound.Most]operated{}
}

// TestUsualFiles writes the transactions of a capture with names in both ways, several times, into row groups of all sizes, and changes
// what they are about.
func TestUsualFiles(t *testing.T) {
	groups := []int{1 << 10, 3 << 10, 100 << 10}
	if testing.Short() {
		groups = groups[1:2]
	}
	for _, group := range groups {
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
					tx.NewClean(&p)
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
	var pairs pairs
	usual := 0
	for i := range traffic.Count() {
		usual += pairs.alike(t, uint8(i), uint8(i), nil, math.MaxInt, true)
	}
	t.Logf("%d rows are usual", usual)
	if usual == 0 {
		t.Error("none")
	}
}
