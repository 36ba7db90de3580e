package decode_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/floods"
	"github.com/rpcrdma/toolkit/internal/mutate"
	"github.com/rpcrdma/toolkit/internal/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/mutate/traffic"
	"github.com/rpcrdma/toolkit/internal/wrap"
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
	opt.Closed = func(c *rdma.Connection) {
		fmt.Fprintln(&closed, c.ID, c.Fabric, c.State, c.Ends, c.First, c.Last, c.Sent, c.MTU, c.Terminated, c.Tenant, transaction.CallsOf(c))
	}
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
	files, _ := filepath.Glob("../samples/*.pcap*")
	if len(files) < 10 {
		t.Fatal(files)
	}
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
	for _, k := range wrap.Kinds(0x155) {
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

// TestTrackersGroups has groups consume most transactions themselves. The others come in the order in which one tracker has
// them, although groups then tell only after a batch how far they are.
func TestTrackersGroups(t *testing.T) {
	var list [][]capture.Packet
	for i := range uint8(80) {
		list = append(list, moved(i%uint8(traffic.Count()), 3*i))
	}
	packets := manyHosts(list...)
	name := func(tx *transaction.Transaction) string {
		return fmt.Sprint(tx.Connection.Ends, tx.XID, tx.State, tx.First().Number)
	}
	for _, completion := range []bool{false, true} {
		opt := decode.Options{Concurrent: true, Transactions: transaction.Options{OnCompletion: completion}}
		for _, every := range []uint64{2, 7} {
			passed := func(tx *transaction.Transaction) bool { return tx.First().Number%every == 0 }
			var want []string
			all := 0
			d := decode.New(opt, func(tx *transaction.Transaction) {
				if all++; passed(tx) {
					want = append(want, name(tx))
				}
			})
			if err := d.Run(&traffic.Reader{Packets: packets, Batch: 100}); err != nil || len(want) < 20 {
				t.Fatal(err, len(want))
			}
			for _, n := range []int{1, 2, 16} {
				opt := opt
				var taken [64]int // by group
				opt.Trackers, opt.Group = n, func(group int) func(*transaction.Transaction) bool {
					return func(tx *transaction.Transaction) bool {
						if passed(tx) {
							return false
						}
						taken[group]++
						return true
					}
				}
				var got []string
				d := decode.New(opt, func(tx *transaction.Transaction) { got = append(got, name(tx)) })
				if err := d.Run(&traffic.Reader{Packets: packets, Batch: 100}); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d trackers, every %d, in order %v: other transactions than those of one tracker:\n%v\n%v", n, every, !completion, got, want)
				}
				if n := sum(taken[:]); n != all-len(want) {
					t.Errorf("%d trackers: groups took %d, want %d", opt.Trackers, sum(taken[:]), all-len(want))
				}
			}
		}
	}
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// later takes out what only a transaction that waits for its turn in the output may learn.
func later(b []byte) []byte { return laterNote.ReplaceAll(b, nil) }

// several reads several floods, a batch of each in turn.
type several struct {
	list   []*floods.Reader
	number uint64
}

func (s *several) Read(b *capture.Batch) error {
	for len(s.list) > 0 {
		r := s.list[0]
		s.list = s.list[1:]
		if r.Read(b) == nil {
			s.list = append(s.list, r)
			for i := range b.Packets {
				s.number++
				b.Packets[i].Number, b.Packets[i].Time = s.number, int64(s.number)
			}
			return nil
		}
	}
	return io.EOF
}

func (*several) Problems() ([]*capture.Problem, int) { return nil, 0 }
func (*several) Close() error                        { return nil }

// TestTrackersMemory floods groups of hosts all at once: what is given up does not depend on how many trackers there
// are, and what is held exceeds the limit by little.
func TestTrackersMemory(t *testing.T) {
	const limit = 16 << 20
	part := 100
	if testing.Short() {
		part = 300
	}
	var want []string
	for _, n := range []int{1, 3} {
		s := &several{}
		for i := range floods.All {
			f := &floods.All[i]
			s.list = append(s.list, f.Read(f.N/part))
		}
		var got []string
		opt := decode.Options{Memory: limit, Trackers: n, Closed: func(c *rdma.Connection) {
			got = append(got, fmt.Sprint(c.ID, c.Fabric, c.First.Number, c.Last.Number, c.Terminated))
		}}
		d := decode.New(opt, func(tx *transaction.Transaction) {
			got = append(got, fmt.Sprint(tx.Connection.ID, tx.XID, tx.State, tx.Notes, tx.First().Number, tx.Memory()))
		})
		peak := d.RunInTurn(s, n, 0)
		got = append(got, fmt.Sprintf("%+v %+v %+v %d", d.Stats(), d.Account(), d.Orphans(), peak))
		if peak > limit+limit/4 {
			t.Errorf("%d trackers: %d bytes held, limit %d", n, peak, limit)
		}
		if n == 1 {
			want = got
			if s := d.Stats(); !testing.Short() && (s.EvictedConnections == 0 || peak < limit/2) {
				t.Errorf("nothing was given up: %d bytes held, %+v", peak, s)
			}
			continue
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%d trackers: line %d of %d is %q, and not, of %d, %q", n, i, len(got), at(got, i), len(want), at(want, i))
			}
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

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
			packets = packets[:min(len(packets), int(hosts)/12)]
			others[key] = packets
		}
		return packets
	}
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := traffic.Apply(which, program)
		if !mutate.Sample(program, 4) {
			packets = packets[:min(len(packets), 24)]
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
			opt.Closed = func(c *rdma.Connection) { closed[i] = append(closed[i], goneOf(c, c.ID)) }
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
		opt.Closed = func(c *rdma.Connection) { closed[i] = append(closed[i], goneOf(c, 0)) }
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
