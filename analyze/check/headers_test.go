package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// way is how a capture is checked.
type way int

const (
	decoded way = iota // packets with all of their headers decoded
	headers            // Observer.Headers, where they say all
	unread             // the same, and nobody reads what is found
)

// finding is what the words of a finding begin with.
const finding = "found "

// verdicts is what all rules say of packets, and what they know of a connection at its end.
func verdicts(packets []capture.Packet, how way, batch int) (out []string) {
	options := check.Options{Rules: check.All()}
	if how == unread {
		options.Wanted = func(*check.Rule, check.Severity) bool { return false }
	}
	c := check.New(options, func(f *check.Finding) {
		out = append(out, fmt.Sprintf(finding+"%s packet %d: %s, %s, %s; %d %d", f.Rule.ID, f.Ref.Number, f.Expected, f.Seen, f.Reaction, f.Connection, f.XID))
	})
	o := c.Observer()
	o.Closed = func(x *rdma.Connection) {
		out = append(out, c.Known(x))
		c.Closed(x)
	}
	if how == decoded {
		o.Headers = nil
	}
	var v rpc.View
	traffic.Run(decode.New(decode.Options{Observers: []decode.Observer{o}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		c.Transaction(&v)
	}), packets, batch)
	c.Finish()
	left := c.Totals()
	for _, r := range check.Rules() {
		out = append(out, fmt.Sprintf("%s %+v", r.ID, *c.Count(r)))
		for s := check.Note; s <= check.Error; s++ {
			left[s] -= c.Unread(r, s)
		}
	}
	if how == unread && left != [check.Error + 1]uint64{} {
		out = append(out, fmt.Sprintf("not counted as unread: %v", left))
	}
	return append(out, fmt.Sprint(c.Totals()))
}

// same compares two ways.
func same(t *testing.T, packets []capture.Packet, how way, what string) {
	t.Helper()
	short, full := verdicts(packets, how, 64), verdicts(packets, decoded, 64)
	if how == unread {
		full = slices.DeleteFunc(full, func(s string) bool { return strings.HasPrefix(s, finding) })
	}
	if slices.Equal(short, full) {
		return
	}
	for i := range full {
		if i >= len(short) || short[i] != full[i] {
			t.Fatalf("%s, way %d:\n%q\nof decoded packets\n%q", what, how, short[min(i, len(short)-1)], full[i])
		}
	}
	t.Fatalf("%s, way %d: more: %q", what, how, short[len(full):])
}

// TestHeaders: findings and counts do not depend on whether the Checker is told of packets by Observer.Headers, in captures as
// they are and changed at random.
func TestHeaders(t *testing.T) {
	rounds := 15
	if testing.Short() {
		rounds = 3
	}
	for which := range traffic.Count() {
		rng := rand.New(rand.NewPCG(uint64(which), 99))
		for round := range rounds {
			var program []byte
			for range 5 * round {
				program = append(program, byte(rng.Uint32()))
			}
			packets := traffic.Apply(uint8(which), program)
			for _, how := range [...]way{headers, unread} {
				same(t, packets, how, fmt.Sprintf("capture %d, program %v", which, program))
			}
		}
	}
}
