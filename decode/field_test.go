package decode_test

// Captures as the field makes them: mirrors, tunnels, a tap for each direction.
// What they say is compared with what the same packets say when captured at
// one point without wrapping.

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
)

// captures are the samples with one capture point, and those of the folder that
// RPCRDMA_CAPTURES names.
func captures(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob("../samples/*.pcap*")
	if err != nil || len(list) == 0 {
		t.Fatal(err, list)
	}
	if dir := os.Getenv("RPCRDMA_CAPTURES"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.pcap*"))
		if err != nil || len(more) == 0 {
			t.Fatal(err, more)
		}
		list = append(list, more...)
	}
	return slices.DeleteFunc(list, func(name string) bool { return bytes.Contains([]byte(name), []byte(".both.")) })
}

func load(t testing.TB, name string) []capture.Packet {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	var list []capture.Packet
	var b capture.Batch
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			list = append(list, p)
		}
	}
}

func same(t *testing.T, name string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	different := 0
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && got[i] == want[i] {
			continue
		}
		if different++; different > 2 {
			continue
		}
		if i < len(got) {
			t.Errorf("%s: got  %s", name, got[i])
		}
		if i < len(want) {
			t.Errorf("%s: want %s", name, want[i])
		}
	}
	t.Errorf("%s: %d of %d transactions differ", name, different, len(want))
}

// Optical taps and mirror ports often show each direction at an interface of
// its own.
func TestTapForEachDirection(t *testing.T) {
	for _, name := range captures(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			packets := load(t, name)
			want := sequential(packets, 64, decode.Options{})
			for i := range packets {
				var f link.Frame
				p := &packets[i]
				link.Decode(p.Link, p.Data, p.Length, &f)
				p.Tap = 1
				if f.Src.IsValid() && f.Src.Less(f.Dst) {
					p.Tap = 2
				}
			}
			same(t, name, sequential(packets, 64, decode.Options{}), want)
		})
	}
}
