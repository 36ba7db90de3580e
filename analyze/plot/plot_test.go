package plot_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/plot"
)

// A file is well-formed, whatever the texts say and the numbers are.
func TestWriteSVG(t *testing.T) {
	p := plot.New(200, `"axes" & <others>`)
	p.Frame()
	y := p.Linear(7, true, func(float64) string { return "<b>" })
	p.XTick(p.X1, "]]>")
	p.XTitle("</svg><script>alert(1)</script>")
	p.AddRect(math.NaN(), y(3), math.Inf(1), 4, `x" onload="alert(1)`, 0.5, "<title>")
	p.AddPath("M0 0L1 1", "s0 d1")
	var b bytes.Buffer
	if err := plot.WriteSVG(&b, "two", &p.Chart, &p.Chart); err != nil {
		t.Fatal(err)
	}
	elements := map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, &b)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("attribute %s=%q", a.Name.Local, a.Value)
				}
			}
		}
	}
	if elements["svg"] != 1 || elements["g"] != 2 || elements["script"] != 0 || elements["path"] != 2 || elements["text"] == 0 {
		t.Errorf("%v", elements)
	}
	if !strings.Contains(b.String(), `viewBox="0 0 1000 400"`) {
		t.Errorf("not as high as both: %s", b.String()[:200])
	}
}

func TestLog(t *testing.T) {
	s := plot.NewLog(0.3, 20, 100, 0)
	var at []float64
	for pos, v := range s.Decades() {
		at = append(at, v, math.Round(pos))
	}
	want := []float64{0.1, 100, 1, 67, 10, 33, 100, 0}
	for i := range want {
		if len(at) != len(want) || math.Abs(at[i]-want[i]) > 1e-9 {
			t.Fatalf("%v, want %v", at, want)
		}
	}
	for v, want := range map[float64]float64{0: 100, 1e-9: 100, 1e9: 0, 0.1: 100} {
		if got := s.At(v); got != want {
			t.Errorf("%v is at %v, want %v", v, got, want)
		}
	}
	if s := plot.NewLog(10, 10, 0, 1); s.To != s.From+1 {
		t.Errorf("one value: %+v", s)
	}
}
