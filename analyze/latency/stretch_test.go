package latency

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestStretch reports on the first transactions of samples, with stretches and without, so that a report begins within some.
func TestStretch(t *testing.T) {
	stretched, rounds := 0, 15
	if testing.Short() {
		rounds = 2
	}
	for _, file := range sampleFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(4, 81))
			for _, opt := range []Options{{Top: 3, Inline: DefaultInline}, {Top: 3, Inline: []uint32{150, 4096}, Ran: true, Interval: 20e6}} {
				for range rounds {
					stretched += stretchedIn(t, file, opt, 1+rng.IntN(900), rng)
				}
			}
		})
	}
	if stretched < rounds/3 {
		t.Errorf("a report began within a stretch %d times", stretched)
	}
}

// stretchedIn compares reports on the first most transactions of a file. It returns 1 if the report begins within a stretch.
func stretchedIn(t *testing.T, file string, opt Options, most int, rng *rand.Rand) (within int) {
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	short, full := New(opt), New(opt)
	full.calms = false
	v := rpc.View{Names: &rpc.Names{}}
	var d *decode.Decoder
	d = decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		if most == 0 {
			return
		}
		if took, ok := tx.Ordinary(); ok && rng.IntN(50) > 0 {
			tx.NewOrdinary(took)
		} else if ok {
			tx.NewBlame().Shares[transaction.PhaseServer][rdma.CauseRecovery] = took
		}
		switch rng.IntN(200) {
		case 0:
			tx.Credits = 9
		case 1:
			tx.Slots = 9
		}
		v.Set(tx)
		if a, b := short.Add(&v), full.Add(&v); a != b {
			t.Fatalf("group %d, and %d in full", a, b)
		}
		if most--; most == 0 {
			d.Stop()
		}
	})
	if err := d.Run(in); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if short.stretch.n > 0 {
		within = 1
	}
	var out [2]string
	for i, r := range []*Recorder{short, full} {
		b, err := json.Marshal(r.Report(Source{}))
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(b)
	}
	if out[0] != out[1] {
		t.Fatalf("\n%s\nin full\n%s", out[0], out[1])
	}
	return within
}
