package resume

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

var (
	captures = flag.String("captures", "", "directory with more captures")
	rounds   = flag.Int("rounds", 1, "how often each capture is cut")
	seed     = flag.Uint64("seed", 1, "of the places where captures are cut")
)

// all reads a capture.
func all(t testing.TB, name string) []capture.Packet {
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []capture.Packet
	var b capture.Batch
	for {
		if err := r.Read(&b); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			out = append(out, p)
		}
	}
}

// variant is a way to decode.
type variant struct {
	name  string
	opt   func() decode.Options
	blame bool
}

var variants = []variant{
	{"full", func() decode.Options { return decode.Options{} }, true},
	{"traced", func() decode.Options {
		return decode.Options{
			Memory: 1 << 20, Clock: decode.ClockERSPAN,
			Transactions: transaction.Options{OnCompletion: true, KeepData: true, Packets: 64},
		}
	}, false},
	{"concurrent", func() decode.Options { return decode.Options{Concurrent: true} }, true},
}

// decoder is a decoder with all that is beside it.
type decoder struct {
	d     *decode.Decoder
	names rpc.Names
	list  text.Lister
	parts []decode.StatePart
	out   *record
	slots *session.Recorder // nil without blame

	// With keeps, what text is slow to make of is kept as it is.
	keeps  bool
	kept   []details
	closed []end
}

// details are what is known of a transaction besides its lines.
type details struct {
	packets        []transaction.Packet
	troubles       []transaction.Trouble
	operations     []transaction.Operation
	times          transaction.Timeline
	credits, slots time.Duration
}

func keep(tx *transaction.Transaction) details {
	return details{slices.Clone(tx.Packets), slices.Clone(tx.Troubles), slices.Clone(tx.Operations), tx.Times, tx.Credits, tx.Slots}
}

// end is a connection that has ended.
type end struct {
	rdma.Connection
	calls any
	into  int
}

// record is a text of which the beginning is kept, and a checksum of all.
type record struct {
	bytes.Buffer
	sum hash.Hash
}

const recorded = 4 << 20

func (r *record) Write(p []byte) (int, error) {
	if r.sum == nil {
		r.sum = sha256.New()
	}
	if r.Len() < recorded {
		r.Buffer.Write(p)
	}
	return r.sum.Write(p)
}

func (r *record) text() string {
	if r.sum == nil {
		return ""
	}
	return fmt.Sprintf("%s\n%x\n", r.Buffer.String(), r.sum.Sum(nil))
}

// watch writes what an Observer sees.
type watch struct {
	out  *record
	line []byte
}

// event writes a line of numbers.
func (w *watch) event(name string, numbers ...int64) {
	b := append(w.line[:0], name...)
	for _, n := range numbers {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	w.line = append(b, '\n')
	_, _ = w.out.Write(w.line)
}

func (w *watch) Send(c *rdma.Connection, s *rdma.Send) {
	w.event("send", int64(c.ID), int64(s.From), int64(s.Length), int64(len(s.Data)), int64(s.First.Number), int64(s.Last.Number), int64(s.Packets), int64(s.Again))
}

func (w *watch) OpStart(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	w.event("op", int64(c.ID), int64(op.Kind), int64(op.From), int64(op.Handle), int64(op.Offset), int64(op.Length), int64(ref.Number), ref.Time)
}

func (w *watch) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	w.event("data", int64(c.ID), int64(op.Handle), int64(f.Offset), int64(f.Length), number(f.Again), number(f.Last), int64(f.Ref.Number), f.Ref.Time)
}

func (w *watch) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	w.event("event", int64(c.ID), int64(from), int64(e), int64(value), int64(ref.Number), ref.Time)
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (v *variant) new(out, events *record) *decoder {
	x := &decoder{out: out}
	opt := v.opt()
	w := &watch{out: events}
	opt.Observe(decode.Observer{Send: w.Send, OpStart: w.OpStart, OpData: w.OpData, Event: w.Event})
	opt.Observe(decode.Observer{Closed: func(c *rdma.Connection) {
		k := c.Copy()
		if x.keeps {
			x.closed = append(x.closed, end{k, transaction.CallsOf(c), c.Resolve().ID})
			return
		}
		tunnel := k.Tunnel
		k.Tunnel, k.MergedInto = nil, nil
		fmt.Fprintf(events, "closed %+v %+v %v %v\n", k, tunnel, c.Resolve().ID, transaction.CallsOf(c))
	}})
	x.parts = []decode.StatePart{&x.names, &x.list}
	if v.blame {
		b := blame.Lean(fabric.DefaultMemory)
		slots := session.New(nil)
		slots.Live()
		x.slots = slots
		opt.Observe(b.Recorder.Observer())
		opt.Observe(slots.Observer())
		opt.Transactions.Ended = func(tx *transaction.Transaction) {
			b.Ended(tx)
			slots.Ended(tx)
		}
		x.parts = append(x.parts, b.Recorder, slots)
	}
	var e ndjson.Encoder
	var line []byte
	view := rpc.View{Names: &x.names}
	x.d = decode.New(opt, func(tx *transaction.Transaction) {
		view.Set(tx)
		line = append(e.Append(line[:0], &view), '\n')
		line = append(x.list.Append(line, &view), '\n')
		_, _ = out.Write(line)
		if x.keeps {
			x.kept = append(x.kept, keep(tx))
		} else {
			for i := range tx.Packets {
				fmt.Fprintln(out, tx.Packets[i])
			}
			fmt.Fprintln(out, tx.Troubles, tx.Times, tx.Operations, tx.Credits, tx.Slots)
		}
		view.Learn()
	})
	return x
}

// verdict is what there is to know at the end. The memory that is used shows that even capacities are restored;
// where transactions go to another goroutine, it depends on how many are on their way.
func (x *decoder) verdict(v *variant) string {
	s := fmt.Sprintf("%+v\n%+v\n%+v\nnames forgotten %d", x.d.Stats(), x.d.Account(), x.d.Orphans(), x.names.Forgotten)
	if x.slots != nil {
		uses, rest := x.slots.Uses(x.d.Stats().Last.Time, 100)
		s += fmt.Sprintf("\nsessions %+v %d", uses, rest)
	}
	if m := x.d.Memory(); !v.opt().Concurrent {
		s += fmt.Sprintf(", memory %d %d %d", m.Used(), m.Peak(), m.Evicted())
	}
	return s
}

// measured is what states cost.
type measured struct {
	states     int
	size, most int
	save, load time.Duration
}

// decodeCut decodes packets, and saves and restores at each of cuts.
// Now and then it is the first decoder that goes on.
func decodeCut(t testing.TB, v *variant, packets []capture.Packet, batch int, cuts []int, m *measured) (out, events string) {
	t.Helper()
	var o, e record
	x := v.new(&o, &e)
	at := 0
	for _, cut := range append(slices.Clone(cuts), len(packets)) {
		r := &traffic.Reader{Packets: packets[at:cut], Batch: batch}
		at = cut
		if at == len(packets) {
			if err := x.d.Run(r); err != nil {
				t.Fatal(err)
			}
			break
		}
		if err := x.d.Feed(r); err != nil {
			t.Fatal(err)
		}
		var state bytes.Buffer
		start := time.Now()
		if err := x.d.SaveState(&state, decode.StateOptions{Parts: x.parts}); err != nil {
			t.Fatalf("after %d packets: %v", cut, err)
		}
		m.save += time.Since(start)
		start = time.Now()
		next := v.new(&o, &e)
		if _, err := next.d.LoadState(state.Bytes(), decode.StateOptions{Parts: next.parts}); err != nil {
			t.Fatalf("after %d packets: %v", cut, err)
		}
		m.load += time.Since(start)
		m.states++
		m.size += state.Len()
		m.most = max(m.most, state.Len())
		if m.states%4 != 3 { // else the decoder that was saved goes on
			x = next
		}
	}
	return o.text() + x.verdict(v), e.text()
}

// first is where two texts differ.
func first(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			other := "nothing"
			if i < len(y) {
				other = y[i]
			}
			return fmt.Sprintf("line %d of %d and %d:\n%s\n%s", i+1, len(x), len(y), x[i], other)
		}
	}
	return fmt.Sprintf("%d lines and %d", len(x), len(y))
}

func files(t *testing.T) (list []string) {
	t.Helper()
	for _, dir := range []string{"../../samples", *captures} {
		if dir == "" {
			continue
		}
		for _, pattern := range []string{"*.pcap", "*.pcapng", "*.zst", "*/*.pcap", "*/*.zst"} {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, names...)
		}
	}
	if len(list) < 10 {
		t.Fatalf("only %d captures", len(list))
	}
	return list
}

func TestUninterrupted(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 17))
	var m measured
	for _, name := range files(t) {
		packets := all(t, name)
		for i := range variants {
			v := &variants[i]
			if testing.Short() && rng.IntN(len(variants)) > 0 {
				continue
			}
			t.Run(filepath.Base(name)+"/"+v.name, func(t *testing.T) {
				for range *rounds {
					check(t, v, packets, 1+rng.IntN(500), rng, &m)
				}
			})
		}
	}
	m.log(t)
}

func (m *measured) log(t *testing.T) {
	if m.states > 0 {
		t.Logf("%d states: %d bytes on average, %d at most; %v to save one, %v to restore it",
			m.states, m.size/m.states, m.most, m.save/time.Duration(m.states), m.load/time.Duration(m.states))
	}
}

// check compares decoding with and without cuts.
func check(t *testing.T, v *variant, packets []capture.Packet, batch int, rng *rand.Rand, m *measured) {
	t.Helper()
	checkCuts(t, v, packets, batch, 1+rng.IntN(6), rng, m)
}

func checkCuts(t *testing.T, v *variant, packets []capture.Packet, batch, n int, rng *rand.Rand, m *measured) {
	t.Helper()
	want, wantEvents := decodeCut(t, v, packets, batch, nil, m)
	var cuts []int
	for range n {
		cuts = append(cuts, rng.IntN(len(packets)+1))
	}
	slices.Sort(cuts)
	got, events := decodeCut(t, v, packets, batch, cuts, m)
	if events != wantEvents {
		t.Fatalf("cut at %v: events differ: %s", cuts, first(wantEvents, events))
	}
	if got != want {
		t.Fatalf("cut at %v: %s", cuts, first(want, got))
	}
}
