package edges

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

var cuts = flag.Int("cuts", 10, "places at which each capture is cut in two")

// tally counts the transactions of parts by outcome.
type tally struct {
	packets, transactions int
	inside                int // transactions that lie wholly in a part
	by                    [reasons]int
}

// TestEdges cuts each capture in two at several places. A transaction that lies entirely in
// one part must be reported as in the whole, except for differences with a reason. Of a
// transaction that the cut divides, what is there is shown.
func TestEdges(t *testing.T) {
	x := readTable(t, "cuts")
	for i, f := range files(t) {
		if testing.Short() && !*update && i%5 != 0 {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			n := f.cut(t, *cuts)
			t.Logf("%d packets, %d transactions, %d compared, %d equal; %s; %s", n.packets, n.transactions, n.inside, n.by[same], n.differing(), n.divided())
			if *cuts == documented {
				x.check(t, f, n.packets, n.transactions, n.inside, n.by[same], n.differing(), n.divided())
			}
		})
	}
	x.write(t)
}

// documented is how many cuts the results in tables.md cover.
const documented = 10

// differing is why transactions that lie in a part differ.
func (n *tally) differing() string { return n.list(nameBefore, callCut) }

// divided is the outcome of transactions that a cut divides.
func (n *tally) divided() string { return n.list(callCut, reasons) }

func (n *tally) list(from, to reason) string {
	var out []string
	for r := from; r < to; r++ {
		if n.by[r] > 0 {
			out = append(out, fmt.Sprintf("%v %d", r, n.by[r]))
		}
	}
	return strings.Join(out, ", ")
}

const shown = 3 // failures of a capture

func (f file) cut(t *testing.T, places int) *tally {
	packets := load(t, f.path)
	all := decoded(packets, f.memory(t), nil)
	n := &tally{packets: len(packets), transactions: len(all)}
	failures := 0
	for i := range places {
		k := len(packets) * (2*i + 1) / (2 * places)
		for _, piece := range [][]capture.Packet{packets[k:], packets[:k]} {
			if len(piece) == 0 {
				continue
			}
			p := &part{all: all, lo: piece[0].Number, hi: piece[len(piece)-1].Number, taken: map[*row]bool{}}
			p.packet = func(number uint64) *capture.Packet { return &packets[number-1] }
			p.many = slices.ContainsFunc(piece, func(k capture.Packet) bool { return k.Tap != piece[0].Tap })
			before := f.memory(t)
			if p.lo > 1 {
				f.learn(packets, p, all, before)
			}
			p.rows = decoded(piece, f.memory(t), before)
			p.number(all)
			for _, w := range all {
				if w.high < p.lo || w.low > p.hi {
					continue
				}
				why, r, rest := p.judge(w)
				n.by[why]++
				if w.low >= p.lo && w.high <= p.hi {
					n.inside++
				}
				if why == unexplained {
					if failures++; failures <= shown {
						t.Errorf("packets %d to %d: XID %#x, packets %d to %d: %s", p.lo, p.hi, w.xid, w.low, w.high, explain(w, r, p, rest))
					}
				}
			}
			for _, r := range p.rows {
				if !p.taken[r] {
					why := p.judgeSurplus(r)
					n.by[why]++
					if why != unexplained {
						continue
					}
					if failures++; failures <= shown {
						t.Errorf("packets %d to %d: XID %#x, packets %d to %d, is none of the whole", p.lo, p.hi, r.xid, r.low, r.high)
					}
				}
			}
		}
	}
	if failures > shown {
		t.Errorf("%d failures", failures)
	}
	return n
}

// learn fills before with what the transactions tell that are not wholly in p.
func (f file) learn(packets []capture.Packet, p *part, all []*row, before *memory) {
	i := 0
	transactions(packets, func(tx *transaction.Transaction) {
		if w := all[i]; w.low < p.lo || w.high > p.hi {
			before.view.Set(tx)
			before.view.Learn()
		}
		i++
	})
}

// number maps the connections of the part to those of the whole.
func (p *part) number(all []*row) {
	p.numbers = numbers{}
	of := map[[2]uint64]int{}
	for _, w := range all {
		of[[2]uint64{uint64(w.xid), w.first}] = w.conn
	}
	for _, r := range p.rows {
		if c, ok := of[[2]uint64{uint64(r.xid), r.first}]; ok && p.numbers[r.conn] == 0 {
			p.numbers[r.conn] = c
		}
	}
}

// payload returns the payload of a packet without headers that differ between copies: of RoCE
// packets the bytes between BTH and ICRC, of others the payload of their transport.
func payload(p *capture.Packet) []byte {
	var f link.Frame
	link.Decode(p.Link, p.Data, p.Length, &f)
	var q roce.Packet
	if f.Proto == link.UDP && f.DstPort == 4791 && roce.Decode(f.Payload, f.PayloadLen, &q) {
		return q.Payload
	}
	return f.Payload
}

func explain(w, r *row, p *part, rest []string) string {
	if r == nil {
		return "not there"
	}
	s := ""
	f := p.numbers.renumbered(r.remembered)
	if f == nil {
		f = p.numbers.renumbered(r.fields)
	}
	for _, name := range rest {
		s += fmt.Sprintf("\n  %s: %s instead of %s", name, f[name], w.fields[name])
	}
	return s
}

// TestTwoClocks begins a capture of two points, whose clocks are 131 ms apart,
// where calls are seen at one first and replies at the other: soon both are followed
// at the same point.
func TestTwoClocks(t *testing.T) {
	f := file{path: "../../samples/rocev2-nfs3-loss.both.pcapng.zst"}
	packets := load(t, f.path)
	for _, k := range []int{1015, 1032, 1083, 1151} {
		rows := decoded(packets[k:], f.memory(t), nil)
		whole := 0
		for _, r := range rows {
			if r.state == transaction.Complete {
				whole++
			}
		}
		if len(rows) < 50 || whole < len(rows)-30 {
			t.Errorf("from packet %d: %d of %d transactions are complete", k+1, whole, len(rows))
		}
	}
}
