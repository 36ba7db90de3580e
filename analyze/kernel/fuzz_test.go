package kernel

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzJoin joins changed captures with what the kernels wrote of them, of which
// the lines are changed: those from a place that from names on. The result is
// JSON, and no more calls are joined than there are.
func FuzzJoin(f *testing.F) {
	names := []string{"rocev2-nfs41-recall", "rocev2-nfs3-longcall"}
	var text [2][3][][]byte
	for i, name := range names {
		for j, ext := range []string{".trace.client", ".trace.server", ".mountstats"} {
			b, err := os.ReadFile(filepath.Join(sampleDir, name+ext))
			if err != nil {
				f.Fatal(err)
			}
			text[i][j] = bytes.SplitAfter(b, []byte("\n"))
		}
	}
	// The captures of those names; see package traffic.
	captures := [2][]uint8{{0, 1, 2, 3}, {8, 9}}
	for i := range uint8(6) {
		f.Add(i, uint8(0), []byte{}, []byte{})
		f.Add(i, i*40, []byte{}, []byte{})
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which, from uint8, lines, program []byte) {
		k := int(which & 1)
		packets := traffic.Apply(captures[k][int(which>>1)%len(captures[k])], program)
		memory.Start()
		j := New(Options{Calls: 200})
		for i, list := range text[k] {
			at := int(from) * len(list) / 256
			list = list[at:min(len(list), at+10)]
			b := bytes.Join(mutate.Units(list, lines, 2000), nil)
			var err error
			if i < 2 {
				err = j.ReadTrace("t", bytes.NewReader(b))
			} else {
				err = j.ReadMountstats("m", bytes.NewReader(b))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		var v rpc.View
		traffic.Run(decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			holds.Transaction(t, tx)
			v.Set(tx)
			j.Add(&v)
			n++
		}), packets, 16)
		r := j.Result()
		if from&3 == 0 { // reflection takes its time
			if _, err := json.Marshal(r); err != nil {
				t.Fatal(err)
			}
		}
		for _, x := range []*Records{r.Clients, r.Servers} {
			if x != nil && (x.Joined > n || x.Joined > x.Records) {
				t.Fatalf("%d transactions: %+v", n, *x)
			}
		}
		memory.End(t)
	})
}
