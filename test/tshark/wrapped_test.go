//go:build tshark

package tshark

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

var (
	wrappedSamples = flag.String("wrapped", "rocev2-nfs41-recall.pcap,iwarp-nfs41-recall.pcap", "samples whose wrapped copies are compared with tshark, by commas; docs/reference/tunnels.md has the result of the default")
	updateWrapped  = flag.Bool("update", false, "write the table of docs/reference/tunnels.md instead of comparing with it")
)

// help is what tshark needs to look into a wrapping, or why it cannot.
type help struct {
	args    []string
	refuses string // what it says about the whole file
	unlike  bool   // it decodes too little for a comparison
	text    string // of docs/reference/tunnels.md; empty: nothing is needed
}

// helps are the wrappings that tshark 4.0 does not decode without more. What is not
// here must be decoded as it is.
var helps = map[string]help{
	"vxlan-8472":        {args: []string{"-d", "udp.port==8472,vxlan"}, text: "with `-d udp.port==8472,vxlan`: the port that Linux used before it had a number"},
	"mpls-control-word": {args: []string{"-d", "mpls.label==5,pwethcw"}, text: "with `-d mpls.label==5,pwethcw`: nothing in the packet says what a label carries, and its guess fails"},
	"mpls-ethernet":     {args: []string{"-d", "mpls.label==5,pwethnocw"}, text: "with `-d mpls.label==5,pwethnocw`, likewise"},
	"fabricpath":        {unlike: true, text: "in part: RoCE in it, not iWARP; not compared"},
	"mpls-link":         {refuses: "network type 219 unknown or unsupported", text: "no: link type 219 is unknown to it"},
}

// idFields are tshark's names of the identifiers.
var idFields = map[link.TunnelType]string{
	link.VXLAN: "vxlan.vni", link.VXLANGPE: "vxlan.vni", link.GENEVE: "geneve.vni", link.GRE: "gre.key", link.ERSPAN: "erspan.spanid",
	link.MPLS: "mpls.label", link.PPPoE: "pppoe.session_id", link.NSH: "nsh.spi", link.CiscoMeta: "cmd.sgt", link.PBB: "ieee8021ah.isid",
}

const wrapID = 5

// wrapFile makes a wrapped copy of a capture.
func wrapFile(t *testing.T, from, to string, k wrap.Kind) {
	t.Helper()
	r, err := capture.Open([]string{from}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	w := capture.NewWriter(out, capture.WriterOptions{Format: capture.Pcap})
	x := wrap.New(k, wrapID)
	var b capture.Batch
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Packets {
			p := b.Packets[i]
			var n int
			p.Data, n = x.Frame(p.Data, int(p.Length))
			p.Length, p.Link, p.Tap = uint32(n), k.Link, 0
			if err := w.Write(&p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Flush(), out.Close()); err != nil {
		t.Fatal(err)
	}
}

// told is what we decode of a capture: its transactions without the tunnel, and the
// identifiers of the packets that have one.
func told(t *testing.T, file string) (transactions []string, ids map[uint64]uint32) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ids = map[uint64]uint32{}
	v := rpc.View{Names: &rpc.Names{}}
	var e ndjson.Encoder
	d := decode.New(decode.Options{Observers: []decode.Observer{{Packet: func(p *decode.PacketView) {
		if o := p.Frame.Outermost(); o != nil && o.HasID {
			ids[p.Packet.Number] = o.ID
		}
	}}}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(e.Append(nil, &v), &fields); err != nil {
			t.Fatal(err)
		}
		v.Learn()
		delete(fields, "tunnel")
		b, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		transactions = append(transactions, string(b))
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	return transactions, ids
}

// TestWrapped puts samples into every wrapping. Our transactions must equal those of
// the bare capture, for all samples; for a few, tshark must say about the wrapped copy
// what we say, and have the same identifiers.
func TestWrapped(t *testing.T) {
	tshark, version := find(t)
	t.Log(version)
	known := knownFields(t, tshark)
	bare := map[string][]string{}
	var names []string
	for _, f := range captures(t) {
		if filepath.Dir(f) != "../../samples" && !strings.HasPrefix(f, os.TempDir()) {
			continue // of a folder of the user's
		}
		if strings.Contains(filepath.Base(f), ".both.") {
			continue // two capture points: a wrapped copy in one file would be of one
		}
		names = append(names, f)
		bare[f], _ = told(t, f)
	}
	var rows []string
	for _, k := range wrap.Kinds(wrapID) {
		t.Run(k.Name, func(t *testing.T) {
			equal, all := 0, 0
			for _, name := range names {
				file := filepath.Join(t.TempDir(), filepath.Base(name))
				wrapFile(t, name, file, k)
				got, ids := told(t, file)
				all += len(bare[name])
				for i, want := range bare[name] {
					if i < len(got) && got[i] == want {
						equal++
					}
				}
				if len(got) != len(bare[name]) {
					t.Errorf("%s: %d transactions, want %d", filepath.Base(name), len(got), len(bare[name]))
				}
				if strings.Contains(","+*wrappedSamples+",", ","+filepath.Base(name)+",") && !helps[k.Name].unlike {
					compareWrapped(t, tshark, known, file, k, ids)
				}
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			if equal != all {
				t.Errorf("%d of %d transactions are as in the bare captures", equal, all)
			}
			text := helps[k.Name].text
			if text == "" {
				text = "yes"
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %d of %d |", k.Name, text, equal, all))
		})
	}
	checkTable(t, rows)
}

// compareWrapped compares what tshark and we decode of a wrapped capture.
func compareWrapped(t *testing.T, tshark string, known map[string]bool, file string, k wrap.Kind, ids map[uint64]uint32) {
	t.Helper()
	h := helps[k.Name]
	if h.refuses != "" {
		out, err := exec.Command(tshark, "-n", "-r", file).CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte(h.refuses)) {
			t.Logf("this tshark reads it: %v, %s", err, out)
		}
		return
	}
	compare := func(args []string) *report {
		d := &diff{report: newReport(), known: known, ours: decodeCapture(t, file), theirs: dissect(t, tshark, file, known, args...)}
		told := 0
		d.fail = func(text string) {
			if told++; told <= 3 && (h.args == nil || args != nil) {
				t.Error(text)
			}
		}
		d.compare()
		return d.report
	}
	if h.args != nil && compare(nil).failures == 0 {
		t.Log("this tshark needs no help")
	}
	r := compare(h.args)
	values := 0
	for _, n := range r.agreed {
		values += n
	}
	if r.failures > 0 || values < 1000 {
		t.Errorf("%d values agree, %d do not", values, r.failures)
	}
	n := 0
	if field := idFields[k.Tunnel.Type]; k.Tunnel.HasID && field != "" {
		n = compareIDs(t, tshark, file, field, h.args, ids)
	}
	t.Logf("%s: %d values and %d identifiers agree", filepath.Base(file), values, n)
}

// compareIDs compares the identifiers of the outermost tunnel. Of a stack of labels
// the bottom counts.
func compareIDs(t *testing.T, tshark, file, field string, args []string, ids map[uint64]uint32) (n int) {
	t.Helper()
	cmd := exec.Command(tshark, append([]string{"-n", "-r", file, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", "-e", "frame.number", "-e", field}, args...)...)
	cmd.Env = environment(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	for line := range strings.Lines(string(out)) {
		number, list, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if list == "" {
			continue
		}
		v := strings.Split(list, ",")
		id, err := strconv.ParseUint(v[len(v)-1], 0, 32)
		if err != nil {
			t.Fatalf("%s: %q", field, list)
		}
		frame, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatalf("frame number %q", number)
		}
		if ours, ok := ids[frame]; !ok || uint64(ours) != id {
			t.Errorf("frame %d: tunnel %d (%v), tshark %s %d", frame, ours, ok, field, id)
			return n
		}
		n++
	}
	if n < 100 {
		t.Errorf("only %d values of %s", n, field)
	}
	return n
}

const (
	tunnelsDocument = "../../docs/reference/tunnels.md"
	kindsBegin      = "<!-- kinds -->\n"
	kindsEnd        = "<!-- end of kinds -->\n"
)

// checkTable compares the table of docs/reference/tunnels.md with rows.
func checkTable(t *testing.T, rows []string) {
	t.Helper()
	b, err := os.ReadFile(tunnelsDocument)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), kindsBegin)
	table, after, ok2 := strings.Cut(rest, kindsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of kinds", tunnelsDocument)
	}
	head := strings.SplitAfterN(table, "\n", 3)
	want := head[0] + head[1] + strings.Join(rows, "\n") + "\n"
	switch {
	case t.Failed() || len(rows) < len(wrap.Kinds(wrapID)):
		return
	case !*updateWrapped:
		if want != table {
			t.Errorf("%s says otherwise (-update writes it), want\n%s", tunnelsDocument, want)
		}
		return
	}
	if err := os.WriteFile(tunnelsDocument, []byte(before+kindsBegin+want+kindsEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
