package truth_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// TestConcurrent decodes every sample with and without a goroutine of its own
// for the transactions. The output must be the same, byte for byte.
func TestConcurrent(t *testing.T) {
	files := sampled.Captures(t, "*")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			one, two := output(t, file, false), output(t, file, true)
			if !bytes.Equal(one, two) {
				t.Errorf("outputs differ: %d and %d bytes", len(one), len(two))
			}
		})
	}
}

func output(t *testing.T, file string, concurrent bool) []byte {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var (
		enc ndjson.Encoder
		b   []byte
	)
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Concurrent: concurrent}, func(tx *transaction.Transaction) {
		v.Set(tx)
		b = append(enc.Append(b, &v), '\n')
		v.Learn()
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	return b
}
