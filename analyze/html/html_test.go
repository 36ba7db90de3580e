package html

import (
	"bytes"
	"encoding/xml"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

const samples = "../../samples"

func report(tb testing.TB, file string, opt latency.Options) *latency.Report {
	tb.Helper()
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer in.Close()
	return reportOf(tb, in, file, opt)
}

func reportOf(tb testing.TB, in capture.Reader, file string, opt latency.Options) *latency.Report {
	tb.Helper()
	r := latency.New(opt)
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Observers: []decode.Observer{r.Observer()}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		r.Add(&v)
		v.Learn()
	})
	if err := d.Run(in); err != nil {
		tb.Fatal(err)
	}
	st := d.Stats()
	return r.Report(latency.Source{Inputs: []string{filepath.Base(file)}, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last})
}

func write(tb testing.TB, rep *latency.Report) string {
	tb.Helper()
	var b bytes.Buffer
	if err := Write(&b, rep, nil, nil, "rpcrdma-dump 1.0"); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// outside finds what a browser would load, besides links within the page.
var outside = regexp.MustCompile(`(?i)(src|href|action|data)\s*=\s*["']?[^#"'\s>][^"'>]*|url\(|@import|<(link|iframe|object|embed|base|form)\b`)

var number = regexp.MustCompile(`NaN|Inf\b|[-+]?\d+e[+-]?\d+`)

// wellFormed reads a page as XML as far as HTML is not different: the SVGs.
func wellFormed(t *testing.T, page string) int {
	t.Helper()
	n := 0
	for rest := page; ; n++ {
		_, after, ok := strings.Cut(rest, "<svg ")
		if !ok {
			return n
		}
		d := xml.NewDecoder(strings.NewReader("<svg " + after))
		for depth := 0; ; {
			token, err := d.Token()
			if err != nil {
				t.Fatalf("an SVG is not well-formed: %v", err)
			}
			if _, ok := token.(xml.EndElement); ok {
				if depth--; depth == 0 {
					rest = after[int(d.InputOffset())-len("<svg "):]
					break
				}
			}
			if _, ok := token.(xml.StartElement); ok {
				depth++
			}
			if e, ok := token.(xml.StartElement); ok {
				for _, a := range e.Attr {
					if a.Name.Local != "aria-label" && a.Name.Local != "data-seconds" && number.MatchString(a.Value) {
						t.Fatalf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
					}
					if (a.Name.Local == "width" || a.Name.Local == "height") && strings.HasPrefix(a.Value, "-") {
						t.Fatalf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
					}
				}
			}
		}
	}
}

func TestSamples(t *testing.T) {
	files := sampled.Captures(t, "*")
	for _, file := range files {
		for _, by := range []string{"operation", "file,model"} {
			keys, err := latency.ParseKeys(by)
			if err != nil {
				t.Fatal(err)
			}
			rep := report(t, file, latency.Options{By: keys, Top: 5, Inline: latency.DefaultInline})
			page := write(t, rep)
			if m := outside.FindString(page); m != "" {
				t.Errorf("%s: the page refers to something outside: %s", file, m)
			}
			if m := regexp.MustCompile(`[0-9][KMG]B\b.{0,20}`).FindString(page); m != "" {
				t.Errorf("%s: bytes in a unit of 1000: %s", file, m)
			}
			drawings := wellFormed(t, page)
			if rep.All.Count > 0 && drawings < 5 {
				t.Errorf("%s: %d drawings", file, drawings)
			}
			for _, g := range rep.Groups {
				if len(g.Key) > 0 && !strings.Contains(page, strings.ReplaceAll(g.Key[0], "+", "&#43;")) && len(rep.Groups) <= maxRows {
					t.Errorf("%s: group %v is not on the page", file, g.Key)
				}
			}
		}
	}
}

// What comes from a capture cannot become part of the page's code, wherever it
// stands.
func TestHostile(t *testing.T) {
	const evil = `</title></script></svg>"'><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}` + "\x00\u202e"
	d := latency.Distribution{Count: 1, Sum: math.MaxInt64, Mean: math.MaxInt64, Min: 0, Max: math.MaxInt64, P50: 1, P90: math.MaxInt64}
	g := &latency.Group{
		Key: []string{evil, evil}, Counts: latency.Counts{Count: math.MaxUint64, Errors: 1, Statuses: map[string]uint64{evil: 1}}, Latency: &d,
		Rate: latency.Rate(math.Inf(1)), ByteRate: latency.Rate(math.NaN()),
		Chunks: latency.ChunkEconomy{Transactions: 1, Read: latency.ChunkUse{Messages: 1, Offered: math.MaxUint64}},
		Inline: []latency.Inline{{Threshold: 1}},
	}
	rep := &latency.Report{
		Inputs: []string{evil}, Filter: evil, By: []string{"file", "status"}, All: g, Groups: []*latency.Group{g},
		Slowest: []*latency.Slow{{
			Operation: evil, File: evil, Status: evil, Model: evil, Notes: []string{evil}, Troubles: []string{evil}, Total: math.MaxInt64,
			Phases: map[string]int64{"server": math.MaxInt64, "argument_pull": 5, "pull_wait": 9},
		}},
		Troubles: []latency.Trouble{{Kind: evil, Events: 1, Transactions: 1, Compared: 1, Others: 1, Mean: math.MaxInt64}},
		Notes:    []string{evil},
		Connections: []latency.Connection{{
			Fabric: "rocev2", Client: latency.Endpoint{Address: evil}, Server: latency.Endpoint{Address: evil}, Ending: evil,
			Remarks: []latency.Remark{{Level: evil, Text: evil}},
		}},
	}
	page := write(t, rep)
	for _, bad := range []string{"<script>alert", "<img", "alert(2)>", "</title></script>"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	if n := strings.Count(strings.ToLower(page), "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	wellFormed(t, page)
}

// A file name from a capture, all the way.
func TestHostileName(t *testing.T) {
	file := filepath.Join(samples, "rocev2-nfs41-recall.pcap")
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	const evil = "<script>alert('x')</script>"
	r := latency.New(latency.Options{By: []latency.Key{latency.ByFile}, Top: 50})
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		if f := v.File(); f != nil {
			f.Name = []byte(evil)
		}
		r.Add(&v)
	})
	if err := d.Run(in); err != nil {
		t.Fatal(err)
	}
	rep := r.Report(latency.Source{})
	found := false
	for _, g := range rep.Groups {
		found = found || strings.Contains(g.Key[0], evil)
	}
	if !found {
		t.Fatal("the name is not in the report")
	}
	page := write(t, rep)
	if strings.Contains(page, "<script>alert") || !strings.Contains(page, "&lt;script&gt;alert") {
		t.Error("the name is not escaped")
	}
}

func TestEmpty(t *testing.T) {
	page := write(t, latency.New(latency.Options{}).Report(latency.Source{}))
	if !strings.Contains(page, "</html>") {
		t.Error("the page has no end")
	}
}

// timeless is a capture without times.
type timeless struct{ capture.Reader }

func (x timeless) Read(b *capture.Batch) error {
	err := x.Reader.Read(b)
	for i := range b.Packets {
		b.Packets[i].Time = 0
	}
	return err
}

// TestTimeless: nothing leads to what a page of a capture without times does not have.
func TestTimeless(t *testing.T) {
	file := filepath.Join("..", "..", "samples", "rocev2-nfs41-recall.pcap")
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	page := write(t, reportOf(t, timeless{in}, file, latency.Options{Top: 5}))
	links := 0
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if links++; !strings.Contains(page, ` id="`+m[1]+`"`) {
			t.Errorf("link to #%s", m[1])
		}
	}
	if links == 0 || strings.Contains(page, `id="phases"`) {
		t.Errorf("%d links; there are phases", links)
	}
}

func TestScales(t *testing.T) {
	for _, c := range []struct {
		span float64
		n    int
		want float64
	}{{10, 10, 1}, {12.3, 10, 2}, {0.7, 10, 0.1}, {100, 4, 50}, {30, 4, 10}, {0, 4, 1}, {64, 4, 20}} {
		if got := plot.NiceStep(c.span, c.n); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("step of %v in %d: %v, want %v", c.span, c.n, got, c.want)
		}
	}
	s := newLogScale(int64(50*time.Microsecond), int64(2*time.Second), 0, 600)
	var got []string
	s.decades(func(_ float64, text string) { got = append(got, text) })
	if want := "10 µs,100 µs,1 ms,10 ms,100 ms,1 s,10 s"; strings.Join(got, ",") != want {
		t.Errorf("decades %v, want %s", got, want)
	}
	if s.at(10000) != 0 || s.at(10e9) != 600 || math.Abs(s.at(int64(time.Millisecond))-200) > 1e-9 {
		t.Errorf("scale: %v %v %v", s.at(10000), s.at(10e9), s.at(1e6))
	}
}
