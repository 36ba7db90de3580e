package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

func main() {
	files := []string{}
	for _, a := range os.Args[1:] {
		if a != "-T" && a != "ndjson" {
			files = append(files, a)
		}
	}
	r, err := capture.Open(files, capture.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	w := bufio.NewWriterSize(os.Stdout, 1<<16)
	v := rpc.View{Names: &rpc.Names{}}
	var e ndjson.Encoder
	var buf []byte
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		buf = e.Append(buf[:0], &v)
		v.Learn()
		buf = append(buf, '\n')
		w.Write(buf)
	})
	err = d.Run(r)
	w.Flush()
	fmt.Fprintf(os.Stderr, "%+v %+v %v\n", d.Stats(), d.Orphans(), err)
}
