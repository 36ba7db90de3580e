package html

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// full is a report with everything that only pages ask for; draw makes the drawings.
func full(tb testing.TB, file string, opt latency.Options, change func(*rpc.View)) *latency.Report {
	tb.Helper()
	in, err := capture.Open([]string{filepath.Join(samples, file)}, capture.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer in.Close()
	opt.Ran = true
	r := latency.New(opt)
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Observers: []decode.Observer{r.Observer()}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		if change != nil {
			change(&v)
		}
		r.Add(&v)
		v.Learn()
	})
	if err := d.Run(in); err != nil {
		tb.Fatal(err)
	}
	st := d.Stats()
	return r.Report(latency.Source{Inputs: []string{file}, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last})
}

func drawAs(s string) func([]byte, *rpc.View) []byte {
	return func(b []byte, _ *rpc.View) []byte { return append(b, s...) }
}

// The policy has the hashes of exactly the style and the script that the page holds: otherwise browsers show
// neither.
func TestPolicy(t *testing.T) {
	rep := full(t, "rocev2-nfs3-basic.pcap.zst", latency.Options{Top: 3, Draw: drawAs("x")}, nil)
	var diff bytes.Buffer
	if err := WriteDiff(&diff, latency.Compare(rep, rep), nil, "rpcrdma-dump 1"); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{write(t, rep), diff.String()} {
		_, policy, _ := strings.Cut(page, `http-equiv="Content-Security-Policy" content="`)
		policy, _, _ = strings.Cut(policy, `"`)
		policy = html.UnescapeString(policy)
		if strings.Contains(policy, "unsafe") || !strings.HasPrefix(policy, "default-src 'none';") {
			t.Errorf("policy %s", policy)
		}
		for _, element := range []string{"style", "script"} {
			_, body, ok := strings.Cut(page, "<"+element+">")
			body, _, _ = strings.Cut(body, "</"+element+">")
			sum := sha256.Sum256([]byte(body))
			if want := element + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !ok || !strings.Contains(policy, want) {
				t.Errorf("%s is not in the policy %s", want, policy)
			}
		}
		// No attribute runs code: the policy would forbid it anyway.
		if m := regexp.MustCompile(`<[^>]+\s(on[a-z]+|style)=`).FindString(page); m != "" {
			t.Errorf("an attribute is code or style: %s", m)
		}
	}
}

// Names and drawings from a capture stay text: in tables, titles of drawings, links and the data of the script.
func TestHostileDetails(t *testing.T) {
	const evil = `</pre></title></script><script>alert('x')</script><a href="javascript:alert(1)">"'>` + "\u202e\x1b[2J<a\nb>"
	rep := full(t, "rocev2-nfs41-recall.pcap", latency.Options{By: []latency.Key{latency.ByFile}, Top: 50, Draw: drawAs(strings.ReplaceAll(evil, "\n", ""))}, func(v *rpc.View) {
		if f := v.File(); f != nil {
			f.Name = []byte(evil)
		}
	})
	var diff bytes.Buffer
	d := latency.Compare(rep, rep)
	d.A.Inputs, d.Filter, d.Notes = []string{evil}, evil, []string{evil}
	if err := WriteDiff(&diff, d, []Table{{Title: evil, Header: []string{evil}, Right: []bool{true}, Rows: [][]string{{evil}}, Lines: []string{evil}}}, "rpcrdma-dump 1"); err != nil {
		t.Fatal(err)
	}
	rep.Inputs = []string{evil, evil}
	for name, page := range map[string]string{"report": write(t, rep), "diff": diff.String()} {
		for _, bad := range []string{"<script>alert", `href="javascript`, "\u202e", "\x1b", "a\nb"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: %q is in the page", name, bad)
			}
		}
		if !strings.Contains(page, "&lt;/pre&gt;") {
			t.Errorf("%s: the name is not on the page", name)
		}
		want := 1
		if name == "report" {
			want++ // what the cells of the heat map stand for
		}
		if n := strings.Count(strings.ToLower(page), "<script"); n != want {
			t.Errorf("%s: %d scripts", name, n)
		}
		wellFormed(t, page)
	}
}

// The data of the script are JSON that cannot end their element.
func TestHeatCells(t *testing.T) {
	rep := full(t, "rocev2-nfs3-basic.pcap.zst", latency.Options{}, nil)
	_, text, ok := strings.Cut(write(t, rep), `<script type="application/json" id="heat-cells">`)
	text, _, _ = strings.Cut(text, "</script>")
	var got heatCells
	if err := json.Unmarshal([]byte(text), &got); err != nil || !ok {
		t.Fatal(err)
	}
	if strings.ContainsAny(text, "<>&") {
		t.Error("markup in the data")
	}
	n := uint64(0)
	for _, s := range got.Slots {
		for row, c := range s {
			if row < 0 || row >= len(got.Rows) {
				t.Errorf("row %d of %d", row, len(got.Rows))
			}
			n += c
		}
	}
	if n != rep.All.Latency.Count {
		t.Errorf("cells stand for %d calls of %d", n, rep.All.Latency.Count)
	}
}

// Each link leads to something on the page, and each id is there once.
func TestLinks(t *testing.T) {
	for _, file := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs3-loss.both.pcapng.zst", "iwarp-nfs3-loss.pcap.zst"} {
		rep := full(t, file, latency.Options{Top: 20, Draw: drawAs("drawing")}, nil)
		page := write(t, rep)
		ids := map[string]int{}
		for _, m := range regexp.MustCompile(`\sid="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			if ids[m[1]]++; ids[m[1]] > 1 {
				t.Errorf("%s: id %s is there twice", file, m[1])
			}
		}
		links := 0
		for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			links++
			if ids[strings.TrimPrefix(m[1], "#")] != 1 {
				t.Errorf("%s: link to %q", file, m[1])
			}
		}
		if links < 40 || ids["x0"] != 1 || ids["x19"] != 1 || ids["x20"] != 0 {
			t.Errorf("%s: %d links", file, links)
		}
		// All intervals together have as many calls as the report.
		n := uint64(0)
		for i := range rep.Series.Slots {
			groups, slowest := rep.Series.Slots[i].Ran()
			most := int64(0)
			for _, g := range groups {
				n += g.Count
			}
			if most = rep.Series.Slots[i].Max; slowest.Total != most {
				t.Errorf("%s: the slowest of interval %d took %d, not %d", file, i, slowest.Total, most)
			}
		}
		if n != rep.All.Count {
			t.Errorf("%s: %d calls ran, of %d", file, n, rep.All.Count)
		}
	}
}

// The legend of the troubles has the kinds of the table, in its order and with its numbers.
func TestLegend(t *testing.T) {
	for _, file := range []string{"rocev2-nfs3-loss.both.pcapng.zst", "iwarp-nfs3-loss.pcap.zst"} {
		v := newView(full(t, file, latency.Options{}, nil))
		if len(v.Costs) == 0 || len(v.Kinds) < len(v.Costs) {
			t.Fatalf("%s: %d kinds, %d lines", file, len(v.Kinds), len(v.Costs))
		}
		for i, c := range v.Costs {
			if k := v.Kinds[i]; k.Name != c.Kind || k.Note != fmt.Sprint(c.Events) && !strings.HasPrefix(k.Note, fmt.Sprint(c.Events)+" (drawn: ") {
				t.Errorf("%s: legend %+v, table %s %d", file, k, c.Kind, c.Events)
			}
		}
	}
}

func TestEndName(t *testing.T) {
	for _, c := range []struct {
		fabric string
		end    latency.Endpoint
		want   string
	}{
		{"rocev2", latency.Endpoint{Address: "192.0.2.1", Endpoint: 17}, "192.0.2.1 QP 0x11"},
		{"rocev2", latency.Endpoint{Address: "192.0.2.1"}, "192.0.2.1"},
		{"iwarp", latency.Endpoint{Address: "2001:db8::1", Endpoint: 20049}, "[2001:db8::1]:20049"},
	} {
		if got := endName(c.fabric, &c.end); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestSortable(t *testing.T) {
	for s, want := range map[string]string{
		"1.5ms": "1500000", "-3µs": "-3000", "~+0.4%": "0.4", "-69%": "-69", "x15.5": "1450", "~x2": "100", "12": "12", "-": "", "slower": "", "nan": "", "": "",
	} {
		if got := sortable(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

// The longest page of a report stays below 500 KB by default, and all that is left out is counted.
func TestSize(t *testing.T) {
	rep := full(t, "rocev2-nfs3-basic.pcap.zst", latency.Options{Top: 200, Draw: drawAs(strings.Repeat("0123456789abcde\n", 24<<6))}, nil)
	slots := rep.Series.Slots
	for len(slots) < latency.AutoIntervals {
		slots = append(slots, rep.Series.Slots...)
	}
	slots = slots[:latency.AutoIntervals]
	for i := range slots {
		slots[i].Start = rep.Start.Add(time.Duration(i) * time.Duration(rep.Series.Interval)).UTC()
	}
	rep.Series.Slots = slots
	page := write(t, rep)
	if len(page) > 500_000 {
		t.Errorf("%d bytes", len(page))
	}
	v := newView(rep)
	drawn := 0
	for _, s := range v.Slow {
		drawn += len(s.Drawing)
	}
	if drawn > maxDrawings || drawn == 0 || v.NoDraw == 0 || v.MoreSlow != 100 {
		t.Errorf("%d bytes of drawings, %d without, %d more", drawn, v.NoDraw, v.MoreSlow)
	}
	if !strings.Contains(page, "rpcrdma-dump show") {
		t.Error("nothing says what is left out")
	}
}
