// Command walk does the least that any decoder has to do: it reads the records
// of captures, finds the InfiniBand packets in them and checks their invariant
// CRCs. Its speed is a yardstick for the real decoder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

func main() {
	flag.Parse()
	if flag.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: walk FILE...")
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

// run prints how many packets and bytes there are, and how many ICRCs are good,
// bad, and not there.
func run(w io.Writer, files []string) error {
	r, err := capture.Open(files, capture.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	var (
		b                               capture.Batch
		f                               link.Frame
		c                               roce.Checker
		packets, bytes, good, bad, none uint64
	)
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for i := range b.Packets {
			p := &b.Packets[i]
			packets++
			bytes += uint64(len(p.Data))
			link.Decode(p.Link, p.Data, p.Length, &f)
			if f.Proto == link.UDP && f.DstPort != 4791 || f.Proto == link.TCP || f.Proto == link.None {
				none++
				continue
			}
			switch c.Check(&f) {
			case roce.Good:
				good++
			case roce.Bad:
				bad++
			default:
				none++
			}
		}
	}
	_, err = fmt.Fprintln(w, packets, bytes, good, bad, none)
	return err
}
