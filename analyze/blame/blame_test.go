package blame_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// run decodes a capture and passes on its transactions, blame included.
func run(t testing.TB, file string, f func(*transaction.Transaction)) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := blame.Lean(0)
	opt := decode.Options{Observers: []decode.Observer{b.Recorder.Observer()}}
	opt.Transactions.Ended = b.Ended
	if err := decode.New(opt, f).Run(r); err != nil {
		t.Fatal(err)
	}
}

// TestSums: in any capture, shares sum to phases, and without losses no time is lost.
func TestSums(t *testing.T) {
	files := sampled.Captures(t, "*")
	for _, dir := range filepath.SplitList(os.Getenv("RPCRDMA_CAPTURES")) {
		more, _ := filepath.Glob(filepath.Join(dir, "*.pcap*"))
		files = append(files, more...)
	}
	if len(files) < 10 {
		t.Fatal(files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			n, lost := 0, time.Duration(0)
			run(t, file, func(tx *transaction.Transaction) {
				holds.Transaction(t, tx)
				p, ok := tx.Phases()
				if tx.Blame == nil {
					if f := tx.Connection.Fabric; ok && f != rdma.TCP && f != rdma.UDP {
						t.Errorf("XID %#x: nobody has looked", tx.XID)
					}
					return
				}
				n++
				lost += p.Total - tx.Blame.Of(rdma.CauseRest)
			})
			if trouble := strings.Contains(file, "loss") || strings.Contains(file, "reorder"); trouble != (lost > 0) {
				t.Errorf("%v lost of %d transactions", lost, n)
			}
		})
	}
}
