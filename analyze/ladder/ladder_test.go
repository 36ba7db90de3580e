package ladder

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const samples = "../../samples"

// each calls do for each transaction of a capture that has the XID; 0 is all.
func each(tb testing.TB, r capture.Reader, xid uint32, do func(*rpc.View)) {
	tb.Helper()
	v := rpc.View{Names: &rpc.Names{}}
	opt := decode.Options{}
	opt.Transactions.Packets = 1 << 16
	d := decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		if xid == 0 || tx.XID == xid {
			do(&v)
		}
		v.Learn()
	})
	if err := d.Run(r); err != nil {
		tb.Fatal(err)
	}
}

func sample(tb testing.TB, name string) capture.Reader {
	tb.Helper()
	r, err := capture.Open([]string{filepath.Join(samples, name)}, capture.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r
}

// patterns are one transaction of each kind that there is.
var patterns = []struct {
	name   string
	sample string
	xid    uint32
	draw   Drawer
}{
	{"inline", "rocev2-nfs41-recall.pcap", 0xb4466d78, Drawer{}},
	{"write-chunk", "rocev2-nfs3-basic.pcap.zst", 0x138a9383, Drawer{}},
	{"write-chunk-verbose", "rocev2-nfs41-recall.pcap", 0xb1466d78, Drawer{Verbose: true}},
	{"read-chunk", "rocev2-nfs3-basic.pcap.zst", 0xe4899383, Drawer{}},
	{"reply-chunk", "rocev2-nfs3-longcall.pcap", 0x746617bc, Drawer{}},
	{"position-zero", "rocev2-nfs3-longcall.pcap", 0x756617bc, Drawer{}}, // three times, on as many connections
	{"nak-write", "rocev2-nfs3-loss.both.pcapng.zst", 0x9020e869, Drawer{}},
	{"nak-reply-chunk", "rocev2-nfs3-loss.both.pcapng.zst", 0xaf20e869, Drawer{}},
	{"read-again", "rocev2-nfs3-loss.both.pcapng.zst", 0x8720e869, Drawer{}},
	{"reply-again", "rocev2-nfs3-loss.both.pcapng.zst", 0xdb20e869, Drawer{}},
	{"callback", "rocev2-nfs41-recall.pcap", 0x92cacf53, Drawer{}},
	{"callback-iwarp-ascii", "iwarp-nfs41-recall.pcap", 0x537095f9, Drawer{ASCII: true}},
	{"iwarp-offload", "iwarp-nfs3-offload.pcap.zst", 0x21050230, Drawer{}},
	{"iwarp-loss", "iwarp-nfs3-loss.pcap.zst", 0x9234cc50, Drawer{Width: 120}},
	{"tcp", "rocev2-nfs3-basic.pcap.zst", 0xab689d8c, Drawer{}},
	{"color", "rocev2-nfs3-longcall.pcap", 0x746617bc, Drawer{Color: true}},
}

func TestGolden(t *testing.T) {
	for _, p := range patterns {
		t.Run(p.name, func(t *testing.T) {
			var out []byte
			each(t, sample(t, p.sample), p.xid, func(v *rpc.View) { out = p.draw.Append(out, v) })
			golden(t, p.name, out)
			for line := range strings.Lines(string(out)) {
				if w := utf8.RuneCountInString(strings.TrimRight(line, "\n")); w > p.draw.width() && !p.draw.Color {
					t.Errorf("%d columns: %s", w, line)
				}
			}
		})
	}
}

// NFS over TCP, with a reply that takes several segments.
func TestGoldenTCP(t *testing.T) {
	var out []byte
	d := Drawer{}
	each(t, nfsOverTCP(t), 0, func(v *rpc.View) { out = d.Append(out, v) })
	golden(t, "nfs-tcp", out)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("%s, line %d:\n got %s\nwant %s\n(go test -update, if this is right)", file, i+1, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		t.Fatalf("%s: %d lines, want %d", file, len(a), len(b))
	}
}

// Every transaction of every sample can be drawn: nothing unprintable, JSON
// that is JSON, and bytes of segments that add up.
func TestAll(t *testing.T) {
	files := sampled.Captures(t, "*")
	for _, f := range files {
		short, full, ascii := Drawer{}, Drawer{Verbose: true}, Drawer{ASCII: true}
		var e Encoder
		var b []byte
		each(t, sample(t, filepath.Base(f)), 0, func(v *rpc.View) {
			b = short.Append(b[:0], v)
			check(t, b, false)
			b = full.Append(b[:0], v)
			check(t, b, false)
			b = ascii.Append(b[:0], v)
			check(t, b, true)
			b = e.Append(b[:0], v)
			var o struct {
				Schema  string
				Packets []struct {
					Frame uint64
					Bytes uint64
					Role  string
					Again bool
				}
				Segments []struct{ Length, Moved, Used uint64 }
			}
			if err := json.Unmarshal(b, &o); err != nil || o.Schema != Schema || len(o.Packets) != len(v.Tx.Packets) {
				t.Fatalf("%s: %08x: %v\n%s", f, v.Tx.XID, err, b)
			}
			moved := uint64(0)
			for _, s := range o.Segments {
				moved += s.Moved
				if s.Moved > s.Length {
					t.Errorf("%s: %08x: %d of %d bytes moved", f, v.Tx.XID, s.Moved, s.Length)
				}
			}
			if moved != v.Tx.ReadBytes+v.Tx.WriteBytes {
				t.Errorf("%s: %08x: segments got %d bytes, not %d", f, v.Tx.XID, moved, v.Tx.ReadBytes+v.Tx.WriteBytes)
			}
		})
	}
}

func check(t *testing.T, b []byte, ascii bool) {
	t.Helper()
	for i, r := range string(b) {
		if r != '\n' && (r == utf8.RuneError || !unicode.IsPrint(r) || ascii && r > 0x7e) {
			t.Fatalf("%q in %q", r, b[max(0, i-60):min(len(b), i+20)])
		}
	}
}

// Packets are put into the phases of the transaction: the last
// packet of each is where the next one begins.
func TestTimeline(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-basic.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		each(t, sample(t, name), 0, func(v *rpc.View) {
			var tl Timeline
			tl.Reset(v.Tx)
			p, ok := v.Tx.Phases()
			if ok != tl.Known {
				t.Fatal("known")
			}
			if !ok {
				return
			}
			if tl.Begins(After) != p.Total || tl.Begins(transaction.PhaseCall) != 0 {
				t.Errorf("%08x: the phases take %v of %v", v.Tx.XID, tl.Begins(After), p.Total)
			}
			for r, want := range map[uint64]transaction.Phase{
				v.Tx.Call.Last.Number: transaction.PhaseCall, v.Tx.Reply.Last.Number: transaction.PhaseReply,
				v.Tx.Times.FirstPush.Number: transaction.PhasePush, v.Tx.Times.LastRead.Number: transaction.PhasePull, v.Tx.Times.Ack.Number: After,
			} {
				ref := v.Tx.Call.Last
				ref.Number = r
				if got := tl.Of(ref); r != 0 && got != want {
					t.Errorf("%08x: frame %d is in %v, not %v", v.Tx.XID, r, got, want)
				}
			}
		})
	}
}

func TestSpan(t *testing.T) {
	for _, c := range []struct {
		a, b uint64
		want string
	}{{1719, 1738, "1719-38"}, {99, 101, "99-101"}, {5, 5, "5"}, {10, 19, "10-9"}} {
		if got := span(c.a, c.b); got != c.want {
			t.Errorf("%d-%d: %s", c.a, c.b, got)
		}
	}
}

// A clock of the listing takes the place of the microseconds.
func TestClock(t *testing.T) {
	d := Drawer{Clock: &text.Clock{}}
	each(t, sample(t, "rocev2-nfs41-recall.pcap"), 0xb4466d78, func(v *rpc.View) {
		if out := d.Append(nil, v); !bytes.Contains(out, []byte(" 05:49:38.505631       0.0 │─ Send Only")) {
			t.Errorf("%s", out)
		}
	})
}

// FuzzLadder draws what can be decoded of a damaged capture.
