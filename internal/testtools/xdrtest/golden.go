package xdrtest

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Update is the flag -update: golden files are written.
var Update = flag.Bool("update", false, "write the golden files")

// Sample is a message of a file of real ones.
type Sample struct {
	Name  string // of its Constructor
	Bytes []byte
	// Of a call: the offset of Bytes in the RPC message, and its chunks.
	Start int
	Call  []xdr.Reduced
	Reply []xdr.Reduced // chunks of a reply
}

// Samples reads a file of real messages. Each line has the name, the bytes
// after the RPC header in hexadecimal, and optionally the chunk of a call
// (call:START:POSITION:LENGTH) or those of a reply (reply:LENGTH,LENGTH…).
func Samples(t testing.TB, file string) []Sample {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []Sample
	for _, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		w := strings.Fields(line)
		if len(w) < 2 {
			t.Fatalf("%s: bad line %q", file, line)
		}
		s := Sample{Name: w[0]}
		if s.Bytes, err = hex.DecodeString(w[1]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, x := range w[2:] {
			var c xdr.Reduced
			if _, err := fmt.Sscanf(x, "call:%d:%d:%d", &s.Start, &c.Position, &c.Length); err == nil {
				s.Call = append(s.Call, c)
				continue
			}
			lengths, ok := strings.CutPrefix(x, "reply:")
			if !ok {
				t.Fatalf("%s: bad word %q", file, x)
			}
			for _, l := range strings.Split(lengths, ",") {
				if _, err := fmt.Sscan(l, &c.Length); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				s.Reply = append(s.Reply, c)
			}
		}
		all = append(all, s)
	}
	return all
}

// Decode decodes the sample into m. It is meant to be read completely.
func (s *Sample) Decode(m xdr.Message) error {
	var r xdr.Reader
	r.Reset(s.Bytes, 0)
	r.StartAt(uint32(s.Start))
	switch {
	case s.Call != nil:
		r.ReduceCall(s.Call)
	case s.Reply != nil:
		r.ReduceReply(s.Reply)
	}
	m.Decode(&r)
	if err := r.Err(); err != nil {
		return err
	}
	if n := r.Remaining(); n != 0 {
		return fmt.Errorf("%d bytes left over", n)
	}
	return nil
}

// Golden decodes real messages, encodes them again, and compares what they
// show with the golden file.
func Golden(t *testing.T, all []Constructor, samples, golden string) {
	var got strings.Builder
	reused := map[string]xdr.Message{}
	for _, s := range Samples(t, samples) {
		c := Find(t, all, s.Name)
		m := reused[s.Name]
		if m == nil {
			m = c.New()
			reused[s.Name] = m
		}
		if err := s.Decode(m); err != nil {
			t.Errorf("%s: %v\n% x", s.Name, err, s.Bytes)
			continue
		}
		if again := m.Append(nil); !bytes.Equal(again, s.Bytes) {
			t.Errorf("%s: encoded again:\n% x\nwant\n% x", s.Name, again, s.Bytes)
		}
		fmt.Fprintf(&got, "%s\n%s\n", s.Name, Walk(m))
	}
	if *Update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("messages differ from %s; have\n%s", golden, got.String())
	}
}

// Seeds are the samples of a file for Fuzz.
func Seeds(t testing.TB, file string) map[string][]byte {
	m := map[string][]byte{}
	for _, s := range Samples(t, file) {
		m[s.Name] = s.Bytes
	}
	return m
}

// SampleAllocs fails if decoding any of the samples into a message that has
// held it before allocates memory.
func SampleAllocs(t *testing.T, all []Constructor, samples string) {
	for _, s := range Samples(t, samples) {
		if s.Call == nil && s.Reply == nil {
			NoAllocs(t, Find(t, all, s.Name).New(), s.Bytes)
		}
	}
}
