package main

import (
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/units"
)

// inputProblems tells what is wrong with the files and packets, once all has been
// read and screens are gone.
func inputProblems(n *cli.Problems, e monitor.Ending) {
	s := e.Snapshot
	n.Release()
	list, total := e.Reader.Problems()
	n.Files(list, total, &s.Decoder)
	if src, ok := e.Reader.(*source); ok {
		n.Selected(src.span)
		n.Snapped(src.cut.Load())
		n.CapturedTwice(src.Reader)
	}
	n.Backwards(&s.Decoder)
	n.Headers(&s.Orphans.Malformed)
	n.Packets(&s.Decoder, total)
	if left := s.WhyBeyond; left > 0 {
		n.Printf("note: why calls are slow does not count %s, of connections or hosts beyond the limit: see --limit-memory", units.Plural(left, "call"))
	}
	n.GivenUp(s.Orphans.Evicted, &s.Decoder, cli.MemoryFlag)
}
