package split

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

const samples = "../../samples"

// memory is a set of files.
type memory struct {
	files map[int]*bytes.Buffer
	open  int
	most  int
}

type memoryFile struct {
	*bytes.Buffer
	m *memory
}

func (f memoryFile) Close() error { f.m.open--; return nil }

func (m *memory) create(n Name, again bool) (io.WriteCloser, error) {
	if m.files == nil {
		m.files = make(map[int]*bytes.Buffer)
	}
	if (m.files[n.N] != nil) != again {
		return nil, fmt.Errorf("file %d: again is %v", n.N, again)
	}
	if !again {
		m.files[n.N] = new(bytes.Buffer)
	}
	m.open++
	m.most = max(m.most, m.open)
	return memoryFile{m.files[n.N], m}, nil
}

func splitSample(t *testing.T, name string, opt Options) (*memory, Stats) {
	t.Helper()
	r, err := capture.Open([]string{filepath.Join(samples, name)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return splitReader(t, r, opt)
}

func splitReader(t *testing.T, r capture.Reader, opt Options) (*memory, Stats) {
	t.Helper()
	m := &memory{}
	opt.Open = m.create
	if tapper, ok := r.(capture.Tapper); ok {
		opt.Taps = tapper.Taps
	}
	s := New(opt)
	var o decode.Options
	s.Options(&o)
	if err := decode.New(o, s.Transaction).Run(r); err != nil {
		t.Fatal(err)
	}
	st, err := s.Close()
	if err != nil || m.open != 0 {
		t.Fatalf("%v, %d files open", err, m.open)
	}
	if len(m.files) != st.Files {
		t.Errorf("%d files, not %d", len(m.files), st.Files)
	}
	return m, st
}

// objects are the transactions of a capture that match, as sorted lines without
// what a split changes: numbers of packets and connections, and paths that
// other transactions would have told.
func objects(t *testing.T, r capture.Reader, match func(*rpc.View) bool) []string {
	t.Helper()
	var e ndjson.Encoder
	v := rpc.View{Names: &rpc.Names{}}
	var out []string
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		if match == nil || match(&v) {
			// Of a connection that is elsewhere.
			tx.Notes = slices.DeleteFunc(tx.Notes, func(n transaction.Note) bool {
				return n.Kind == transaction.ResentOn || n.Kind == transaction.ResentFrom
			})
			var o map[string]any
			if err := json.Unmarshal(e.Append(nil, &v), &o); err != nil {
				t.Fatal(err)
			}
			delete(o, "call_frame")
			delete(o, "reply_frame")
			delete(o, "connection")
			delete(o, "connection_key") // the part may not have the first packet
			delete(o, "path")           // nor what shows when the call was acknowledged
			delete(o, "first_sent")     // nor the connection that it was sent on before
			delete(o, "app_latency")
			if f, ok := o["file"].(map[string]any); ok {
				delete(f, "path")
			}
			if o["fabric"] == "iwarp" || o["fabric"] == "tcp" {
				// The segment that acknowledges a message may carry another one.
				delete(o, "call_delivery")
				delete(o, "reply_delivery")
				if l, ok := o["latency_ns"].(map[string]any); ok {
					delete(l, "ack")
				}
			}
			b, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(b))
		}
		v.Learn()
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	sort.Strings(out)
	return out
}

func (m *memory) objects(t *testing.T, match func(*rpc.View) bool) []string {
	t.Helper()
	var all []string
	for _, b := range m.files {
		r, err := capture.NewReader(bytes.NewReader(b.Bytes()), "part", capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, objects(t, r, match)...)
		if list, total := r.Problems(); total > 0 {
			t.Errorf("%v", list[0])
		}
	}
	sort.Strings(all)
	return all
}

// compare reports what one list has and the other lacks.
func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	count := make(map[string]int)
	for _, s := range want {
		count[s]++
	}
	for _, s := range got {
		count[s]--
	}
	n := 0
	for s, c := range count {
		if c != 0 {
			if n++; n <= 4 {
				t.Errorf("%s: %+d %s", what, -c, s)
			}
		}
	}
	if n > 0 {
		t.Errorf("%s: %d differences of %d transactions", what, n, len(want))
	}
}

func open(t *testing.T, name string) capture.Reader {
	t.Helper()
	r, err := capture.Open([]string{filepath.Join(samples, name)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// The parts have the same transactions as the whole.
func TestTransactions(t *testing.T) {
	for i, file := range sampled.Captures(t, "*") {
		name := filepath.Base(file)
		want := objects(t, open(t, name), nil)
		for k, opt := range []Options{
			{By: Client},
			{By: Server, OpenFiles: 1},
			{By: Connection, OpenFiles: 2, Rest: true},
			{By: Time, Interval: 700 * time.Millisecond, OpenFiles: 3},
		} {
			if testing.Short() && k != i%4 {
				continue
			}
			what := fmt.Sprint(opt.By)
			m, st := splitSample(t, name, opt)
			if opt.OpenFiles > 0 && m.most > opt.OpenFiles {
				t.Errorf("%s by %s: %d files open at once", name, what, m.most)
			}
			if !st.Whole() {
				t.Errorf("%s by %s: %+v", name, what, st)
			}
			if st.Kept+st.NoConnection != st.Packets {
				t.Errorf("%s by %s: packets are missing: %+v", name, what, st)
			}
			compare(t, name+" by "+what, m.objects(t, nil), want)
		}
	}
}

// Chosen transactions come out as they were in the whole.
func TestChosen(t *testing.T) {
	filters := map[string]func(*rpc.View) bool{
		"READ":  func(v *rpc.View) bool { return strings.Contains(opsOf(v), "READ ") },
		"WRITE": func(v *rpc.View) bool { return strings.Contains(opsOf(v), "WRITE ") },
		"odd":   func(v *rpc.View) bool { return v.Tx.XID%2 == 1 },
		"again": func(v *rpc.View) bool { return v.Tx.Retransmits > 0 },
	}
	names := slices.Sorted(maps.Keys(filters))
	for i, file := range sampled.Captures(t, "*") {
		name := filepath.Base(file)
		for k, what := range names {
			if testing.Short() && k != i%len(names) {
				continue
			}
			match := filters[what]
			want := objects(t, open(t, name), match)
			m, st := splitSample(t, name, Options{Match: match})
			if int(st.Chosen) != len(want) || !st.Whole() {
				t.Errorf("%s, %s: %+v, want %d transactions", name, what, st, len(want))
			}
			if len(want) > 0 {
				only := match
				if strings.HasPrefix(name, "rocev2") {
					only = nothingElse // no packet carries parts of two
				}
				compare(t, name+", "+what, m.objects(t, only), want)
			}
		}
	}
}

// Only keeps all packets of some connections: what splitting by connection writes to their files.
func TestOnly(t *testing.T) {
	names := []string{"iwarp-nfs3-loss.pcap.zst", "rocev2-nfs3-bulk.pcap.zst"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		all, _ := splitSample(t, name, Options{By: Connection})
		kept := uint64(0)
		for n := 1; n <= len(all.files); n++ {
			m, st := splitSample(t, name, Options{Only: func(c int) bool { return c == n }})
			if kept += st.Kept; st.Kept == 0 || !st.Whole() || len(m.files) != 1 {
				t.Errorf("%s, connection %d: %+v", name, n, st)
			}
		}
		if _, st := splitSample(t, name, Options{Only: func(int) bool { return true }}); kept != st.Kept || st.Kept+st.NoConnection != st.Packets {
			t.Errorf("%s: %d packets one by one, %+v together", name, kept, st)
		}
		if _, st := splitSample(t, name, Options{Only: func(int) bool { return false }}); st.Kept != 0 || st.Files != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

var nothingElse func(*rpc.View) bool

func opsOf(v *rpc.View) string {
	s := v.ProcedureName() + " "
	for _, o := range v.Operations() {
		s += o.Name + " "
	}
	return s
}

// If the window is too small, a note says so.
func TestSmallWindow(t *testing.T) {
	all := func(*rpc.View) bool { return true }
	_, st := splitSample(t, "rocev2-nfs3-basic.pcap.zst", Options{Match: all, Window: 64 << 10})
	if st.Lost == 0 || st.Torn == 0 || st.Whole() {
		t.Errorf("%+v", st)
	}
	m, st := splitSample(t, "rocev2-nfs3-basic.pcap.zst", Options{By: Connection, Files: 2})
	if st.Overflow == 0 || st.Whole() || len(m.files) != 2 {
		t.Errorf("%+v", st)
	}
}

// Without the setup, only the packets of transactions are there.
func TestNoSetup(t *testing.T) {
	match := func(v *rpc.View) bool { return v.Tx.Backward }
	_, with := splitSample(t, "rocev2-nfs41-recall.pcap", Options{Match: match})
	_, without := splitSample(t, "rocev2-nfs41-recall.pcap", Options{Match: match, NoSetup: true})
	if with.Setup != 3 || without.Setup != 0 || with.Kept != without.Kept || with.Kept == 0 {
		t.Errorf("%+v, %+v", with, without)
	}
}

// Whatever a capture holds, all packets are accounted for.
