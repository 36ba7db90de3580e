package check_test

import (
	"encoding/json"
	"slices"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzCheck checks changed captures against all rules. What is found can be
// printed, and depends neither on where batches end nor on how much is decoded of
// ordinary packets.
func FuzzCheck(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), uint8(0), []byte{})
		f.Add(uint8(i), uint8(1), []byte{})
		f.Add(uint8(i), uint8(4), []byte{})
		f.Add(uint8(i), uint8(5), []byte{})
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := traffic.Apply(which, program)
		memory.Start()
		texts := func(batch int, decoded bool) (out []string) {
			var e ndjson.Encoder
			c := check.New(check.Options{Rules: check.All()}, func(f *check.Finding) {
				b := e.AppendFinding(nil, f)
				for _, r := range string(b) {
					if r != '\n' && (r == utf8.RuneError || !unicode.IsPrint(r)) {
						t.Fatalf("%q in %q", r, b)
					}
				}
				if !json.Valid(b) {
					t.Fatalf("%s", b)
				}
				out = append(out, string(b))
			})
			var v rpc.View
			o := c.Observer()
			if decoded {
				o.Headers = nil
			}
			d := decode.New(decode.Options{Observers: []decode.Observer{o}}, func(tx *transaction.Transaction) {
				holds.Transaction(t, tx)
				v.Set(tx)
				c.Transaction(&v)
			})
			traffic.Run(d, packets, batch)
			c.Finish()
			return out
		}
		all := texts(100, false)
		switch how & 7 {
		case 1:
			if one := texts(1, false); !slices.Equal(one, all) {
				t.Fatalf("%q\nin one batch\n%q", one, all)
			}
		case 4:
			if full := texts(100, true); !slices.Equal(full, all) {
				t.Fatalf("%q\nin full\n%q", full, all)
			}
		}
		if how&7 == 5 {
			same(t, packets, headers, "changed")
			same(t, packets, unread, "changed")
		}
		memory.End(t)
	})
}
