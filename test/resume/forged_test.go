package resume

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/snapshot"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// TestForged restores states that somebody has changed under a right checksum: an error, or a decoder that can
// be saved again, but no panic, and no more memory than the limit.
func TestForged(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 21))
	accepted := 0
	for _, name := range []string{"rocev2-nfs41-mixed-load.pcap.zst", "iwarp-nfs3-loss.pcap.zst", "rocev2-nfs3-longcall.pcap"} {
		packets := all(t, "../../samples/"+name)
		packets = packets[:len(packets)*2/3]
		v := &variants[0]
		x := v.new(new(record), new(record))
		if err := x.d.Feed(&traffic.Reader{Packets: packets, Batch: 100}); err != nil {
			t.Fatal(err)
		}
		var state bytes.Buffer
		if err := x.d.SaveState(&state, decode.StateOptions{Parts: x.parts}); err != nil {
			t.Fatal(err)
		}
		for range count(50) {
			bad, err := snapshot.Rewrite(state.Bytes(), snapshot.Options{}, func(b []byte) []byte {
				for range 1 + rng.IntN(20) {
					at := rng.IntN(len(b))
					if rng.IntN(2) > 0 { // the structure is at the beginning
						at = rng.IntN(min(len(b), 4000))
					}
					switch rng.IntN(4) {
					case 0:
						b[at] = byte(rng.Uint32())
					case 1:
						b[at] ^= 1 << rng.IntN(8)
					case 2:
						b = append(b[:at], b[min(len(b), at+1+rng.IntN(9)):]...)
					default:
						b = append(b[:at:at], append([]byte{0xff, 0xff, 0xff, byte(rng.IntN(128))}, b[at:]...)...)
					}
				}
				return b
			})
			if err != nil {
				t.Fatal(err)
			}
			y := v.new(new(record), new(record))
			_, err = y.d.LoadState(bad, decode.StateOptions{Parts: y.parts, Limit: 64 << 20})
			switch {
			case err == nil:
				accepted++
				_ = y.d.SaveState(new(bytes.Buffer), decode.StateOptions{Parts: y.parts}) // must not panic
			case !errors.Is(err, decode.ErrStateDamaged) && !errors.Is(err, decode.ErrStateLimit):
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d accepted", accepted)
}

// fewPackets is how many packets of a capture FuzzResume decodes as a rule, from some place on: what a decoder knows
// after more of them is seldom of another kind.
const fewPackets = 12

// fuzzed are the variants with one goroutine only, half of the time without what is beside a decoder.
var fuzzed = [4]variant{variants[0], variants[1], {name: "alone", opt: variants[0].opt}, {name: "alone, completed", opt: func() decode.Options {
	return decode.Options{Transactions: transaction.Options{OnCompletion: true}}
}}}

// FuzzResume saves and restores in the middle of changed captures. As a rule the decoder that was saved goes on beside the
// one that was restored, and both have to see the same; now and then one is compared that was never saved.
func FuzzResume(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), []byte{}, uint64(i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, which uint8, program []byte, cuts uint64, how uint8) {
		v := &fuzzed[int(how)%len(fuzzed)]
		packets := traffic.Apply(which, program)
		batch := 1 + int(how)/len(fuzzed)
		if mutate.Sample(program, 128) {
			// One cut: a state takes longer than the packets. TestResume has several.
			checkCuts(t, v, packets, batch, 1, rand.New(rand.NewPCG(cuts, 0)), new(measured))
			return
		}
		if n := len(packets) - fewPackets; n > 0 {
			from := int(cuts >> 32 % uint64(n+1))
			packets = packets[from : from+fewPackets]
		}
		beside(t, v, packets, batch, int(cuts&0xffffffff%uint64(len(packets)+1)))
	})
}

// beside restores a decoder after some packets and compares it with the one that it was made from.
func beside(t *testing.T, v *variant, packets []capture.Packet, batch, cut int) {
	var out, events [2]record
	var both [2]*decoder
	for i := range both {
		both[i] = v.new(&out[i], &events[i])
		both[i].keeps = true
	}
	saved, restored := both[0], both[1]
	feed := func(d *decode.Decoder, packets []capture.Packet) {
		var b capture.Batch
		for r := (traffic.Reader{Packets: packets, Batch: batch}); r.Read(&b) == nil; {
			d.Batch(&b)
		}
	}
	feed(saved.d, packets[:cut])
	var state bytes.Buffer
	if err := saved.d.SaveState(&state, decode.StateOptions{Parts: saved.parts}); err != nil {
		t.Fatalf("after %d packets: %v", cut, err)
	}
	if _, err := restored.d.LoadState(state.Bytes(), decode.StateOptions{Parts: restored.parts}); err != nil {
		t.Fatalf("after %d packets: %v", cut, err)
	}
	out[0].Reset()
	events[0].Reset()
	saved.kept, saved.closed = nil, nil
	for _, x := range both {
		feed(x.d, packets[cut:])
		x.d.Flush()
	}
	if want, got := events[0].Bytes(), events[1].Bytes(); !bytes.Equal(want, got) {
		t.Fatalf("cut at %d: events differ: %s", cut, first(string(want), string(got)))
	}
	if want, got := out[0].Bytes(), out[1].Bytes(); !bytes.Equal(want, got) {
		t.Fatalf("cut at %d: %s", cut, first(string(want), string(got)))
	}
	if !slices.EqualFunc(saved.kept, restored.kept, details.same) {
		t.Fatalf("cut at %d:\n%+v\nand not\n%+v", cut, restored.kept, saved.kept)
	}
	if !reflect.DeepEqual(saved.closed, restored.closed) {
		t.Fatalf("cut at %d:\n%+v\nand not\n%+v", cut, restored.closed, saved.closed)
	}
	if !saved.agrees(restored) {
		t.Fatalf("cut at %d: %s", cut, first(saved.verdict(v), restored.verdict(v)))
	}
}

func (a details) same(b details) bool {
	return a.times == b.times && a.credits == b.credits && a.slots == b.slots && slices.Equal(a.packets, b.packets) &&
		slices.Equal(a.troubles, b.troubles) && slices.Equal(a.operations, b.operations)
}

// agrees compares what verdict says.
func (x *decoder) agrees(y *decoder) bool {
	a, b := x.d.Memory(), y.d.Memory()
	return x.d.Stats() == y.d.Stats() && x.d.Orphans() == y.d.Orphans() && reflect.DeepEqual(x.d.Account(), y.d.Account()) &&
		x.names.Forgotten == y.names.Forgotten && a.Used() == b.Used() && a.Peak() == b.Peak() && a.Evicted() == b.Evicted()
}
