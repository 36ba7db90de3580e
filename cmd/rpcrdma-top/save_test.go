package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

const recall = "rocev2-nfs41-recall.pcap"

// saverOf reads a sample again.
func saverOf(name string) *saver {
	s := &saver{files: &outfile.Files{}, again: func() (capture.Reader, error) { return capture.Open([]string{name}, capture.Options{}) }}
	s.files.Reads(name)
	return s
}

// saverScreen is a screen from which packets can be written.
func saverScreen(t *testing.T, name string) *screen {
	s := newScriptOf(t, name, monitor.Options{})
	s.run(1 << 40)
	x := newScreen(t, s, 80, 24)
	x.saver = saverOf(name)
	x.frame()
	return x
}

// transactionsOf decodes a file: what passes a filter, and how many there are.
func transactionsOf(t *testing.T, name, expr string) (passed, all int) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var f *filter.Filter
	if expr != "" {
		if f, err = filter.Compile(expr); err != nil {
			t.Fatal(err)
		}
	}
	view := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Transactions: transaction.Options{OnCompletion: true}}, func(tx *transaction.Transaction) {
		view.Set(tx)
		if all++; f == nil || f.Match(&view) {
			passed++
		}
		view.Learn()
	})
	var b capture.Batch
	for err == nil {
		if err = r.Read(&b); err == nil {
			d.Batch(&b)
		}
	}
	d.Flush()
	if err != io.EOF {
		t.Fatal(err)
	}
	return passed, all
}

// TestSave writes the packets of rows of all views, and decodes what was written.
func TestSave(t *testing.T) {
	input, err := filepath.Abs(filepath.Join(samples, recall))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		name string
		keys []string
		file string
		expr string // what has to be in the file
		n    int
		only bool // and nothing else
	}{
		{"transaction", []string{"2", "home"}, "rpcrdma-c5466d78.pcapng", "xid == 0xc5466d78", 1, true},
		{"open transaction", []string{"2", "home", "enter"}, "rpcrdma-c5466d78-2.pcapng", "xid == 0xc5466d78", 1, true},
		{"connection", []string{"3"}, "rpcrdma-connection-1.pcapng", "", 50, true},
		{"fabric", []string{"7"}, "rpcrdma-connection-1-2.pcapng", "", 50, true},
		{"session", []string{"8"}, "rpcrdma-session-e430016b0d2888a301.pcapng", "", 50, true},
		{"operation", []string{"1", "f", "READ", "enter"}, "", "operation == READ", 6, true},
		{"file", []string{"4", "f", "deleg3", "enter"}, "rpcrdma-deleg3.pcapng", `xid in {0xbb466d78, 0xb8466d78}`, 2, false},
		{"client", []string{"5"}, "rpcrdma-192.0.2.2.pcapng", "client == 192.0.2.2", 47, false},
		{"filtered", []string{"/", "latency > 3ms", "enter", "1", "f", "READ", "enter"}, "", "operation == READ && latency > 3ms", 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := saverScreen(t, input)
			x.press(c.keys...)
			x.press("w")
			name := x.input.Value()
			if c.file != "" && name != c.file {
				t.Errorf("the name is %q, not %q", name, c.file)
			}
			x.finish(t)
			if !strings.HasSuffix(x.message, "written to "+name) {
				t.Fatalf("%q", x.message)
			}
			passed, all := transactionsOf(t, name, c.expr)
			if passed != c.n || c.only && all != c.n {
				t.Errorf("%d of %d transactions in %s, want %d; %s", passed, all, name, c.n, x.message)
			}
		})
	}
	if left, _ := filepath.Glob(".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// finish presses Enter and waits for the file.
func (x *screen) finish(t *testing.T) {
	t.Helper()
	_, cmd := x.Update(tea.KeyMsg{Type: tea.KeyEnter})
	if cmd == nil {
		return
	}
	x.Update(cmd())
	x.check()
}

// TestSaveRefuses neither writes over an input nor, unless Enter is pressed twice, over another file.
func TestSaveRefuses(t *testing.T) {
	input, err := filepath.Abs(filepath.Join(samples, recall))
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink(input, "link.pcapng"))
	must(os.WriteFile("old.pcapng", []byte("old"), 0o600))
	must(os.Mkdir("dir", 0o700))
	x := saverScreen(t, input)
	typeName := func(name string) {
		x.press("esc", "3", "w")
		x.input.SetValue(name)
	}
	for name, want := range map[string]string{input: "is read", "link.pcapng": "is read", "": "type the name", "old.pcapng": "exists", "dir/x/y": "", "dir": ""} {
		typeName(name)
		x.finish(t)
		if said := x.wrong + x.message; !strings.Contains(said, want) || said == "" || strings.Contains(said, "written to") {
			t.Errorf("%q: %q", name, said)
		}
	}
	if now, err := os.ReadFile(input); err != nil || !bytes.Equal(now, before) {
		t.Fatal("the input has changed")
	}
	typeName("old.pcapng")
	x.finish(t)
	if b, _ := os.ReadFile("old.pcapng"); string(b) != "old" {
		t.Fatal("it is gone after one Enter")
	}
	x.finish(t)
	if _, all := transactionsOf(t, "old.pcapng", ""); all != 50 {
		t.Errorf("%d transactions", all)
	}
	// The same once more.
	typeName("old.pcapng")
	x.finish(t)
	x.finish(t)
	if !strings.Contains(x.message, "written to") {
		t.Errorf("%q", x.message)
	}
	// Given up.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := x.saver.write(ctx, &selection{connections: []int{1}}, "never.pcapng"); err != errGivenUp {
		t.Error(err)
	}
	// What is not there.
	if _, err := x.saver.write(context.Background(), &selection{connections: []int{7}}, "never.pcapng"); err == nil || !strings.Contains(err.Error(), "no packet") {
		t.Error(err)
	}
	if _, err := os.Lstat("never.pcapng"); err == nil {
		t.Error("a file without packets was left")
	}
	// Where it cannot be.
	x.press("esc")
	for _, s := range []*saver{nil, {}, {live: true}} {
		x.saver = s
		if x.press("w"); x.typing || x.message == "" {
			t.Errorf("%+v: %q", s, x.message)
		}
	}
}

// hold decodes a sample with a keeper.
func hold(t *testing.T, name string, bytes int) *keeper {
	k := newKeeper(bytes)
	m := monitor.New(monitor.Options{Decode: decode.Options{Observers: []decode.Observer{{Packet: k.packet}}}})
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	for r.Read(&b) == nil {
		m.Packets(b.Packets)
	}
	return k
}

// TestSaveKept writes packets of a capture that were kept: all that fit, or the latest of them.
func TestSaveKept(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join(samples, recall))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		bytes int
		x     selection
		want  int // transactions; -1: none of its packets is left
	}{
		{1 << 20, selection{xid: 0x9b466d78, frame: 13}, -1}, // another packet
		{1 << 20, selection{connections: []int{1}}, 50},
		{1 << 20, selection{connections: []int{2}}, -1},
		{20 << 10, selection{connections: []int{1}}, 0},
		{1 << 20, selection{match: compiled(t, "operation == READ")}, 6},
	} {
		s := &saver{files: &outfile.Files{}, live: true, kept: hold(t, dir, c.bytes)}
		msg, err := s.write(context.Background(), &c.x, "out.pcapng")
		if (err != nil) != (c.want < 0) {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			continue
		}
		_, all := transactionsOf(t, "out.pcapng", "")
		if c.want > 0 && all != c.want || c.want == 0 && (all == 0 || all >= 50) || !strings.Contains(msg, "held") {
			t.Errorf("%+v: %d transactions; %s", c, all, msg)
		}
	}
	s := &saver{dir: "/where/ever"}
	for name, want := range map[string]string{"x": "x", "/where/ever/x": "/where/ever/x", "../x": "", "/etc/x": "", "a/b": "", "/where/ever/../x": ""} {
		got, err := s.path(name)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func compiled(t *testing.T, expr string) *filter.Filter {
	f, err := filter.Compile(expr)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestKeeperAllocates holds the path of a captured packet to no allocation once the window is full.
func TestKeeperAllocates(t *testing.T) {
	k := newKeeper(1 << 20)
	p := capture.Packet{Data: make([]byte, 1000)}
	v := decode.PacketView{Packet: &p}
	for range 5000 {
		p.Number++
		k.packet(&v)
	}
	if n := testing.AllocsPerRun(2000, func() {
		p.Number++
		k.packet(&v)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if n := k.held.Bytes(); n > 1<<20 || n < 1<<19 {
		t.Errorf("%d bytes", n)
	}
}

// TestSafeStem makes names of files of what peers have named.
func TestSafeStem(t *testing.T) {
	for s, want := range map[string]string{
		"nfs3 READ": "rpcrdma-nfs3-READ", "../../etc/passwd": "rpcrdma-etc-passwd", "": "rpcrdma-", "-x": "rpcrdma-x", "\x1b[2J": "rpcrdma-2J",
		"2001:db8::1": "rpcrdma-2001-db8--1", strings.Repeat("a", 300): "rpcrdma-" + strings.Repeat("a", 60), "é世": "rpcrdma-",
	} {
		if got := safeStem(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
