// Package hostile generates captures whose sender wants to exhaust the decoder: one table, state or list of a
// consumer each, driven as far as the wire allows. The captures are well-formed packet by packet, so that
// they reach the code they target, and each is described by one number: twice the number is twice the input.
//
// Packets are written as they are made. Generating needs no memory.
package hostile

import (
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/rpcrdma/toolkit/capture"
)

// Kind is one way to attack.
type Kind struct {
	Name string
	// Unit is what N counts, for readers: "calls of 4000 segments".
	Unit string
	// Table is the number that the documentation measures, Small one with
	// which a program needs about a tenth of a second.
	Table, Small int

	make func(g *gen, n int)
}

// Kinds lists all of them, in the order of the documentation.
func Kinds() []Kind { return kinds }

// Find returns the kind of a name.
func Find(name string) (Kind, error) {
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("no hostile capture is called %q", name)
}

// Write writes a pcap with n units of the kind. The same n gives the same
// bytes.
func (k Kind) Write(w io.Writer, n int) error {
	if n < 1 {
		return fmt.Errorf("%s: %d %s", k.Name, n, k.Unit)
	}
	g := newGen(w)
	k.make(g, n)
	if err := g.w.Flush(); g.err == nil {
		g.err = err
	}
	return g.err
}

// Mix writes one pcap with every kind, one after the other: size is how many
// tenths of Small each gets. Kinds that have less than five units in Small are
// left out: a mix of twice the size would not have twice as many.
func Mix(w io.Writer, size int) error {
	g := newGen(w)
	for i, k := range kinds {
		if k.Small < 5 {
			continue
		}
		g.subnet = byte(i + 1)
		k.make(g, max(1, k.Small*size/10))
		g.now += 1e9
	}
	if err := g.w.Flush(); g.err == nil {
		g.err = err
	}
	return g.err
}

func newGen(w io.Writer) *gen {
	return &gen{
		w:   capture.NewWriter(w, capture.WriterOptions{Format: capture.Pcap, Link: capture.LinkEthernet}),
		now: 1_700_000_000_000_000_000,
		rng: rand.New(rand.NewPCG(10, 2)),
	}
}
