package simulate

import (
	"bytes"
	"math"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// draw makes a small run of a situation.
func draw(t *testing.T, name string, seed uint64) Config {
	t.Helper()
	for _, s := range Situations() {
		if s.Name == name {
			c := s.Draw(seed)
			c.Calls = min(c.Calls, 120)
			if c.Recall != nil {
				c.Recall.Wait = 0 // no call is made twice
			}
			return c
		}
	}
	t.Fatalf("no situation %q", name)
	return Config{}
}

func pcap(t *testing.T, r *Result, p Point) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WritePcap(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The decoder finds each call, with its reply, at each capture point, and nothing wrong.
func TestDecodes(t *testing.T) {
	for _, name := range []string{
		"healthy", "healthy, mixed sizes", "path-delay of one connection", "server-threads", "credits, none granted",
		"session-slots", "loss", "receiver-not-ready", "congestion", "path-stall, receiver pauses", "healthy, jitter",
		"healthy, several clients", "recall", "outage, server hangs", "congestion by others, no marks", "healthy, iWARP", "loss, iWARP",
		"session-slots, iWARP", "path-delay of one connection, iWARP",
	} {
		r := Run(draw(t, name, 3))
		for p := range Point(Points) {
			in, err := capture.NewReader(bytes.NewReader(pcap(t, r, p)), p.String(), capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			complete := 0
			d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
				if tx.State == transaction.Complete && tx.Client().Addr.String() == "10.1.1.1" {
					complete++
				}
			})
			if err := d.Run(in); err != nil {
				t.Fatal(err)
			}
			if r.Config.NFS4 && r.Config.Handshake {
				complete-- // CREATE_SESSION
			}
			if complete != r.Sums.Calls || r.Sums.Calls != r.Config.Calls {
				t.Errorf("%s, %v: %d of %d calls are complete, %d were to be made", name, p, complete, r.Sums.Calls, r.Config.Calls)
			}
			if bad := d.Stats().BadICRC; bad != 0 {
				t.Errorf("%s, %v: %d packets with a wrong ICRC", name, p, bad)
			}
		}
	}
}

// A seed gives the same capture each time.
func TestRepeats(t *testing.T) {
	c := draw(t, "loss", 5)
	a, b := Run(c), Run(c)
	if a.Sums != b.Sums || !bytes.Equal(pcap(t, a, AtSwitch), pcap(t, b, AtSwitch)) {
		t.Errorf("two runs of one seed differ: %+v, %+v", a.Sums, b.Sums)
	}
}

// What a cause takes is what is gone without it.
func TestTruth(t *testing.T) {
	c := draw(t, "healthy", 1)
	c.Depth, c.Connections = 1, 1
	c.PathDelay = &PathDelay{OneWay: 1_000_000}
	truth := Tell(c).Truth(AtClient, 0, math.MaxInt64)
	if len(truth.Causes) != 1 || truth.Causes[0].Code != "path-delay" {
		t.Fatalf("causes are %+v, not the path's delay", truth.Causes)
	}
	// A call is one round trip, or two if the server reads its data.
	if got := truth.Causes[0].Gone.Latency / int64(c.Calls); got < 2_000_000 || got > 4_000_000 {
		t.Errorf("1 ms each way made calls %d ns longer, want one to two round trips", got)
	}
	for _, s := range Situations() {
		c := s.Draw(9)
		healthy := len(s.Name) >= 7 && s.Name[:7] == "healthy"
		on := 0
		for _, w := range switches {
			if w.on(&c) {
				on++
			}
		}
		if healthy != (on == 0) {
			t.Errorf("%s has %d causes", s.Name, on)
		}
	}
}
