// Command wrap puts the packets of an Ethernet capture into a tunnel or mirror,
// to see what a decoder makes of it.
//
//	wrap -kind erspan3 -id 7 input.pcap output.pcap
//	wrap                                          # lists the kinds
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/wrap"
)

func main() {
	kind := flag.String("kind", "", "wrapping; without it all are listed")
	id := flag.Uint("id", 5, "VNI, key, session or label")
	flag.Parse()
	if *kind == "" {
		for _, k := range wrap.Kinds(uint32(*id)) {
			fmt.Println(k.Name)
		}
		return
	}
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: wrap -kind KIND [-id N] INPUT OUTPUT")
		os.Exit(2)
	}
	if err := run(*kind, uint32(*id), flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "wrap:", err)
		os.Exit(1)
	}
}

func run(name string, id uint32, in, out string) (err error) {
	var kind *wrap.Kind
	for _, k := range wrap.Kinds(id) {
		if k.Name == name {
			kind = &k
		}
	}
	if kind == nil {
		return fmt.Errorf("no kind %q", name)
	}
	r, err := capture.Open([]string{in}, capture.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := capture.NewWriter(f, capture.WriterOptions{Format: capture.Pcap, Link: kind.Link})
	x := wrap.New(*kind, id)
	var b capture.Batch
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		for i := range b.Packets {
			p := b.Packets[i]
			if p.Link != capture.LinkEthernet {
				return fmt.Errorf("packet %d is no Ethernet frame", p.Number)
			}
			data, wire := x.Frame(p.Data, int(p.Length))
			p.Data, p.Length, p.Link = data, uint32(wire), kind.Link
			if err := w.Write(&p); err != nil {
				return err
			}
		}
	}
}
