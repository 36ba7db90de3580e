// Package truth_test compares the transactions of every sample with what the
// kernels at both ends of the wire say about the same run.
package truth_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/extract"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/truth"
)

const samples = "../../samples"

func TestSamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples in %s (%v)", samples, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		base, rest, _ := strings.Cut(name, ".")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kernel, err := truth.Load(filepath.Join(samples, base+".truth.json"))
			if err != nil {
				t.Fatal(err)
			}
			list, dir := run(t, file)
			taps := 1
			if strings.HasPrefix(rest, "both.") {
				taps = 2
			}
			r := truth.Compare(kernel, list, truth.Options{Taps: taps})
			if err := truth.CompareExtract(kernel, dir, r); err != nil {
				t.Error(err)
			}
			t.Logf("%d values compared, %d files with the right contents, %d differences explained", r.Checks, r.Files, len(r.Explained))
			for _, m := range r.Mismatches {
				t.Error(m.String())
			}
			if want := len(kernel.Calls) > 0; want && r.Checks == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// run decodes a capture as rpcrdma-dump does, and extracts the contents of files to a
// directory.
func run(t *testing.T, file string) ([]*truth.Transaction, string) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := t.TempDir()
	x, err := extract.New(dir, extract.Options{Holes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var (
		out bytes.Buffer
		b   []byte
		enc ndjson.Encoder
	)
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Transactions: transaction.Options{KeepData: true}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		b = append(enc.Append(b[:0], &v), '\n')
		out.Write(b)
		if err := x.Add(&v); err != nil {
			t.Error(err)
		}
		v.Learn()
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	if list, n := r.Problems(); n > 0 {
		t.Errorf("%d problems: %v", n, list)
	}
	if _, err := x.Close(v.Names); err != nil {
		t.Error(err)
	}
	list, err := truth.ReadTransactions(&out)
	if err != nil {
		t.Fatal(err)
	}
	return list, dir
}
