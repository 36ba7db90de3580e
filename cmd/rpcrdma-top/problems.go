package main

import (
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// inputProblems reports what is wrong with the files and packets, after everything was read and the screen is
// gone.
func inputProblems(n *cli.Problems, src *source, s *monitor.Snapshot) {
	n.Release()
	list, total := src.Problems()
	n.Files(list, total, &s.Decoder)
	n.Packets(&s.Decoder, total)
	if e := s.Orphans.Evicted; e > 0 {
		n.Printf("note: %s given up for lack of memory", text.Plural(e, "open call"))
	}
}
