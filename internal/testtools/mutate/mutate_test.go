package mutate

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever the program: the messages that were given stay as they are, the
// limits hold, and the same program gives the same messages.
func TestUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var seeds [][]byte
	for n := range 9 {
		b := make([]byte, n*13)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		seeds = append(seeds, b)
	}
	before := bytes.Join(seeds, nil)
	changed := 0
	for range 5000 {
		p := make([]byte, rng.IntN(MaxSteps*StepSize+20))
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		list := Units(seeds, p, 4000)
		if !bytes.Equal(bytes.Join(seeds, nil), before) {
			t.Fatalf("%x has changed the seeds", p)
		}
		total := 0
		for _, u := range list {
			total += len(u)
			if len(u) > 4000 {
				t.Fatalf("%x: a message of %d bytes", p, len(u))
			}
		}
		if len(list) > MaxUnits || total > MaxBytes {
			t.Fatalf("%x: %d messages of %d bytes", p, len(list), total)
		}
		again := bytes.Join(Units(seeds, p, 4000), nil)
		if !bytes.Equal(again, bytes.Join(list, nil)) {
			t.Fatalf("%x gives two results", p)
		}
		if !bytes.Equal(again, before) {
			changed++
		}
	}
	if changed < 4500 {
		t.Errorf("only %d of 5000 programs changed anything", changed)
	}
}

// Each change does what its name says.
func TestChanges(t *testing.T) {
	seeds := [][]byte{[]byte("aaaabbbb"), []byte("ccccdddd"), []byte("eeee")}
	for _, c := range []struct {
		name string
		step Step
		want string
	}{
		{"swap with itself", Step{Op: SwapUnits, At: 2, Value: 2 << 24}, "aaaabbbb|ccccdddd|eeee"},
		{"interesting", Step{Op: SetInteresting, At: 0, Where: 2, Value: 39}, "aaaa\xff\xff\xff\xff|ccccdddd|eeee"},
		{"add", Step{Op: Add, At: 1, Value: 0xff}, "aaaabbbb|cccbdddd|eeee"},
		{"copy a word", Step{Op: CopyWord, At: 0, Value: 1 << 24}, "ccccbbbb|ccccdddd|eeee"},
		{"flip", Step{Op: Xor, At: 2, Value: 1}, "aaaabbbb|ccccdddd|eeeg"},
		{"set", Step{Op: SetValue, At: 2, Value: 0x31323334}, "aaaabbbb|ccccdddd|1234"},
		{"byte", Step{Op: SetByte, At: 2, Value: 'x' | 1<<8}, "aaaabbbb|ccccdddd|exee"},
		{"half", Step{Op: SetHalf, At: 2, Value: 'y'<<8 | 'z' | 2<<16}, "aaaabbbb|ccccdddd|eeyz"},
		{"swap words", Step{Op: SwapWords, At: 0, Value: 1}, "bbbbaaaa|ccccdddd|eeee"},
		{"drop", Step{Op: DropUnit, At: 1}, "aaaabbbb|eeee"},
		{"double", Step{Op: DoubleUnit, At: 0, Value: 1}, "aaaabbbb|ccccdddd|aaaabbbb|eeee"},
		{"swap", Step{Op: SwapUnits, At: 0, Value: 2 << 24}, "eeee|ccccdddd|aaaabbbb"},
		{"delay", Step{Op: MoveUnit, At: 0, Value: 0}, "ccccdddd|aaaabbbb|eeee"},
		{"truncate", Step{Op: TruncateUnit, At: 0, Where: 3}, "aaa|ccccdddd|eeee"},
		{"grow", Step{Op: GrowUnit, At: 2, Where: 4, Value: 2 | 0x400}, "aaaabbbb|ccccdddd|eeeeaa"},
		{"shrink", Step{Op: ShrinkUnit, At: 0, Where: 4, Value: 2}, "aaaabb|ccccdddd|eeee"},
		{"copy", Step{Op: CopyBytes, At: 0, Where: 4, Value: 2<<24 | 2<<16}, "aaaaeebb|ccccdddd|eeee"},
		{"join", Step{Op: JoinUnits, At: 1}, "aaaabbbb|ccccddddeeee"},
		{"split", Step{Op: SplitUnit, At: 1, Where: 3}, "aaaabbbb|cccc|dddd|eeee"},
	} {
		got := string(bytes.Join(Units(seeds, Program(c.step), 100), []byte("|")))
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// One input in n is in the sample, always the same ones.
func TestSample(t *testing.T) {
	if !Sample(nil, 1000) {
		t.Error("the seed is not in the sample")
	}
	n := 0
	for i := range uint32(10000) {
		p := Program(Step{Value: i})
		in := Sample(p, 4)
		if again := Sample(slices.Clone(p), 4); again != in {
			t.Fatal("not the same answer again")
		}
		if in {
			n++
		}
	}
	if n < 2000 || n > 3000 {
		t.Errorf("%d of 10000 are in a sample of one in four", n)
	}
}
