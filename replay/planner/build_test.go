package planner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
)

// ending is a reader that fails after its first packets.
type ending struct {
	capture.Reader
	err  error
	read bool
}

func (e *ending) Read(b *capture.Batch) error {
	if e.read {
		b.Packets = b.Packets[:0]
		return e.err
	}
	e.read = true
	return e.Reader.Read(b)
}

// TestUnreadable: what was read before an error makes a plan, but for a file of several that cannot be opened.
func TestUnreadable(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		made bool
	}{
		{"cannot be opened", &fs.PathError{Op: "open", Path: "second.pcap", Err: syscall.EMFILE}, false},
		{"cannot be read", &fs.PathError{Op: "read", Path: "first.pcap", Err: syscall.EIO}, true},
		{"is not understood", errors.New("what is that"), true},
	} {
		r, err := capture.Open([]string{"../../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "plan")
		s, err := Build(t.Context(), &ending{Reader: r, err: c.err}, out, decode.Options{}, Options{})
		if _, exists := os.Stat(out); !errors.Is(err, c.err) || (s != nil) != c.made || (exists == nil) != c.made {
			t.Errorf("%s: summary %v, error %v, file %v", c.name, s != nil, err, exists)
		}
		_ = r.Close()
	}
}
