package check_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/internal/testtools/simulate"
)

// accused is what is said of packets that blames somebody: errors and warnings, messages that were not delivered, blocked paths.
func accused(packets []capture.Packet) map[string]string {
	out := map[string]string{}
	c := check.New(check.Options{Rules: check.All()}, func(f *check.Finding) {
		if f.Severity >= check.Warning {
			out[f.Severity.String()+" "+f.Rule.ID] = fmt.Sprint(f.Ref.Number, " ", f.Expected, "; ", f.Seen, "; ", f.Reaction)
		}
	})
	rec := fabric.New(fabric.Options{})
	opt := decode.Options{Observers: []decode.Observer{c.Observer()}}
	opt.Observers = append(opt.Observers, rec.Observer())
	var v rpc.View
	d := decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		c.Transaction(&v)
		for _, m := range []transaction.Delivery{tx.CallDelivery(), tx.ReplyDelivery()} {
			if m > transaction.Acknowledged {
				out["delivery "+m.String()] = fmt.Sprintf("%x %v %v", tx.XID, tx.State, tx.Notes)
			}
		}
	})
	d.Batch(&capture.Batch{Packets: slices.Clone(packets)})
	d.Flush()
	c.Finish()
	for _, b := range rec.Report(nil).Blocked {
		out["blocked"] = fmt.Sprintf("%+v", b)
	}
	return out
}

// TestThinned: a capture of traffic that breaks no rule accuses nobody of more where packets are missing from it, whichever they are, or where it
// begins or ends in between.
func TestThinned(t *testing.T) {
	files, tries := simulated(t), 2
	if !testing.Short() {
		files, tries = append(files, sampled.Captures(t, "*")...), 12
	}
	for n, file := range files {
		packets := everything(t, file)
		packets = packets[:min(len(packets), 3000)]
		whole := accused(packets)
		try := func(what string, p []capture.Packet) {
			for verdict, about := range accused(p) {
				if _, ok := whole[verdict]; !ok {
					t.Errorf("%s, %s: %s: %s", filepath.Base(file), what, verdict, about)
				}
			}
		}
		random := rand.New(rand.NewPCG(uint64(n), 20))
		without := func(leave func(p *capture.Packet) bool) []capture.Packet {
			return slices.DeleteFunc(slices.Clone(packets), func(p capture.Packet) bool { return leave(&p) })
		}
		var f link.Frame
		from := func(p *capture.Packet) netip.Addr {
			link.Decode(p.Link, p.Data, p.Length, &f)
			return f.Src
		}
		only := from(&packets[0])
		try("one direction", without(func(p *capture.Packet) bool { return from(p) == only }))
		try("the other direction", without(func(p *capture.Packet) bool { return from(p) != only }))
		for range tries {
			i := random.IntN(len(packets))
			j := min(len(packets), i+1+random.IntN(40))
			try(fmt.Sprintf("without %d", i+1), slices.Delete(slices.Clone(packets), i, i+1))
			try(fmt.Sprintf("without %d to %d", i+1, j), slices.Delete(slices.Clone(packets), i, j))
			try(fmt.Sprintf("from %d", i+1), packets[i:])
			try(fmt.Sprintf("up to %d", i), packets[:i])
			share := random.Float64() * 0.3
			try(fmt.Sprintf("without %.0f %%", 100*share), without(func(*capture.Packet) bool { return random.Float64() < share }))
		}
	}
}

// simulated are captures of the simulator of which nothing is to be said.
func simulated(t *testing.T) []string {
	var out []string
	for i, s := range simulate.Situations() {
		if !strings.HasPrefix(s.Name, "healthy") {
			continue
		}
		c := s.Draw(uint64(i))
		c.Calls = min(c.Calls, 60)
		name := filepath.Join(t.TempDir(), s.Name)
		var b bytes.Buffer
		if err := simulate.Run(c).WritePcap(&b, simulate.Point(i%simulate.Points)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		out = append(out, name)
	}
	return out
}

func everything(tb testing.TB, file string) []capture.Packet {
	tb.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	var out []capture.Packet
	for {
		var b capture.Batch
		err := r.Read(&b)
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			out = append(out, p)
		}
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}
