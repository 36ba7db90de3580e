package latency

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// calmly compares a Recorder that sums up calm transactions with one that does not; each transaction is added again times. It
// returns how many were calm.
func calmly(t *testing.T, which uint8, program []byte, opt Options, again int) (calm int) {
	t.Helper()
	short, full := New(opt), New(opt)
	full.calms = false
	view := rpc.View{Names: &rpc.Names{}}
	n := 0
	d := decode.New(decode.Options{Observer: short.Observer(), Closed: func(c *rdma.Connection) {
		short.Closed(c)
		full.Closed(c)
	}}, func(tx *transaction.Transaction) {
		var p transaction.Phases
		if tx.SetPhases(&p) && tx.XID%8 != 0 { // as package blame does it
			switch tx.XID % 8 {
			case 1:
				tx.NewBlame().Shares[transaction.PhaseServer][rdma.CauseRecovery] = p.Total
			case 2:
				tx.Credits = 7
				tx.NewQuiet(&p)
			case 3:
				tx.NewQuiet(&p)
			default:
				if took, ok := tx.Ordinary(); ok {
					tx.NewOrdinary(took)
				} else {
					tx.NewQuiet(&p)
				}
			}
		}
		view.Set(tx)
		if _, ok := tx.Calm(); ok {
			calm++
		}
		for range again {
			if a, b := short.Add(&view), full.Add(&view); a != b {
				t.Fatalf("group %d, and %d in full", a, b)
			}
		}
		view.Learn()
		if n++; n%7 == 0 { // as a live view does it
			a, b := short.Groups(), full.Groups()
			if len(a) != len(b) {
				t.Fatalf("%d groups, and %d in full", len(a), len(b))
			}
			for i := range a {
				if !reflect.DeepEqual(a[i], b[i]) {
					t.Fatalf("capture %d, program %v: group %+v, in full %+v", which, program, a[i], b[i])
				}
			}
		}
	})
	traffic.Run(d, traffic.Apply(which, program), 64)
	full.wire.kinds, full.wire.events = short.wire.kinds, short.wire.events
	var out [2][]byte
	for i, r := range []*Recorder{short, full} {
		var err error
		if out[i], err = json.MarshalIndent(r.Report(Source{}), "", " "); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out[0], out[1]) {
		a, b := bytes.Split(out[0], []byte("\n")), bytes.Split(out[1], []byte("\n"))
		for i := range b {
			if i >= len(a) || !bytes.Equal(a[i], b[i]) {
				t.Fatalf("capture %d, program %v, line %d:\n%s\nin full\n%s", which, program, i, a[min(i, len(a)-1)], b[i])
			}
		}
		t.Fatal("more than in full")
	}
	return calm
}

// calmOptions are some ways to report.
var calmOptions = []Options{
	{Top: 5, Inline: DefaultInline},
	{Top: 1, By: []Key{ByConnection, ByStatus}, Inline: []uint32{4096, 100, 0}, Ran: true, Interval: 1e6},
	{By: []Key{}, Memory: 1 << 16},
	{Unordered: true, Inline: DefaultInline},
	{Top: 3, Ran: true, Inline: []uint32{100, 4096}},
}

// TestCalm reports on captures as they are and changed at random.
func TestCalm(t *testing.T) {
	calm := 0
	for which := range traffic.Count() {
		rng := rand.New(rand.NewPCG(uint64(which), 17))
		for round := range calmOptions {
			var program []byte
			for range 5 * round {
				program = append(program, byte(rng.Uint32()))
			}
			calm += calmly(t, uint8(which), program, calmOptions[round], 1+round*round)
		}
	}
	if calm < 100 {
		t.Errorf("%d transactions were calm", calm)
	}
}

// TestCalmOften adds so many equal transactions that counters of 8 bits overflow.
func TestCalmOften(t *testing.T) {
	again := 70000
	if testing.Short() {
		again = 700
	}
	for which := range min(traffic.Count(), 3) {
		calmly(t, uint8(which), nil, calmOptions[0], again/(1+which))
	}
}

func FuzzCalm(f *testing.F) {
	for which := range traffic.Count() {
		f.Add(uint8(which), uint8(which), uint16(which), []byte{})
	}
	f.Add(uint8(0), uint8(0), uint16(49), []byte{1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, which, opt uint8, again uint16, program []byte) {
		calmly(t, which, program, calmOptions[int(opt)%len(calmOptions)], 1+int(again%50))
	})
}

// TestFailCalm compares failures that are counted together with those that are counted one by one.
func TestFailCalm(t *testing.T) {
	for _, most := range []int{1, 2, maxStatuses - 1, maxStatuses, 2 * maxStatuses} {
		var a group
		var b Counts
		for range 2000 {
			s := strconv.Itoa(rand.IntN(most))
			if rand.IntN(20) == 0 {
				s = ""
			}
			for range rand.IntN(3) {
				a.failCalm(s)
				b.fail(s)
			}
			if rand.IntN(100) == 0 {
				a.failCalm(otherName)
				b.fail(otherName)
			}
		}
		a.calm.n = 1
		m := memory{limit: 1 << 20}
		a.settleCalm(&m)
		if a.Errors != b.Errors || !reflect.DeepEqual(a.Statuses, b.Statuses) {
			t.Errorf("%d statuses: %d errors, %v; want %d, %v", most, a.Errors, a.Statuses, b.Errors, b.Statuses)
		}
	}
}
