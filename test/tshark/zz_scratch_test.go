package tshark

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

type dumper struct {
	stack []string
	seen  map[string]int
	ex    map[string]string
}

func (d *dumper) leaf(kind, name string, v any) {
	p := ""
	if len(d.stack) > 0 {
		p = d.stack[len(d.stack)-1]
	}
	k := p + "." + name + " " + kind
	d.seen[k]++
	if d.ex[k] == "" {
		d.ex[k] = fmt.Sprint(v)
	}
}
func (d *dumper) Begin(name, typ string, i int)            { d.stack = append(d.stack, typ) }
func (d *dumper) End()                                     { d.stack = d.stack[:len(d.stack)-1] }
func (d *dumper) Uint(n string, v uint64)                  { d.leaf("uint", n, v) }
func (d *dumper) Int(n string, v int64)                    { d.leaf("int", n, v) }
func (d *dumper) Bool(n string, v bool)                    { d.leaf("bool", n, v) }
func (d *dumper) Enum(n string, v uint32, s string)        { d.leaf("enum", n, s) }
func (d *dumper) Flags(n string, v uint64, s string)       { d.leaf("flags", n, s) }
func (d *dumper) Bytes(n string, v []byte)                 { d.leaf("bytes", n, fmt.Sprintf("%x", v)) }
func (d *dumper) String(n string, v []byte)                { d.leaf("string", n, string(v)) }
func (d *dumper) Data(n string, v xdr.Data)                { d.leaf("data", n, v.Length) }
func (d *dumper) Time(n string, s int64, ns uint32)        { d.leaf("time", n, s) }

func TestScratch(t *testing.T) {
	fs, _ := filepath.Glob(os.Getenv("RPCRDMA_CAPTURES") + "/*-basic.pcap")
	d := &dumper{seen: map[string]int{}, ex: map[string]string{}}
	for _, f := range fs {
		r, err := capture.Open([]string{f}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		v := rpc.View{}
		dec := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			v.Set(tx)
			if v.Args != nil {
				d.stack = append(d.stack[:0], fmt.Sprintf("%T", v.Args))
				v.Args.Walk(d)
			}
			if v.Result != nil {
				d.stack = append(d.stack[:0], fmt.Sprintf("%T", v.Result))
				v.Result.Walk(d)
			}
		})
		if err := dec.Run(r); err != nil {
			t.Fatal(err)
		}
	}
	var ks []string
	for k := range d.seen {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	for _, k := range ks {
		e := d.ex[k]
		if len(e) > 40 {
			e = e[:40]
		}
		fmt.Println(d.seen[k], k, e)
	}
}
