package pcapfilter

import (
	"errors"

	"golang.org/x/net/bpf"
)

// label is a place in a program that is not yet known.
type label int

// item is an instruction, a jump or a test.
type item struct {
	ins  bpf.Instruction // nil for a jump
	cond bpf.JumpTest
	val  uint32
	test bool
	t, f label // targets; a jump has t only
	long bool  // a test whose targets are too far for its 8-bit offsets
}

// assembler collects a program with labels. All jumps go forward, as the
// kernel demands.
type assembler struct {
	items  []item
	places []int // by label: index in items; -1 if not placed
}

func (a *assembler) label() label {
	a.places = append(a.places, -1)
	return label(len(a.places) - 1)
}

func (a *assembler) place(l label) { a.places[l] = len(a.items) }

func (a *assembler) emit(ins ...bpf.Instruction) {
	for _, i := range ins {
		a.items = append(a.items, item{ins: i})
	}
}

func (a *assembler) jump(to label) { a.items = append(a.items, item{t: to}) }

// test goes to t if A compares with val as cond says, else to f.
func (a *assembler) test(cond bpf.JumpTest, val uint32, t, f label) {
	a.items = append(a.items, item{test: true, cond: cond, val: val, t: t, f: f})
}

// maxInstructions is BPF_MAXINSNS of the kernel.
const maxInstructions = 4096

var errTooLong = errors.New("the filter is too long for the kernel: more than 4096 instructions")

// assemble resolves the labels.
func (a *assembler) assemble() ([]bpf.Instruction, error) {
	if len(a.items) > maxInstructions {
		return nil, errTooLong
	}
	at := make([]int, len(a.items)+1)
	for {
		n := 0
		for i := range a.items {
			at[i] = n
			n += a.items[i].size(a, i)
		}
		at[len(a.items)] = n
		// A test that becomes long moves others apart, never together.
		again := false
		for i := range a.items {
			it := &a.items[i]
			if it.test && !it.long && max(at[a.places[it.t]], at[a.places[it.f]])-at[i]-1 > 255 {
				it.long, again = true, true
			}
		}
		if !again {
			break
		}
	}
	out := make([]bpf.Instruction, 0, at[len(a.items)])
	for i := range a.items {
		it := &a.items[i]
		switch {
		case it.ins != nil:
			out = append(out, it.ins)
		case it.test && it.long:
			out = append(out, bpf.JumpIf{Cond: it.cond, Val: it.val, SkipFalse: 1},
				bpf.Jump{Skip: uint32(at[a.places[it.t]] - at[i] - 2)},
				bpf.Jump{Skip: uint32(at[a.places[it.f]] - at[i] - 3)})
		case it.test:
			out = append(out, bpf.JumpIf{Cond: it.cond, Val: it.val,
				SkipTrue: uint8(at[a.places[it.t]] - at[i] - 1), SkipFalse: uint8(at[a.places[it.f]] - at[i] - 1)})
		case it.size(a, i) > 0:
			out = append(out, bpf.Jump{Skip: uint32(at[a.places[it.t]] - at[i] - 1)})
		}
	}
	if len(out) > maxInstructions {
		return nil, errTooLong
	}
	return out, nil
}

// size is how many instructions an item takes.
func (it *item) size(a *assembler, i int) int {
	switch {
	case it.test && it.long:
		return 3
	case it.ins == nil && !it.test && a.places[it.t] == i+1:
		return 0 // a jump to what follows
	}
	return 1
}
