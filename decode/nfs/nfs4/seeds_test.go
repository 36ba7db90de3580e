package nfs4

import (
	"bytes"
	"encoding/hex"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/xdrtest"
)

var update = xdrtest.Update

// seed is a real message of testdata/compounds.txt.
type seed struct {
	name   string // capture and frame
	kind   string // call, reply, cbcall, cbreply
	chunks []xdr.Reduced
	data   []byte
}

func seeds(tb testing.TB) (all []seed) {
	text, err := os.ReadFile("testdata/compounds.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) != 5 || f[0] == "#" {
			continue
		}
		s := seed{name: f[0] + "/" + f[1], kind: f[2]}
		if s.data, err = hex.DecodeString(f[4]); err != nil {
			tb.Fatalf("%s: %v", s.name, err)
		}
		for _, c := range strings.Split(f[3], ",") {
			if position, length, ok := strings.Cut(c, ":"); ok {
				p, _ := strconv.Atoi(position)
				l, _ := strconv.Atoi(length)
				s.chunks = append(s.chunks, xdr.Reduced{Position: uint32(p), Length: uint32(l)})
			}
		}
		all = append(all, s)
	}
	return all
}

func (s *seed) message() xdr.Message {
	switch s.kind {
	case "call":
		return new(CompoundArgs)
	case "reply":
		return new(CompoundRes)
	case "cbcall":
		return new(CbCompoundArgs)
	}
	return new(CbCompoundRes)
}

func (s *seed) reset(r *xdr.Reader) {
	r.Reset(s.data, len(s.data))
	if strings.HasSuffix(s.kind, "call") {
		r.ReduceCall(s.chunks)
	} else {
		r.ReduceReply(s.chunks)
	}
}

// find returns the first seed of a kind with these operations.
func find(tb testing.TB, kind string, ops ...string) *seed {
	for _, s := range seeds(tb) {
		if s.kind != kind {
			continue
		}
		m := s.message()
		var r xdr.Reader
		s.reset(&r)
		m.Decode(&r)
		var names []string
		for _, op := range operations(m).Ops {
			names = append(names, OpName(op.Number))
		}
		if slices.Equal(names, ops) {
			return &s
		}
	}
	tb.Fatalf("no %s of %v", kind, ops)
	return nil
}

// TestSeeds decodes and encodes real messages, into fresh and into used
// memory.
func TestSeeds(t *testing.T) {
	used := map[string]xdr.Message{}
	all := seeds(t)
	if len(all) < 150 {
		t.Fatalf("%d seeds", len(all))
	}
	for _, s := range all {
		if used[s.kind] == nil {
			used[s.kind] = s.message()
		}
		var trees [2]string
		for i, m := range []xdr.Message{s.message(), used[s.kind]} {
			var r xdr.Reader
			s.reset(&r)
			m.Decode(&r)
			if r.Err() != nil || r.Remaining() != 0 {
				t.Errorf("%s: %v, %d bytes left", s.name, r.Err(), r.Remaining())
			}
			if b := m.Append(nil); !bytes.Equal(b, s.data) || m.EncodedSize() != len(b) {
				t.Errorf("%s:\n got %x\nwant %x\nsize %d", s.name, b, s.data, m.EncodedSize())
			}
			trees[i] = show(m.Walk)
		}
		if trees[0] != trees[1] {
			t.Errorf("%s: used memory shows\n%s\nfresh memory\n%s", s.name, trees[1], trees[0])
		}
		for _, bad := range []string{"malformed", "unknown attribute", "trailing bytes", "unbalanced"} {
			if strings.Contains(trees[0], bad) {
				t.Errorf("%s: %s in\n%s", s.name, bad, trees[0])
			}
		}
	}
}

// TestTree compares what Walk shows, for one message of each kind and
// operation, with testdata/compounds.tree. Its values have been compared with
// another dissector's.
func TestTree(t *testing.T) {
	seen := map[string]bool{}
	var got strings.Builder
	for _, s := range seeds(t) {
		m := s.message()
		var r xdr.Reader
		s.reset(&r)
		m.Decode(&r)
		fresh := false
		for _, op := range operations(m).Ops {
			key := s.kind + strconv.Itoa(int(op.Number))
			fresh = fresh || !seen[key]
			seen[key] = true
		}
		if fresh {
			got.WriteString("== " + s.name + " " + s.kind + "\n" + show(m.Walk))
		}
	}
	const file = "testdata/compounds.tree"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		g, w := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
		for i := range g {
			if i >= len(w) || g[i] != w[i] {
				t.Fatalf("line %d differs: %q", i+1, g[i])
			}
		}
		t.Fatal("lines are missing")
	}
}

func operations(m xdr.Message) *Operations {
	switch m := m.(type) {
	case *CompoundArgs:
		return &m.Operations
	case *CompoundRes:
		return &m.Operations
	case *CbCompoundArgs:
		return &m.Operations
	case *CbCompoundRes:
		return &m.Operations
	}
	return nil
}
