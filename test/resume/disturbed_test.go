package resume

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/testtools/hostile"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// count is how often something random is tried.
func count(n int) int {
	if testing.Short() {
		n = max(1, n/5)
	}
	return n * *rounds
}

// TestMutated cuts captures that a program has changed: losses, other orders, copies, cut and damaged headers,
// fabrics and link types.
func TestMutated(t *testing.T) {
	var m measured
	for i := range count(100) {
		rng := rand.New(rand.NewPCG(*seed, uint64(i)))
		program := make([]byte, rng.IntN(400))
		for k := range program {
			program[k] = byte(rng.Uint32())
		}
		packets := traffic.Apply(uint8(rng.Uint32()), program)
		v := &variants[rng.IntN(len(variants))]
		batch := 1 + rng.IntN(40)
		t.Run(fmt.Sprint(i, "/", v.name), func(t *testing.T) { check(t, v, packets, batch, rng, &m) })
	}
	m.log(t)
}

// TestHostile cuts captures that fill every table up to its limit.
func TestHostile(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 19))
	var m measured
	for _, k := range hostile.Kinds() {
		if testing.Short() && rng.IntN(8) > 0 {
			continue
		}
		v := &variants[rng.IntN(len(variants))]
		t.Run(k.Name+"/"+v.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "capture.pcap")
			var b bytes.Buffer
			if err := k.Write(&b, max(1, k.Small/10)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			check(t, v, all(t, name), 1+rng.IntN(500), rng, &m)
		})
	}
	m.log(t)
}

// TestWrapped cuts captures that show packets bare and in a tunnel, from some packet on.
func TestWrapped(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 20))
	var m measured
	packets := all(t, "../../samples/rocev2-nfs41-recall.pcap")
	kinds := wrap.Kinds(5)
	for range count(30) {
		k := kinds[rng.IntN(len(kinds))]
		v := &variants[rng.IntN(len(variants))]
		both, from := rng.IntN(2) > 0, rng.IntN(len(packets))
		t.Run(k.Name+"/"+v.name, func(t *testing.T) {
			w := wrap.New(k, 7)
			var list []capture.Packet
			add := func(p capture.Packet) {
				p.Number = uint64(len(list) + 1)
				list = append(list, p)
			}
			for i, p := range packets {
				if i < from || both {
					add(p)
				}
				if i >= from {
					frame, length := w.Frame(p.Data, int(p.Length))
					p.Data, p.Length = bytes.Clone(frame), uint32(length)
					if k.Link != 0 {
						p.Link = k.Link
					}
					add(p)
				}
			}
			check(t, v, list, 1+rng.IntN(300), rng, &m)
		})
	}
	m.log(t)
}
