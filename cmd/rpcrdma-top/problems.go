package main

import (
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// inputProblems tells what is wrong with the files and packets, once all has been
// read and screens are gone.
func inputProblems(n *cli.Problems, e monitor.Ending) {
	s := e.Snapshot
	n.Release()
	list, total := e.Reader.Problems()
	n.Files(list, total, &s.Decoder)
	n.Packets(&s.Decoder, total)
	if e := s.Orphans.Evicted; e > 0 {
		n.Printf("note: %s given up for lack of memory", text.Plural(e, "open call"))
	}
}
