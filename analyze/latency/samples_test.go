package latency

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/internal/testtools/truth"
)

const samples = "../../samples"

// record makes the report of a sample; also, if not nil, is called for each
// transaction.
func record(tb testing.TB, file string, opt Options, also func(*rpc.View)) *Report {
	tb.Helper()
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer in.Close()
	r := New(opt)
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Concurrent: true, Observers: []decode.Observer{r.Observer()}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		r.Add(&v)
		if also != nil {
			also(&v)
		}
		v.Learn()
	})
	if err := d.Run(in); err != nil {
		tb.Fatal(err)
	}
	st := d.Stats()
	return r.Report(Source{Inputs: []string{filepath.Base(file)}, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last})
}

// naive is a group computed from the ndjson, with sorted values.
type naive struct {
	count, errors, noReply, noCall, incomplete uint64
	callBytes, replyBytes, reads, writes       uint64
	retransmits                                uint64
	values                                     map[string][]int64
}

func failed(status string) bool {
	return !slices.Contains([]string{"", "SUCCESS", "NFS3_OK", "NFS4_OK", "MNT3_OK", "NLM4_GRANTED"}, status)
}

// TestAgainstNDJSON computes the groups again from the ndjson of the same
// transactions: sums and sorted values, and the nearest rank of them.
func TestAgainstNDJSON(t *testing.T) {
	for _, file := range sampled.Captures(t, "*") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var (
				enc    ndjson.Encoder
				lines  bytes.Buffer
				labels []string
				b      []byte
			)
			rep := record(t, file, Options{Inline: DefaultInline, Top: 5}, func(v *rpc.View) {
				b = append(enc.Append(b[:0], v), '\n')
				lines.Write(b)
				name := text.Operation(v)
				if name == "" {
					name = "?"
				}
				labels = append(labels, string(text.Program(nil, v))+" "+name)
			})
			list, err := truth.ReadTransactions(&lines)
			if err != nil {
				t.Fatal(err)
			}
			want := make(map[string]*naive)
			get := func(k string) *naive {
				if want[k] == nil {
					want[k] = &naive{values: make(map[string][]int64)}
				}
				return want[k]
			}
			var totals []int64
			for i, tx := range list {
				for _, g := range []*naive{get(labels[i]), get("all")} {
					g.count++
					g.callBytes += tx.CallBytes
					g.replyBytes += tx.ReplyBytes
					g.reads += tx.RDMAReadBytes
					g.writes += tx.RDMAWriteBytes
					g.retransmits += tx.Retransmits
					if failed(tx.Status) {
						g.errors++
					}
					switch tx.State {
					case "no_reply":
						g.noReply++
					case "no_call":
						g.noCall++
					case "incomplete":
						g.incomplete++
					}
					sum := int64(0)
					for k, v := range tx.LatencyNS {
						g.values[k] = append(g.values[k], v)
						if k != "total" && k != "pull_wait" && k != "ack" {
							sum += v
						}
					}
					if tx.LatencyNS != nil && sum != tx.LatencyNS["total"] {
						t.Errorf("xid %08x: the phases sum to %d, the total is %d", tx.XID, sum, tx.LatencyNS["total"])
					}
				}
				if v, ok := tx.LatencyNS["total"]; ok {
					totals = append(totals, v)
				}
			}
			groups := append([]*Group{}, rep.Groups...)
			all := *rep.All
			all.Key = []string{"all"}
			groups = append(groups, &all)
			seen := 0
			for _, g := range groups {
				name := strings.Join(g.Key, ",")
				n := want[name]
				if n == nil {
					if g.Count > 0 {
						t.Errorf("group %s is not in the ndjson", name)
					}
					continue
				}
				seen++
				got := [...]uint64{g.Count, g.Errors, g.NoReply, g.NoCall, g.Incomplete, g.CallBytes, g.ReplyBytes, g.ReadBytes, g.WriteBytes, g.Retransmits}
				exp := [...]uint64{n.count, n.errors, n.noReply, n.noCall, n.incomplete, n.callBytes, n.replyBytes, n.reads, n.writes, n.retransmits}
				if got != exp {
					t.Errorf("%s: count, errors, no reply, no call, incomplete, bytes: %v, want %v", name, got, exp)
				}
				check(t, name+" total", g.Latency, n.values["total"])
				for p := range transaction.AllPhases() {
					check(t, name+" "+p.String(), g.Phase(p).Distribution, n.values[p.String()])
				}
			}
			if seen != len(want) && len(list) > 0 {
				t.Errorf("%d groups, want %d", seen, len(want))
			}
			// The slowest, and calls over time.
			slices.Sort(totals)
			slices.Reverse(totals)
			for i, s := range rep.Slowest {
				if s.Total != totals[i] {
					t.Errorf("slowest %d took %d, want %d", i, s.Total, totals[i])
				}
			}
			if want := min(5, len(totals)); len(rep.Slowest) != want {
				t.Errorf("%d slowest, want %d", len(rep.Slowest), want)
			}
			var calls uint64
			for _, s := range rep.Series.Slots {
				calls += s.Calls
			}
			if calls != uint64(len(list)) {
				t.Errorf("%d calls over time, want %d", calls, len(list))
			}
		})
	}
}

// check compares a distribution with sorted values.
func check(t *testing.T, name string, d *Distribution, values []int64) {
	t.Helper()
	if d.Count != uint64(len(values)) {
		t.Errorf("%s: %d values, want %d", name, d.Count, len(values))
		return
	}
	if len(values) == 0 {
		return
	}
	if len(values) < exactSlot && d.Precision != 0 {
		t.Errorf("%s: percentiles of %d values are not exact", name, len(values))
	}
	slices.Sort(values)
	sum := int64(0)
	for _, v := range values {
		sum += v
	}
	if d.Sum != sum || d.Mean != sum/int64(len(values)) || d.Min != values[0] || d.Max != values[len(values)-1] {
		t.Errorf("%s: sum %d mean %d min %d max %d, want %d %d %d %d", name, d.Sum, d.Mean, d.Min, d.Max,
			sum, sum/int64(len(values)), values[0], values[len(values)-1])
	}
	for _, p := range []struct {
		got  int64
		p, q int // percentile p/q
	}{{d.P50, 50, 100}, {d.P90, 90, 100}, {d.P99, 99, 100}, {d.P999, 999, 1000}} {
		exact := values[(len(values)*p.p+p.q-1)/p.q-1]
		if p.got < exact || float64(p.got) > float64(exact)*(1+d.Precision) {
			t.Errorf("%s: percentile %d/%d is %d, want %d (precision %v)", name, p.p, p.q, p.got, exact, d.Precision)
		}
		if d.Precision == 0 && p.got != exact {
			t.Errorf("%s: percentile %d/%d of %d values is %d, not %d", name, p.p, p.q, len(values), p.got, exact)
		}
	}
}
