package run_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

// guardSeeds are calls of the samples from which the guard's fuzz target starts.
const guardSeeds = "../guard/testdata/calls.txt"

// TestGuardSeeds: the seeds are what the samples hold: two calls of each sequence
// of operations, with a few bytes for the data that travelled in chunks.
func TestGuardSeeds(t *testing.T) {
	files, _ := filepath.Glob("../../samples/*.pcap*")
	var out bytes.Buffer
	fmt.Fprintf(&out, "# program version procedure arguments; written by go test ./replay/run -run GuardSeeds -update\n")
	seen := map[string]int{}
	for _, name := range files {
		r, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var v rpc.View
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			v.Set(tx)
			if tx.Backward || v.Args() == nil || v.ArgsErr != nil || v.ArgsLeft > 0 {
				return
			}
			key := fmt.Sprint(tx.Program, tx.Version, tx.Procedure)
			ops := v.Operations()
			for i := range ops {
				key += " " + ops[i].Name
			}
			if seen[key]++; seen[key] > 2 {
				return
			}
			inline(v.Args())
			if b := v.Args().Append(nil); len(b) <= 2048 {
				fmt.Fprintf(&out, "%d %d %d %s\n", tx.Program, tx.Version, tx.Procedure, hex.EncodeToString(b))
			}
		})
		if err := d.Run(r); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
	if *update {
		if err := os.WriteFile(guardSeeds, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(guardSeeds)
	if err != nil || !slices.Equal(have, out.Bytes()) {
		t.Errorf("the samples give other seeds than %s has (-update writes them): %v", guardSeeds, err)
	}
}

// inline replaces data by a few bytes.
func inline(m xdr.Message) {
	data := func(d *xdr.Data) {
		n := min(d.Length, 16)
		*d = xdr.Data{Length: n, Inline: []byte("sixteen bytes ..")[:n]}
	}
	switch m := m.(type) {
	case *nfs3.WRITE3args:
		data(&m.Data)
		m.Count = m.Data.Length
	case *nfs3.SYMLINK3args:
		data(&m.Symlink.SymlinkData)
	case *nfs4.CompoundArgs:
		for i := range m.Ops {
			switch a := m.Ops[i].Body.(type) {
			case *nfs4.WRITE4args:
				data(&a.Data)
			case *nfs4.CREATE4args:
				if a.Objtype.Type == nfs4.NF4LNK {
					data(&a.Objtype.Linkdata)
				}
			}
		}
	}
}
