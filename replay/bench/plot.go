package bench

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// palette has colours that most people tell apart (Okabe and Ito).
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x00, 0x00, 0x00, 0xff}, {0x99, 0x99, 0x99, 0xff},
}

// SVG draws throughput and the processor time of both sides for each byte over
// the size of calls: one line for each combination of all else.
func SVG(w io.Writer, list []*Result) error {
	show := differs(list)
	lines := map[string][]*Result{}
	var names []string
	for _, r := range list {
		if r.Err != "" || r.Bytes == 0 || r.Size == 0 {
			continue
		}
		var parts []string
		for i, c := range columns {
			if show[i] && c.name != "SIZE" {
				if v := c.of(r); v != "" {
					parts = append(parts, strings.TrimSpace(v))
				}
			}
		}
		name := strings.Join(parts, " ")
		if lines[name] == nil {
			names = append(names, name)
		}
		lines[name] = append(lines[name], r)
	}
	slices.Sort(names)
	rates, cpus := plot.New(), plot.New()
	rates.Title.Text, rates.Y.Label.Text = "Throughput", "MB/s"
	cpus.Title.Text, cpus.Y.Label.Text = "Processor time of client and server", "ns for each byte"
	for _, p := range []*plot.Plot{rates, cpus} {
		p.X.Label.Text = "bytes of a call"
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizes{}
		p.Legend.Top, p.Legend.Left = true, true
		p.Legend.TextStyle.Font.Size = vg.Points(8)
		p.Add(plotter.NewGrid())
	}
	cpus.Y.Scale, cpus.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: 3}
	cpus.Legend.Left = false
	drawn := false
	for i, name := range names {
		points := lines[name]
		slices.SortStableFunc(points, func(a, b *Result) int { return a.Size - b.Size })
		var mb, ns plotter.XYs
		for _, r := range points {
			x := float64(r.Size)
			mb = append(mb, plotter.XY{X: x, Y: r.Rate() / 1e6})
			cost := r.CPUPerByte(false)
			if s := r.CPUPerByte(true); s > 0 {
				cost += s
			}
			ns = append(ns, plotter.XY{X: x, Y: math.Max(cost, 1e-6)})
		}
		for k, xys := range []plotter.XYs{mb, ns} {
			l, s, err := plotter.NewLinePoints(xys)
			if err != nil {
				return err
			}
			l.Color, s.Color = palette[i%len(palette)], palette[i%len(palette)]
			l.Dashes = [][]vg.Length{nil, {vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(2)}}[i/len(palette)%3]
			s.Shape = draw.CircleGlyph{}
			p := []*plot.Plot{rates, cpus}[k]
			p.Add(l, s)
			p.Legend.Add(name, l, s)
			drawn = true
		}
	}
	if !drawn {
		return fmt.Errorf("nothing to draw: no result moves data")
	}
	rates.Y.Min = 0
	const width, height = 9 * vg.Inch, 6 * vg.Inch
	c := vgsvg.New(width, 2*height)
	top := draw.New(c)
	rates.Draw(draw.Crop(top, 0, 0, height, 0))
	cpus.Draw(draw.Crop(top, 0, 0, 0, -height))
	_, err := c.WriteTo(w)
	return err
}

// sizes marks powers of two.
type sizes struct{}

func (sizes) Ticks(lo, hi float64) []plot.Tick {
	var out []plot.Tick
	for v := 1.0; v <= hi*1.0001; v *= 2 {
		if v >= lo*0.9999 {
			out = append(out, plot.Tick{Value: v, Label: strings.TrimSpace(size(int(v)))})
		}
	}
	return out
}
