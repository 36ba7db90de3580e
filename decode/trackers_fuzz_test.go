package decode_test

import (
	"cmp"
	"encoding/binary"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzTrackers has one tracker, and three side by side, decode a changed capture together with short ones between other
// pairs of hosts.
//
// how chooses options (bit 1) and what is compared: with one tracker for all (bit 2), or different numbers side by
// side, with little memory (bit 3); bits 4 to 7 say whose packets the others are.
func FuzzTrackers(f *testing.F) {
	for i := range traffic.Count() {
		for how := range uint8(4) {
			f.Add(uint8(i), how<<2, []byte{})
			f.Add(uint8(i), how<<2|2, mutate.Program(mutate.Step{Op: traffic.Drop, At: uint8(3 + 5*how)}, mutate.Step{Op: traffic.Double, At: 9, Value: 3}))
		}
	}
	var memory holds.Memory
	others := map[[2]uint8][]capture.Packet{}
	beside := func(which, hosts uint8) []capture.Packet {
		key := [2]uint8{which % uint8(traffic.Count()), hosts}
		packets, ok := others[key]
		if !ok {
			packets = moved(key[0], hosts)
			packets = packets[:min(len(packets), int(hosts)/16)]
			others[key] = packets
		}
		return packets
	}
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := traffic.Apply(which, program)
		if !mutate.Sample(program, 16) {
			packets = packets[:min(len(packets), 14)]
		}
		parts := [][]capture.Packet{packets, beside(which+how>>4+1, 120), beside(which+how>>5+2, 80)}
		packets = manyHosts(parts...)
		opt := fuzzOptions(how & 2)
		opt.Trackers = 3
		memory.Start()
		defer memory.End(t)
		if how&4 != 0 && apartFrom(parts) {
			alone(t, packets, opt, how&8 != 0)
			return
		}
		if how&8 != 0 {
			opt.Memory = 1 << 16
		}
		var out [2][][]byte
		var closed [2][]gone
		var d [2]*decode.Decoder
		for i, n := range []int{1, 3} {
			opt.Observers = []decode.Observer{{Closed: func(c *rdma.Connection) { closed[i] = append(closed[i], goneOf(c, c.ID)) }}}
			d[i] = decode.New(opt, func(tx *transaction.Transaction) {
				out[i] = append(out[i], holds.Digest(binary.BigEndian.AppendUint32(nil, uint32(tx.Connection.ID)), tx))
				holds.Transaction(t, tx)
			})
			d[i].RunInTurn(&traffic.Reader{Packets: packets, Batch: 24}, n, 0)
		}
		sameDigests(t, "three trackers", out[1], out[0])
		sameCounts(t, "three trackers", d[1], d[0])
		if !slices.Equal(closed[1], closed[0]) {
			t.Fatalf("three trackers: %+v\nand not\n%+v", closed[1], closed[0])
		}
	})
}

// gone is a connection that has ended.
type gone struct {
	id          int
	first, last uint64
	state       rdma.State
	why         string
}

func goneOf(c *rdma.Connection, id int) gone {
	return gone{id, c.First.Number, c.Last.Number, c.State, c.Terminated}
}

// sameCounts fails if two ways to decode the same packets count differently.
func sameCounts(t *testing.T, what string, got, want *decode.Decoder) {
	t.Helper()
	if a, b := got.Stats(), want.Stats(); a != b {
		t.Fatalf("%s: %+v\nand not\n%+v", what, a, b)
	}
	if a, b := got.Account(), want.Account(); !reflect.DeepEqual(a, b) {
		t.Fatalf("%s: %+v\nand not\n%+v", what, a, b)
	}
	if a, b := got.Orphans(), want.Orphans(); a != b {
		t.Fatalf("%s: %+v\nand not\n%+v", what, a, b)
	}
}

// apartFrom reports whether each part has a pair of hosts for itself. A change may have made them meet, or given a part
// several pairs: then a single tracker finds more, since it joins a setup to a connection between other hosts.
func apartFrom(parts [][]capture.Packet) bool {
	seen := map[netip.Addr]bool{}
	for _, p := range parts {
		hosts := addresses(p)
		if len(hosts) > 2 {
			return false
		}
		for h := range hosts {
			if seen[h] {
				return false
			}
		}
		maps.Copy(seen, hosts)
	}
	return true
}

// alone compares trackers side by side with a single one for everything.
func alone(t *testing.T, packets []capture.Packet, opt decode.Options, completion bool) {
	opt.Transactions.OnCompletion = completion
	var out [2][][]byte
	var closed [2][]gone
	var d [2]*decode.Decoder
	for i, trackers := range []int{3, 0} {
		opt.Trackers = trackers
		opt.Observers = []decode.Observer{{Closed: func(c *rdma.Connection) { closed[i] = append(closed[i], goneOf(c, 0)) }}}
		d[i] = decode.New(opt, func(tx *transaction.Transaction) { out[i] = append(out[i], holds.Digest(nil, tx)) })
	}
	d[0].RunInTurn(&traffic.Reader{Packets: packets, Batch: 24}, 3, 0)
	traffic.Run(d[1], packets, 24)
	// A single tracker notices at a message of any hosts that another's transaction has ended, and so may emit it earlier.
	sameDigests(t, "side by side", anyConnection(out[0]), anyConnection(out[1]))
	sameCounts(t, "side by side", d[0], d[1])
	for _, list := range closed {
		slices.SortFunc(list, func(a, b gone) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last)) })
	}
	if !slices.Equal(closed[0], closed[1]) {
		t.Fatalf("side by side: %+v\nand not\n%+v", closed[0], closed[1])
	}
}
