package edges

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// TestFiles gives each sample as several files, as tcpdump rotates them, and with
// them in another order: what is decoded must be the same, field by field.
func TestFiles(t *testing.T) {
	for _, f := range files(t) {
		t.Run(f.name, func(t *testing.T) {
			packets := load(t, f.path)
			want := decoded(packets, f.memory(t), nil)
			dir := t.TempDir()
			const pieces = 4
			var names []string
			for i := range pieces {
				name := filepath.Join(dir, fmt.Sprintf("%d.pcapng", i))
				write(t, name, packets[len(packets)*i/pieces:len(packets)*(i+1)/pieces])
				names = append(names, name)
			}
			names[0], names[2] = names[2], names[0]
			got := decoded(load(t, names...), f.memory(t), nil)
			if len(got) != len(want) {
				t.Fatalf("%d transactions, want %d", len(got), len(want))
			}
			for i := range want {
				if diff := differing(want[i].fields, got[i].fields); len(diff) > 0 {
					t.Fatalf("transaction %d, XID %#x: %v differ", i+1, want[i].xid, diff)
				}
			}
		})
	}
}

func write(t *testing.T, name string, packets []capture.Packet) {
	t.Helper()
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := capture.NewWriter(out, capture.WriterOptions{Format: capture.Pcapng})
	for i := range packets {
		if err := w.Write(&packets[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(), out.Close()); err != nil {
		t.Fatal(err)
	}
}
