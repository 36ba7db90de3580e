// Package adapter says what the counters of RDMA adapters tell of the calls in the same seconds: losses, timeouts and congestion that no event of
// a kernel shows.
package adapter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/units"
)

// meanings are the counters that tell of trouble, as Linux and its drivers name them: those of the IBTA for all adapters, mlx5, irdma,
// bnxt_re, rxe. siw has none.
var meanings = func() map[string]string {
	m := make(map[string]string)
	for what, names := range map[string][]string{
		"no acknowledgement in time":              {"local_ack_timeout_err", "to_retransmits", "roce_adp_retrans_to"},
		"sent again":                              {"completer_retry_err", "roce_adp_retrans", "tcpRetransSegs", "RetransSegs"},
		"given up after all retries":              {"retry_exceeded_err", "max_retry_exceeded", "retry_rnr_exceeded_err"},
		"packets missing or out of order":         {"out_of_sequence", "out_of_seq_request", "oos_drop_count", "res_oos_drop_count", "implied_nak_seq_err", "missing_resp"},
		"NAK: the other side misses packets":      {"packet_seq_err", "rcvd_seq_err", "seq_err_naks_rcvd", "Nak Sequence Error"},
		"packets came again":                      {"duplicate_request", "dup_req", "dup_reqs"},
		"the other side was not ready to receive": {"rnr_nak_retry_err", "rcvd_rnr_err", "rnr_naks_rcvd", "RNR received"},
		"this side was not ready to receive":      {"send_rnr_err", "out_of_buffer", "RNR sent"},
		"congestion: this side was told to slow":  {"rp_cnp_handled", "rx_cnp_pkts", "cnpHandled", "roce_slow_restart_cnps"},
		"congestion: this side asked to slow":     {"np_cnp_sent", "tx_cnp_pkts", "cnpSent"},
		"congestion: packets were marked":         {"np_ecn_marked_roce_packets", "rx_ecn_marked_pkts", "RxECNMrkd"},
		"packets that are damaged (ICRC)":         {"rx_icrc_encapsulated"},
		"packets thrown away":                     {"port_xmit_discards", "rx_roce_discards", "rx_roce_errors", "ip4InDiscards", "ip6InDiscards"},
		"errors of the link":                      {"symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_rcv_remote_physical_errors", "local_link_integrity_errors", "excessive_buffer_overrun_errors"},
		"the link had no credit to send":          {"port_xmit_wait"},
	} {
		for _, n := range names {
			m[n] = what
		}
	}
	return m
}()

// Meaning says what trouble a counter tells of; empty if none.
func Meaning(name string) string { return meanings[name] }

// Limits of what is remembered.
const (
	maxSeconds  = 3600
	maxCounters = 1024
)

// Trouble is a counter that has grown, and the calls that ended in the seconds in which it did.
type Trouble struct {
	Port    string `json:"port"` // mlx5_0/1
	Counter string `json:"counter"`
	Meaning string `json:"meaning"`
	Count   uint64 `json:"count"`
	Seconds int    `json:"seconds"`        // in which it grew
	Calls   int    `json:"calls"`          // that ended in them
	Mean    int64  `json:"mean_ns"`        // of their latencies
	Others  int64  `json:"others_mean_ns"` // of the latencies of calls that ended in other seconds
	Text    string `json:"text"`
}

type second struct {
	calls int
	sum   int64
}

type key struct{ port, name string }

// Total is how much a counter has grown.
type Total struct {
	Port, Counter string
	Now, All      uint64 // in the latest interval; since the beginning
}

// Recorder joins counters with calls. Its methods may be called from several goroutines.
type Recorder struct {
	mu      sync.Mutex
	seconds map[int64]second
	grown   map[key]map[int64]uint64
	totals  map[key]*Total
	passed  map[key]uint64
}

// New makes a Recorder.
func New() *Recorder {
	return &Recorder{seconds: make(map[int64]second), grown: make(map[key]map[int64]uint64), totals: make(map[key]*Total), passed: make(map[key]uint64)}
}

// Observer makes a decoder report counters.
func (r *Recorder) Observer() decode.Observer { return decode.Observer{Counter: r.counter} }

func (r *Recorder) counter(at rdma.Ref, port, name string, grown uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := key{port, name}
	t := r.totals[k]
	if t == nil {
		if len(r.totals) >= maxCounters {
			return
		}
		t = &Total{Port: port, Counter: name}
		r.totals[k] = t
	}
	t.All += grown
	t.Now += grown
	if Meaning(name) == "" {
		return
	}
	if r.grown[k] == nil {
		r.grown[k] = make(map[int64]uint64)
	}
	put(r.grown[k], (at.Time-5e8)/1e9, grown) // it is read at the end of the second
}

// Call notes a call that has ended.
func (r *Recorder) Call(end, latency int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := end / 1e9
	s := r.seconds[at]
	put(r.seconds, at, second{s.calls + 1, s.sum + latency})
}

// put sets the value of a second, and forgets the oldest one if there are too many.
func put[T any](m map[int64]T, at int64, v T) {
	if _, ok := m[at]; !ok && len(m) >= maxSeconds {
		delete(m, slices.Min(slices.Collect(maps.Keys(m))))
	}
	m[at] = v
}

// Roll ends an interval.
func (r *Recorder) Roll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, t := range r.totals {
		r.passed[k], t.Now = t.Now, 0
	}
}

// Totals are all counters that have grown, those of trouble first, and what each had grown by in the latest interval.
func (r *Recorder) Totals() []Total {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Total
	for k, t := range r.totals {
		list = append(list, Total{t.Port, t.Counter, r.passed[k], t.All})
	}
	slices.SortFunc(list, func(a, b Total) int {
		return cmp.Or(
			cmp.Compare(troubleFirst(&a), troubleFirst(&b)), cmp.Compare(b.Now, a.Now), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Counter, b.Counter),
		)
	})
	return list
}

// troubleFirst orders counters of trouble before the others.
func troubleFirst(t *Total) int {
	if Meaning(t.Counter) == "" {
		return 1
	}
	return 0
}

// Trouble is what the counters of trouble tell; those in whose seconds calls took longest come first. Coincidence is
// not proof of a cause.
func (r *Recorder) Trouble() []Trouble {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Trouble
	for k, grown := range r.grown {
		t := Trouble{Port: k.port, Counter: k.name, Meaning: Meaning(k.name), Seconds: len(grown)}
		var in, out second
		for at, s := range r.seconds {
			if _, ok := grown[at]; ok {
				in.calls, in.sum = in.calls+s.calls, in.sum+s.sum
			} else {
				out.calls, out.sum = out.calls+s.calls, out.sum+s.sum
			}
		}
		for _, n := range grown {
			t.Count += n
		}
		t.Calls, t.Mean, t.Others = in.calls, in.mean(), out.mean()
		t.Text = t.text(out.calls)
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Trouble) int {
		return cmp.Or(cmp.Compare(b.Mean, a.Mean), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Counter, b.Counter))
	})
	return list
}

func (s *second) mean() int64 {
	if s.calls == 0 {
		return 0
	}
	return s.sum / int64(s.calls)
}

func (t *Trouble) text(others int) string {
	s := fmt.Sprintf("The adapter %s counted %d %s (%s) in %s", t.Port, t.Count, t.Counter, t.Meaning, units.Plural(t.Seconds, "second"))
	if t.Calls == 0 {
		return s + ", in which no call ended."
	}
	s += fmt.Sprintf(", in which %s took %s on average", units.Plural(t.Calls, "call"), units.DurationText(t.Mean))
	if others > 0 {
		s += fmt.Sprintf("; in all other seconds, calls took %s", units.DurationText(t.Others))
	}
	return s + "."
}
