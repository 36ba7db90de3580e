package chrometrace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const samples = "../../samples"

// event is an event of the format, with times in nanoseconds.
type event struct {
	Kind    string                     `json:"ph"`
	Process int                        `json:"pid"`
	Thread  int                        `json:"tid"`
	Time    json.Number                `json:"ts"`
	Length  json.Number                `json:"dur"`
	Name    string                     `json:"name"`
	Cat     string                     `json:"cat"`
	Scope   string                     `json:"s"`
	Args    map[string]json.RawMessage `json:"args"`
}

// nanos reads a number of microseconds that has three decimals, exactly.
func nanos(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, frac, ok := strings.Cut(n.String(), ".")
	v, err := json.Number(whole + frac).Int64()
	if !ok || len(frac) != 3 || err != nil {
		t.Fatalf("%q is not a time", n)
	}
	return v
}

type document struct {
	Unit  string `json:"displayTimeUnit"`
	Other struct {
		Schema string `json:"schema"`
		Base   string `json:"base_time"`
	} `json:"otherData"`
	Events []event `json:"traceEvents"`
}

// export writes a capture as the command does, and calls f for each
// transaction.
func export(t testing.TB, file string, f func(*Writer, *rpc.View)) ([]byte, Stats) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	var d *decode.Decoder
	w := New(&out, func() int64 { return d.Stats().First.Time })
	view := rpc.View{Names: &rpc.Names{}}
	d = decode.New(decode.Options{Observers: []decode.Observer{w.Observer()}}, func(tx *transaction.Transaction) {
		view.Set(tx)
		if err := w.Add(&view); err != nil {
			t.Fatal(err)
		}
		f(w, &view)
		view.Learn()
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), w.Stats()
}

// want is what a transaction must look like.
type want struct {
	xid    string
	total  int64
	phases map[string]int64
	ops    int
}

// TestSamples checks the file of every sample: slices of a thread are one
// within the other or apart, phases add up, and nothing is missing.
func TestSamples(t *testing.T) {
	files := sampled.Captures(t, "*")
	troubles := 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var wants []want
			b, stats := export(t, file, func(_ *Writer, v *rpc.View) {
				x := want{ops: len(v.Tx.Operations), phases: make(map[string]int64)}
				x.xid = `"0x` + string(hex8(nil, v.Tx.XID)) + `"`
				if p, ok := v.Tx.Phases(); ok {
					x.total = int64(p.Total)
					x.phases = map[string]int64{
						"call_transfer": int64(p.CallTransfer), "argument_pull": int64(p.ArgumentPull), "server": int64(p.Server),
						"result_push": int64(p.ResultPush), "reply_transfer": int64(p.ReplyTransfer),
					}
				}
				wants = append(wants, x)
			})
			if stats.LeftOut != 0 || stats.HiddenOperations != 0 || stats.Late != 0 || stats.Transactions != uint64(len(wants)) {
				t.Errorf("%+v of %d transactions", stats, len(wants))
			}
			troubles += int(stats.Events)
			check(t, b, wants)
		})
	}
	if troubles < 100 && !testing.Short() || troubles == 0 {
		t.Errorf("only %d troubles", troubles)
	}
}

// TestSame: the same capture gives the same file, also where counters end at the end of the capture.
func TestSame(t *testing.T) {
	file := filepath.Join(samples, "iwarp-nfs3-crc.pcap.zst") // several connections
	first, _ := export(t, file, func(*Writer, *rpc.View) {})
	for range 7 {
		if again, _ := export(t, file, func(*Writer, *rpc.View) {}); !bytes.Equal(first, again) {
			t.Fatal("another file")
		}
	}
}

func check(t *testing.T, b []byte, wants []want) {
	t.Helper()
	var doc document
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Unit != "ns" || doc.Other.Schema != Schema || doc.Other.Base == "" {
		t.Errorf("head: %q %+v", doc.Unit, doc.Other)
	}
	type place struct{ process, thread int }
	named := make(map[place]bool)
	threads := make(map[place][][2]int64)
	calls := make(map[int]int64)
	n, ops := 0, 0
	for i := range doc.Events {
		e := &doc.Events[i]
		at := nanos(t, e.Time)
		if at < 0 {
			t.Errorf("before the first packet: %+v", e)
		}
		p := place{e.Process, e.Thread}
		switch e.Kind {
		case "M":
			if e.Name == "thread_name" || e.Name == "process_name" {
				named[p] = true
			}
			continue
		case "C":
			if strings.HasSuffix(e.Name, "in flight") && e.Name[0] == 'c' {
				v, err := json.Number(e.Args["calls"]).Int64()
				if err != nil || v < 0 {
					t.Errorf("%+v", e)
				}
				calls[e.Process] = v
			}
			continue
		case "i":
			if e.Scope != "t" || e.Name == "" || e.Args["frame"] == nil {
				t.Errorf("%+v", e)
			}
		case "X":
			threads[p] = append(threads[p], [2]int64{at, at + nanos(t, e.Length)})
			switch e.Cat {
			case "rdma":
				ops++
			case "phase":
			default:
				if n >= len(wants) {
					t.Fatal("more transactions than there are")
				}
				w := &wants[n]
				n++
				if string(e.Args["xid"]) != w.xid || w.total != 0 && nanos(t, e.Length) != w.total {
					t.Errorf("%+v is not %+v", e, w)
				}
				phases(t, doc.Events[i+1:], at, w)
			}
		default:
			t.Errorf("kind %q", e.Kind)
		}
		if !named[p] {
			t.Errorf("thread %v has no name", p)
		}
	}
	wantOps := 0
	for _, w := range wants {
		wantOps += w.ops
	}
	if n != len(wants) || ops != wantOps {
		t.Errorf("%d of %d transactions, %d of %d operations", n, len(wants), ops, wantOps)
	}
	for p, v := range calls {
		if v != 0 {
			t.Errorf("%d calls of process %d are in flight at the end", v, p)
		}
	}
	for p, list := range threads {
		nested(t, p, list)
	}
}

// phases checks the slices that follow that of a transaction.
func phases(t *testing.T, events []event, at int64, w *want) {
	t.Helper()
	var sum int64
	for i := range events {
		e := &events[i]
		if e.Kind != "X" || e.Cat != "phase" {
			break
		}
		d := nanos(t, e.Length)
		if nanos(t, e.Time) != at || d != w.phases[e.Name] {
			t.Errorf("phase %+v of %+v", e, w)
		}
		at += d
		sum += d
	}
	if sum != w.total {
		t.Errorf("phases of %s: %d, total %d", w.xid, sum, w.total)
	}
}

// nested checks that of two slices of a thread one holds the other, or they do
// not overlap.
func nested(t *testing.T, name any, list [][2]int64) {
	t.Helper()
	slices.SortStableFunc(list, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(b[1], a[1])) })
	var open []int64
	for _, s := range list {
		for len(open) > 0 && open[len(open)-1] <= s[0] {
			open = open[:len(open)-1]
		}
		if len(open) > 0 && s[1] > open[len(open)-1] {
			t.Errorf("thread %v: a slice up to %d overlaps one up to %d", name, s[1], open[len(open)-1])
			return
		}
		open = append(open, s[1])
	}
}

func TestGolden(t *testing.T) {
	got, _ := export(t, filepath.Join(samples, "rocev2-nfs41-recall.pcap"), func(*Writer, *rpc.View) {})
	golden := filepath.Join("testdata", "recall.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update, if this is right)", golden)
	}
}

// TestLanes plays intervals, most in order, some late, and expects that no
// two of a lane overlap, and that lanes are not wasted.
func TestLanes(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		l := lanes{limit: 40}
		used := make(map[int][][2]int64)
		var all [][2]int64
		for i := range int64(400) {
			from := i * 10
			if rnd.IntN(20) == 0 {
				from = max(0, from-rnd.Int64N(300))
			}
			s := [2]int64{from, from + rnd.Int64N(100)}
			lane, ok := l.take(s[0], s[1])
			if !ok {
				t.Fatalf("seed %d: no lane", seed)
			}
			used[lane] = append(used[lane], s)
			all = append(all, s)
		}
		for lane, list := range used {
			slices.SortFunc(list, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
			for i := 1; i < len(list); i++ {
				if list[i-1][1] > list[i][0] && list[i-1] != list[i] {
					t.Errorf("seed %d: lane %d has %v and %v", seed, lane, list[i-1], list[i])
				}
			}
		}
		if len(used) > 2*most(all)+1 {
			t.Errorf("seed %d: %d lanes for %d at once", seed, len(used), most(all))
		}
	}
	l := lanes{limit: 2}
	for i, want := range []int{0, 1, -1} {
		if lane, ok := l.take(int64(i), 100); ok != (want >= 0) || ok && lane != want {
			t.Errorf("interval %d: lane %d, %v", i, lane, ok)
		}
	}
	if lane, ok := l.take(100, 100); !ok || lane != 0 {
		t.Errorf("lane %d, %v", lane, ok)
	}
}

// most is how many intervals there are at once.
func most(list [][2]int64) int {
	n := 0
	for _, a := range list {
		k := 0
		for _, b := range list {
			if b[0] <= a[0] && a[0] < b[1] {
				k++
			}
		}
		n = max(n, k)
	}
	return n
}

// TestConnectionLimit makes sure that connections without end are counted and
// not remembered.
func TestConnectionLimit(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, func() int64 { return 5 })
	for i := range maxConnections + 10 {
		c := &rdma.Connection{ID: i + 1, Fabric: rdma.RoCEv2}
		w.Event(c, 0, rdma.EventCNP, 1, rdma.Ref{Time: 7, Number: 1})
		w.Event(c, 1, 200, 1, rdma.Ref{Time: 7, Number: 1})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if s := w.Stats(); s.LeftOut != 20 || s.Events != 2*maxConnections {
		t.Errorf("%+v", s)
	}
}

func TestEmpty(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, func() int64 { return 0 })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	check(t, out.Bytes(), nil)
}

func TestAddAllocatesNothing(t *testing.T) {
	n := -1.0
	export(t, filepath.Join(samples, "rocev2-nfs41-recall.pcap"), func(w *Writer, v *rpc.View) {
		if v.Tx.XID == 0xb1466d78 { // a READ with a Write chunk and a name
			d := &w.ids[v.Tx.Connection.ID].dir[0]
			n = testing.AllocsPerRun(200, func() {
				// The same transaction again would fill slot after slot.
				d.lanes.reset()
				d.flight, d.latest = d.flight[:0], 0
				if err := w.Add(v); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	if n < 0 || n >= 1 {
		t.Errorf("%.1f allocations a transaction", n)
	}
}
