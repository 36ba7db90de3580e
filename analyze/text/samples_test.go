package text

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

const samples = "../../samples"

// each calls do for each transaction of a sample.
func each(tb testing.TB, name string, do func(*rpc.View)) {
	tb.Helper()
	r, err := capture.Open([]string{filepath.Join(samples, name)}, capture.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		do(&v)
		v.Learn()
	})
	if err := d.Run(r); err != nil {
		tb.Fatal(err)
	}
}

// Lines of the listing allocate nothing, whatever the transaction.
func TestListerAllocations(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-longcall.pcap", "rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap"} {
		for _, color := range []bool{false, true} {
			l := Lister{Color: color}
			var b []byte
			n := 0
			each(t, name, func(v *rpc.View) {
				b = l.Append(b[:0], v) // addresses and buffers are known from here on
				if a := testing.AllocsPerRun(5, func() { b = l.Append(b[:0], v) }); a != 0 {
					t.Errorf("%s: %v allocations: %s", name, a, b)
				}
				n++
			})
			if n == 0 {
				t.Errorf("%s: no transactions", name)
			}
		}
	}
}

// escapes are colors.
var escapes = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// widths checks that no line is wider than it may be.
func widths(t *testing.T, lines []byte, width int) {
	t.Helper()
	for line := range strings.Lines(string(lines)) {
		if n := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("%d columns, want %d: %s", n, width, line)
		}
	}
}

// TestListerWidth lists in all widths that a terminal may have. Names that do not fit are shortened, and the connection
// stands for the addresses if there is no room for them.
func TestListerWidth(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs41-ipv6.pcap.zst", "rocev2-nfs3-loss.both.pcapng.zst", "rocev2-nfs3-bulk.pcap.zst"} {
		for _, width := range []int{LeastWidth, 72, 80, 99, 100, 120, 200} {
			l := Lister{Width: width}
			painted := Lister{Width: width, Color: true}
			each(t, name, func(v *rpc.View) {
				widths(t, l.Append(nil, v), width)
				widths(t, escapes.ReplaceAll(painted.Append(nil, v), nil), width)
			})
		}
	}
	l := Lister{Width: -1}
	each(t, "rocev2-nfs41-recall.pcap", func(v *rpc.View) {
		if line := string(l.Append(nil, v)); strings.Contains(line, ellipsis) {
			t.Errorf("shortened: %s", line)
		}
	})
}

func BenchmarkLister(b *testing.B) {
	var l Lister
	var buf []byte
	done := false
	each(b, "rocev2-nfs41-recall.pcap", func(v *rpc.View) {
		if done || len(v.Operations()) < 4 {
			return
		}
		done = true
		b.ReportAllocs()
		for b.Loop() {
			buf = l.Append(buf[:0], v)
		}
	})
}

func BenchmarkTree(b *testing.B) {
	t := Tree{Level: 1}
	var buf []byte
	done := false
	each(b, "rocev2-nfs41-recall.pcap", func(v *rpc.View) {
		if done || len(v.Operations()) < 4 {
			return
		}
		done = true
		b.ReportAllocs()
		for b.Loop() {
			buf = t.Append(buf[:0], v)
		}
	})
}

func check(t *testing.T, b []byte) {
	t.Helper()
	for i, r := range string(b) {
		if r != '\n' && (r == utf8.RuneError || !unicode.IsPrint(r)) {
			t.Fatalf("%q in %q", r, b[max(0, i-60):min(len(b), i+20)])
		}
	}
}
