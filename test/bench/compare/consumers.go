package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
)

// consumer is a way to take transactions, with the flags before the file. All write to standard output.
type consumer struct {
	name string
	args []string
	goal float64 // CPU time, relative to the first of them; 0 for none
}

// consumerList begins with what the others are compared with: it tracks all transactions, and reads as much of them as a summary
// needs.
var consumerList = []consumer{
	{"-q", []string{"-q"}, 0},
	{"listing", []string{"-n"}, 1.3},
	{"report", []string{"report"}, 1.2},
	{"check", []string{"check"}, 1.2},
	{"-T ndjson", []string{"-T", "ndjson"}, 1.5},
	{"export parquet", []string{"export", "parquet", "-w", "-"}, 2.5},
	{"report --html", []string{"report", "--html", "-"}, 0},
}

// consumers writes the results for one capture. Load elsewhere on the machine adds to the CPU time of a program,
// since it takes its caches, and never subtracts: so there are two ratios, of the medians and of the least.
func consumers(w io.Writer, in *input, programs []*program, runs map[string]map[*input][]sample) {
	fmt.Fprintf(w, "\n### %s\n\n%s packets, %.1f MB, %.0f bytes a packet, NFSv%d\n\n",
		filepath.Base(in.path), thousands(in.packets), float64(in.bytes)/1e6, float64(in.bytes)/float64(in.packets), in.version)
	fmt.Fprintln(w, "| consumer | CPU s, median | least | × -q, medians | × -q, least | goal | wall s | MiB resident |")
	fmt.Fprintln(w, "|-|-:|-:|-:|-:|-:|-:|-:|")
	spent := func(s sample) float64 { return (s.user + s.sys).Seconds() }
	least := func(s []sample) float64 {
		return spent(slices.MinFunc(s, func(a, b sample) int { return int(a.user + a.sys - b.user - b.sys) }))
	}
	base := runs[consumerList[0].name][in]
	for i, p := range programs {
		s := runs[p.name][in]
		goal := "–"
		if g := consumerList[i].goal; g > 0 {
			goal = fmt.Sprintf("%.1f", g)
		}
		fmt.Fprintf(w, "| %s | %.3f | %.3f | %.2f | %.2f | %s | %.3f | %.0f |\n",
			p.name, median(s, spent), least(s), median(s, spent)/median(base, spent), least(s)/least(base), goal,
			median(s, func(s sample) float64 { return s.wall.Seconds() }), median(s, func(s sample) float64 { return float64(s.rss) / (1 << 20) }))
	}
}
