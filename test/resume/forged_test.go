package resume

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/freeze"
	"github.com/rpcrdma/toolkit/internal/mutate/traffic"
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
			bad, err := freeze.Rewrite(state.Bytes(), freeze.Options{}, func(b []byte) []byte {
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

// FuzzResume saves and restores in the middle of changed captures.
func FuzzResume(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), []byte{}, uint64(i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, which uint8, program []byte, cuts uint64, how uint8) {
		var m measured
		v := &variants[int(how)%2] // one goroutine only
		// One cut: a state takes longer than the packets. TestResume has several.
		checkCuts(t, v, traffic.Apply(which, program), 1+int(how/2), 1, rand.New(rand.NewPCG(cuts, 0)), &m)
	})
}
