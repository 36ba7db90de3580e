package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// parse reads an entry as the journal does (systemd.io/JOURNAL_NATIVE_PROTOCOL).
func parse(b []byte) (map[string][]string, error) {
	out := map[string][]string{}
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return nil, fmt.Errorf("no end of line: %q", b)
		}
		name, value, whole := bytes.Cut(b[:end], []byte("="))
		b = b[end+1:]
		if !whole {
			if len(b) < 8 {
				return nil, fmt.Errorf("%s: no length", name)
			}
			n := binary.LittleEndian.Uint64(b)
			b = b[8:]
			if n >= uint64(len(b)) || b[n] != '\n' {
				return nil, fmt.Errorf("%s: wrong length %d", name, n)
			}
			value, b = b[:n], b[n+1:]
		}
		if !validName(string(name)) {
			return nil, fmt.Errorf("%q is not the name of a field", name)
		}
		out[string(name)] = append(out[string(name)], string(value))
	}
	return out, nil
}

func TestAppendField(t *testing.T) {
	for _, value := range []string{"", "a", "a=b", "two\nlines", "\n", "\n\n", strings.Repeat("x\n", 200), "\x00\xff"} {
		b := AppendField(nil, "FIRST", []byte(value))
		b = AppendField(b, "SECOND", []byte("after"))
		f, err := parse(b)
		if err != nil || !slices.Equal(f["FIRST"], []string{value}) || !slices.Equal(f["SECOND"], []string{"after"}) {
			t.Errorf("%q: %q, %v", value, f, err)
		}
	}
	if got := string(AppendField(nil, "A", []byte("b\nc"))); got != "A\n\x03\x00\x00\x00\x00\x00\x00\x00b\nc\n" {
		t.Errorf("%q", got)
	}
}

// each calls do for each transaction of a sample.
func each(t *testing.T, name string, do func(*rpc.View)) {
	t.Helper()
	r, err := capture.Open([]string{filepath.Join("../../samples", name)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		do(&v)
		v.Learn()
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
}

func TestEntries(t *testing.T) {
	e, err := New([]string{"retransmits", "xid", "operations.op"})
	if err != nil {
		t.Fatal(err)
	}
	e.List.Clock.Format.Style = text.TimeNone
	var open map[string][]string
	each(t, "rocev2-nfs41-recall.pcap", func(v *rpc.View) {
		f, err := parse(e.Append(nil, v))
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range f {
			if len(values) != 1 && name != "RPCRDMA_OPERATIONS_OP" && name != "RPCRDMA_OPERATIONS_STATUS" && name != "RPCRDMA_NOTES" && name != "RPCRDMA_NOTE_CODES" {
				t.Errorf("%s: %q", name, values)
			}
		}
		if f["RPCRDMA_OPERATION"][0] == "OPEN" && open == nil {
			open = f
		}
	})
	for name, want := range map[string]string{
		"SYSLOG_IDENTIFIER": "rpcrdma-dump", "RPCRDMA_CLIENT": "192.0.2.2", "RPCRDMA_SERVER": "192.0.2.1", "RPCRDMA_PROGRAM": "nfs",
		"RPCRDMA_VERSION": "4", "RPCRDMA_PROCEDURE": "COMPOUND", "RPCRDMA_STATE": "complete",
	} {
		if got := open[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !slices.Contains(open["RPCRDMA_OPERATIONS_OP"], "OPEN") || !strings.Contains(open["MESSAGE"][0], open["RPCRDMA_XID"][0][2:]) ||
		!strings.Contains(open["MESSAGE"][0], " OPEN ") {
		t.Errorf("%q", open)
	}
	if t.Failed() {
		t.Logf("%q", open)
	}
}

// Priorities follow docs/journal.md.
func TestPriorities(t *testing.T) {
	got := map[string]bool{}
	seen := func(v *rpc.View) { got[fmt.Sprint(text.ShortStatus(v), " ", PriorityOf(v))] = true }
	each(t, "rocev2-nfs3-meta.pcap.zst", seen)
	each(t, "rocev2-nfs3-longcall.pcap", func(v *rpc.View) {
		v.Tx.Reply.Last.Time = v.Tx.Call.First.Time + int64(Slow)
		got[fmt.Sprint("slow ", text.ShortStatus(v), " ", PriorityOf(v))] = true
		v.Tx.State = transaction.NoReply
		seen(v)
	})
	for _, want := range []string{"ok 6", "NOENT 5", "slow ok 4", "no reply 3"} {
		if !got[want] {
			t.Errorf("no %s in %v", want, got)
		}
	}
}

// A tree makes MESSAGE long; what does not fit is counted.
func TestTree(t *testing.T) {
	e, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Tree = &text.Tree{Level: 2, Hex: true}
	lines, cut := 0, 0
	each(t, "rocev2-nfs3-longcall.pcap", func(v *rpc.View) {
		b := e.Append(nil, v)
		f, err := parse(b)
		if err != nil || len(b) > MaxEntry {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		lines += strings.Count(f["MESSAGE"][0], "\n")
		if len(f["RPCRDMA_TRUNCATED"]) > 0 {
			cut++
			if !strings.HasSuffix(f["MESSAGE"][0], " bytes more)") {
				t.Errorf("%q", f["MESSAGE"][0][maxMessage-100:])
			}
		}
	})
	if lines == 0 || cut == 0 {
		t.Errorf("%d lines, %d entries cut", lines, cut)
	}
}

func TestNames(t *testing.T) {
	for _, bad := range []string{"nothing", "result.ops.getattr.obj_attributes"} {
		if _, err := New([]string{bad}); err == nil {
			t.Errorf("%s accepted", bad)
		}
	}
	for _, bad := range []string{"", "a", "_A", "1A", "A B", "A.B", "A=", strings.Repeat("A", 65)} {
		if validName(bad) {
			t.Errorf("%q is valid", bad)
		}
	}
}

// FuzzEntry makes entries of changed captures: each can be read back and is small enough for a datagram.
func FuzzEntry(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), []byte{})
	}
	e, err := New(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, which uint8, program []byte) {
		var b []byte
		packets := traffic.Apply(which, program)
		holds.Each(t, packets[:min(len(packets), 60)], decode.Options{}, func(v *rpc.View) {
			b = e.Append(b[:0], v)
			f, err := parse(b)
			if err != nil || len(b) > MaxEntry {
				t.Fatalf("%d bytes, %v: %q", len(b), err, b)
			}
			for _, name := range []string{"MESSAGE", "PRIORITY", "RPCRDMA_XID", "RPCRDMA_TIME", "RPCRDMA_STATE"} {
				if len(f[name]) != 1 {
					t.Fatalf("%s: %q", name, b)
				}
			}
		})
	})
}
