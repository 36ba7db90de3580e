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
	"os"

	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
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

func run(kind string, id uint32, in, out string) (err error) {
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return wrap.Copy(kind, id, in, f)
}
