package rocev2

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/verbstest"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// network is a bad one: each of its faults happens to so many packets in a
// thousand.
type network struct {
	rng                           *rand.Rand
	lose, repeat, reorder, damage int
	held                          [][]byte
	buf                           []byte
	faults                        int
}

func newNetwork(seed uint64, each int) *network {
	return &network{rng: rand.New(rand.NewPCG(seed, 1)), lose: each, repeat: each, reorder: each, damage: each}
}

func (n *network) dice(of int) bool {
	hit := n.rng.IntN(1000) < of
	if hit {
		n.faults++
	}
	return hit
}

func (n *network) packet(p []byte, pass func([]byte)) {
	if n.dice(n.lose) {
		return
	}
	if n.dice(n.reorder) {
		// It comes later, behind up to four others.
		if len(n.held) < 4 {
			n.held = append(n.held, append([]byte(nil), p...))
			return
		}
	}
	if n.dice(n.damage) {
		n.buf = append(n.buf[:0], p...)
		for range 1 + n.rng.IntN(3) {
			n.buf[n.rng.IntN(len(n.buf))] ^= 1 << n.rng.IntN(8)
		}
		p = n.buf
	}
	pass(p)
	if n.dice(n.repeat) {
		pass(p)
	}
	if len(n.held) > 0 && n.rng.IntN(4) == 0 {
		i := n.rng.IntN(len(n.held))
		pass(n.held[i])
		n.held = append(n.held[:i], n.held[i+1:]...)
	}
}

// The whole suite works on bad networks.
func TestVerbsBadNetwork(t *testing.T) {
	for _, each := range []int{3, 15} {
		if testing.Short() && each == 3 {
			continue
		}
		t.Run(map[int]string{3: "1.2%", 15: "6%"}[each], func(t *testing.T) {
			o := suite(t, Options{})
			o.Cycles, o.Megabytes = 10, 2
			seed := uint64(each)
			listen := o.Listen.Addr()
			o.New = func(t testing.TB) verbs.Provider {
				seed++
				return provider(t, Options{CheckICRC: ICRCOwnID, CMTimeout: 30 * time.Millisecond, Outgoing: newNetwork(seed, each).packet, Local: listen})
			}
			local := address(t)
			o.NewPeer = func(t testing.TB) verbs.Provider {
				seed++
				return provider(t, Options{CheckICRC: ICRCOwnID, CMTimeout: 30 * time.Millisecond, Outgoing: newNetwork(seed, each).packet, Local: local})
			}
			verbstest.Run(t, o)
		})
	}
}
