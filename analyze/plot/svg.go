package plot

import (
	_ "embed"
	"html/template"
	"io"
	"sync"
)

// Template defines "chart", for templates of package html/template: a chart as
// an element of a page.
//
//go:embed chart.tmpl
var Template string

var templates = sync.OnceValue(func() *template.Template { return template.Must(template.New("").Parse(Template)) })

// Style is what a file of its own looks like. Classes s0 to s7 are eight colours that most people distinguish
// (Okabe and Ito), for lines and points; d1 and d2 are dashes.
const style = `
text { font: 12px "DejaVu Sans", Verdana, sans-serif; fill: #1f2328; } .tick, .title { fill: #59636e; } .head { font-size: 15px; font-weight: bold; }
.paper { fill: #ffffff; } .axis { stroke: #59636e; } .grid { stroke: #e4e8ec; }
path { fill: none; stroke-width: 2; stroke-linejoin: round; } .point { stroke-width: 1; }
.d1 { stroke-dasharray: 9 4; } .d2 { stroke-dasharray: 3 3; }
.s0 { stroke: #0072b2; } .s1 { stroke: #d55e00; } .s2 { stroke: #009e73; } .s3 { stroke: #cc79a7; }
.s4 { stroke: #e69f00; } .s5 { stroke: #56b4e9; } .s6 { stroke: #000000; } .s7 { stroke: #999999; }
.point.s0 { fill: #0072b2; } .point.s1 { fill: #d55e00; } .point.s2 { fill: #009e73; } .point.s3 { fill: #cc79a7; }
.point.s4 { fill: #e69f00; } .point.s5 { fill: #56b4e9; } .point.s6 { fill: #000000; } .point.s7 { fill: #999999; }
`

// Colours and Dashes are how many classes there are to tell lines apart; dash 0
// has none.
const (
	Colours = 8
	Dashes  = 3
)

type part struct {
	*Chart
	Top float64
}

// WriteSVG writes charts below each other as a file.
func WriteSVG(w io.Writer, label string, charts ...*Chart) error {
	file := struct {
		Chart
		Style template.CSS
		Parts []part
	}{Chart{Width: Width, Label: label}, style, nil}
	for _, c := range charts {
		file.Parts = append(file.Parts, part{c, file.Height})
		file.Height += c.Height
	}
	return templates().ExecuteTemplate(w, "file", file)
}
