package decode_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// grouped decodes files and writes down all that comes out.
func grouped(t *testing.T, opt decode.Options, names ...string) []byte {
	t.Helper()
	r, err := capture.Open(names, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return written(t, opt, r, 0)
}

// written writes down all that comes out of packets. With trackers side by side, turns is how many take turns; 0: they run
// at the same time.
func written(t *testing.T, opt decode.Options, r capture.Reader, turns int) []byte {
	t.Helper()
	var out, closed bytes.Buffer
	opt.Observe(decode.Observer{Closed: func(c *rdma.Connection) {
		fmt.Fprintln(&closed, c.ID, c.Fabric, c.State, c.Ends, c.First, c.Last, c.Sent, c.MTU, c.Terminated, c.Tenant, transaction.CallsOf(c))
	}})
	d := decode.New(opt, func(tx *transaction.Transaction) {
		c := tx.Connection
		fmt.Fprintf(&out, "%d %v %v %q\n", c.ID, c.Ends, tx.Notes, holds.Digest(nil, tx))
	})
	switch {
	case turns > 0:
		d.RunInTurn(r, turns, 0)
	default:
		if err := d.Run(r); err != nil {
			t.Fatal(err)
		}
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
	files := sampled.Captures(t, "*")
	numbers := []int{1, 3}
	if testing.Short() {
		numbers = numbers[1:]
	}
	for i, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			opt := decode.Options{Transactions: transaction.Options{OnCompletion: i%2 != 0}}
			one := grouped(t, opt, name)
			for _, n := range numbers {
				opt.Trackers = n
				firstDifference(t, fmt.Sprint(n, " trackers"), grouped(t, opt, name), one)
			}
		})
	}
}

// manyHosts are captures between different hosts, as one: their packets in turn.
func manyHosts(list ...[]capture.Packet) []capture.Packet {
	var all []capture.Packet
	now := int64(1e18)
	for i, more := 0, true; more; i++ {
		more = false
		for _, packets := range list {
			if i < len(packets) {
				more = true
				p := packets[i]
				now += 1000
				p.Time, p.Number = now, uint64(len(all)+1)
				all = append(all, p)
			}
		}
	}
	return all
}

// moved is a short capture between hosts that no other number has.
func moved(which, hosts uint8, program ...mutate.Step) []capture.Packet {
	program = append(program, mutate.Step{Op: traffic.Elsewhere, Value: uint32(hosts) << 8})
	return traffic.Apply(which, mutate.Program(program...))
}

// TestTrackersTogether has the traffic of many hosts followed by different numbers of trackers.
func TestTrackersTogether(t *testing.T) {
	var list [][]capture.Packet
	for i := range uint8(80) {
		list = append(list, moved(i%uint8(traffic.Count()), 3*i))
	}
	packets := manyHosts(list...)
	numbers := []int{2, 3, 16, 100}
	if testing.Short() {
		numbers = numbers[1:2]
	}
	for _, completion := range []bool{false, true} {
		opt := decode.Options{Concurrent: true, Transactions: transaction.Options{OnCompletion: completion}}
		reader := func() *traffic.Reader { return &traffic.Reader{Packets: packets, Batch: 100} }
		one := written(t, opt, reader(), 0)
		opt.Trackers = 1
		want := written(t, opt, reader(), 0)
		firstDifference(t, "side by side", later(want), later(one))
		for _, n := range numbers {
			opt.Trackers = n
			firstDifference(t, fmt.Sprint(n, " trackers"), written(t, opt, reader(), 0), want)
			firstDifference(t, fmt.Sprint(n, " trackers in turn"), written(t, opt, reader(), n), want)
		}
	}
}

// TestTrackersWrapped has packets come twice, bare and in an overlay, and once more as another tenant with the same addresses: what the order of the
// capture tells of tunnels and clocks of switches reaches the trackers.
func TestTrackersWrapped(t *testing.T) {
	packets := sample(t, "rocev2-nfs41-recall.pcap", 0)
	for _, k := range someKinds(func(*wrap.Kind) bool { return true }) {
		bare, overlay, other := packets, wrapped(packets, k, 0x155, 0), wrapped(packets, k, 0x156, 1)
		for _, clock := range []decode.Clock{decode.ClockCapture, decode.ClockERSPAN} {
			for i, twice := range [][]capture.Packet{both(bare, overlay, 700), both(overlay, bare, 700)} {
				all := both(twice, other, 1900)
				opt := decode.Options{Clock: clock}
				want := written(t, opt, &traffic.Reader{Packets: slices.Clone(all), Batch: 100}, 0)
				for _, n := range []int{1, 3} {
					opt.Trackers = n
					got := written(t, opt, &traffic.Reader{Packets: slices.Clone(all), Batch: 100}, 0)
					firstDifference(t, fmt.Sprint(k.Name, ", clock ", clock, ", order ", i, ", ", n, " trackers"), later(got), later(want))
				}
			}
		}
	}
}

// later takes out what only a transaction that waits for its turn in the output may learn.
func later(b []byte) []byte { return laterNote.ReplaceAll(b, nil) }
