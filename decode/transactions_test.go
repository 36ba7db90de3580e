package decode

import (
	"errors"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Transactions yields what a Decoder emits, stops when the loop is left, and ends
// with the error of the reader.
func TestTransactions(t *testing.T) {
	const name = "../samples/rocev2-nfs41-recall.pcap"
	open := func() capture.Reader {
		r, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	var want, got []uint32
	if err := New(Options{}, func(tx *transaction.Transaction) { want = append(want, tx.XID) }).Run(open()); err != nil {
		t.Fatal(err)
	}
	for tx, err := range Transactions(open(), Options{Concurrent: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tx.XID)
	}
	if len(want) == 0 || len(got) != len(want) {
		t.Fatalf("%d transactions, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("transaction %d: %08x, want %08x", i, got[i], want[i])
		}
	}
	n := 0
	for range Transactions(open(), Options{}) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d transactions after leaving the loop", n)
	}
	broken := errors.New("broken")
	var last error
	for tx, err := range Transactions(&failing{open(), broken}, Options{}) {
		if last = err; (tx == nil) != (err != nil) {
			t.Errorf("%v with %v", tx, err)
		}
	}
	if !errors.Is(last, broken) {
		t.Errorf("the last error is %v", last)
	}
}

// failing fails after the first batch.
type failing struct {
	capture.Reader
	err error
}

func (f *failing) Read(b *capture.Batch) error {
	r := f.Reader
	f.Reader = nil
	if r == nil {
		return f.err
	}
	return r.Read(b)
}
