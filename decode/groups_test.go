package decode_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/mutate/holds"
)

// grouped decodes files and writes down all that comes out.
func grouped(t *testing.T, opt decode.Options, names ...string) []byte {
	t.Helper()
	r, err := capture.Open(names, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return written(t, opt, r)
}

func written(t *testing.T, opt decode.Options, r capture.Reader) []byte {
	t.Helper()
	var out, closed bytes.Buffer
	opt.Closed = func(c *rdma.Connection) {
		fmt.Fprintln(&closed, c.ID, c.Fabric, c.State, c.Ends, c.First, c.Last, c.Sent, c.MTU, c.Terminated, c.Tenant, transaction.CallsOf(c))
	}
	d := decode.New(opt, func(tx *transaction.Transaction) {
		c := tx.Connection
		fmt.Fprintf(&out, "%d %v %v %q\n", c.ID, c.Ends, tx.Notes, holds.Digest(nil, tx))
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&out, "%s%+v\n%+v\n%+v\n", closed.Bytes(), d.Stats(), d.Account(), d.Orphans())
	return out.Bytes()
}

func firstDifference(t *testing.T, what string, got, want []byte) {
	t.Helper()
	a, b := bytes.Split(got, []byte{'\n'}), bytes.Split(want, []byte{'\n'})
	for i := range max(len(a), len(b)) {
		var x, y []byte
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s: line %d of %d is\n%.600s\nand not, of %d,\n%.600s", what, i+1, len(a), x, len(b), y)
			return
		}
	}
}

// TestTrackers has samples decoded by one tracker, and by different numbers of trackers side by side.
func TestTrackers(t *testing.T) {
	files, _ := filepath.Glob("../samples/*.pcap*")
	if len(files) < 10 {
		t.Fatal(files)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			for _, completion := range []bool{false, true} {
				opt := decode.Options{Transactions: transaction.Options{OnCompletion: completion}}
				opt.Concurrent = true
				one := grouped(t, opt, name)
				for _, n := range []int{1, 3} {
					opt.Trackers = n
					firstDifference(t, fmt.Sprint(n, " trackers"), grouped(t, opt, name), one)
				}
			}
		})
	}
}
