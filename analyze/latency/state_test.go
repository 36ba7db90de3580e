package latency

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// collect passes a capture to the observer of a Recorder or a Collector, and its transactions to add.
func collect(tb testing.TB, file string, observer decode.Observer, add func(*rpc.View)) Source {
	tb.Helper()
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer in.Close()
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Concurrent: true, Observers: []decode.Observer{observer}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		add(&v)
		v.Learn()
	})
	if err := d.Run(in); err != nil {
		tb.Fatal(err)
	}
	st, a := d.Stats(), d.Account()
	return Source{Inputs: []string{filepath.Base(file)}, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last, Account: &a}
}

// unit is the saved state of a capture.
func unit(tb testing.TB, file string, opt Options) *state.Unit {
	tb.Helper()
	c := NewCollector(opt)
	src := collect(tb, file, c.Observer(), c.Add)
	return state.NewUnit(c.State(src).Section())
}

// read reads the state of one tap.
func read(u *state.Unit) (*State, error) {
	t := &tap{}
	o, err := sections.Read(u, func(c *state.Coder, o *terms) { t.code(c, o) })
	if err != nil {
		return nil, err
	}
	return &State{terms: *o, tap: t, mem: memory{limit: DefaultMemory / 2}}, nil
}

// merged is the report of several taps.
func merged(tb testing.TB, units ...*state.Unit) *Report {
	tb.Helper()
	var f state.File
	f.Add(units...)
	m, err := FromUnits(&f)
	if err != nil {
		tb.Fatal(err)
	}
	rep, err := m.Report(&f)
	if err != nil {
		tb.Fatal(err)
	}
	return rep
}

func reportJSON(tb testing.TB, rep *Report) []byte {
	tb.Helper()
	b, err := json.MarshalIndent(rep, "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestStateIsReport: a report from the saved state of a capture is the report of the capture, byte for byte,
// whether or not connections were distinguished.
func TestStateIsReport(t *testing.T) {
	for i, file := range sampled.Captures(t, "*") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			opt := Options{Top: 5, Inline: DefaultInline, By: [][]Key{nil, {ByConnection, ByOperation}, {ByFile}, {BySize}}[i%4]}
			r := New(opt)
			src := collect(t, file, r.Observer(), func(v *rpc.View) { r.Add(v) })
			want := reportJSON(t, r.Report(src))

			c := NewCollector(opt)
			src = collect(t, file, c.Observer(), c.Add)
			s := c.State(src)
			saved := (&state.File{})
			saved.Add(state.NewUnit(s.Section()))
			encoded := saved.Append(nil)
			if got := reportJSON(t, s.Report()); !bytes.Equal(got, want) {
				differ(t, "apart", got, want)
			}
			file, err := state.Decode(encoded, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			if again := file.Append(nil); !bytes.Equal(again, encoded) {
				t.Fatal("the file changes when it is read and written")
			}
			back, err := read(file.Units()[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range back.tap.pieces {
				if x.part, err = x.load(&back.terms, &memory{limit: DefaultMemory}); err != nil {
					t.Fatal(err)
				}
			}
			if u := state.NewUnit(back.Section()); u.Name() != saved.Units()[0].Name() {
				t.Error("the state changes when it is read and written")
			}
			if got := reportJSON(t, merged(t, file.Units()...)); !bytes.Equal(got, want) {
				differ(t, "read", got, want)
			}
			t.Logf("%d bytes for %d connections", len(encoded), len(s.tap.pieces)-1)
		})
	}
}

// differ shows the first lines that differ.
func differ(t *testing.T, what string, got, want []byte) {
	t.Helper()
	a, b := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	shown := 0
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			t.Errorf("%s: line %d: %s, want %s", what, i+1, a[i], b[i])
			if shown++; shown > 5 {
				return
			}
		}
	}
	if len(a) != len(b) {
		t.Errorf("%s: %d lines, want %d", what, len(a), len(b))
	}
}
