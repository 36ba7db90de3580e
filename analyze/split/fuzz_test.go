package split

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzSplit splits changed captures: by what, with what limits, mode says. No
// packet is counted twice, and the files hold as many as are said to be kept.
func FuzzSplit(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), uint8(i%5), []byte{})
		f.Add(uint8(i), uint8(i%5+8+5*(i%7)), []byte{})
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which, mode uint8, program []byte) {
		packets := traffic.Apply(which, program)
		memory.Start()
		files := map[int]*bytes.Buffer{}
		open := 0
		opt := Options{
			By: By(mode % 5), Interval: time.Second, OpenFiles: 1 + int(mode>>6), Files: 8 + int(mode), Window: 1 + int(mode)*100,
			Rest: mode&16 != 0, NoSetup: mode&32 != 0,
			Open: func(n Name, again bool) (io.WriteCloser, error) {
				if (files[n.N] != nil) != again {
					return nil, fmt.Errorf("file %d: again is %v", n.N, again)
				}
				if !again {
					files[n.N] = new(bytes.Buffer)
				}
				if open++; open > 1+int(mode>>6) {
					t.Fatalf("%d files are open", open)
				}
				return closer{files[n.N], &open}, nil
			},
		}
		if mode&8 != 0 {
			opt.Match = func(v *rpc.View) bool { return v.Tx.XID&1 == 0 }
		}
		s := New(opt)
		var o decode.Options
		s.Options(&o)
		traffic.Run(decode.New(o, s.Transaction), packets, 16)
		st, err := s.Close() // a time that cannot be written is an error
		if opt.Match == nil && st.Kept+st.NoConnection+st.Overflow < st.Packets {
			t.Fatalf("%+v", st)
		}
		if st.Kept > st.Packets || len(s.known) != 0 || open != 0 {
			t.Fatalf("%+v, %d transactions are remembered, %d files open", st, len(s.known), open)
		}
		if err == nil {
			n := 0
			for _, b := range files {
				n += count(t, b.Bytes())
			}
			if uint64(n) < st.Kept+st.Setup { // a packet of two transactions may be in two files
				t.Fatalf("%d packets in %d files: %+v", n, len(files), st)
			}
		}
		memory.End(t)
	})
}

type closer struct {
	*bytes.Buffer
	open *int
}

func (c closer) Close() error { *c.open--; return nil }

// count is the number of packets in a capture.
func count(t *testing.T, b []byte) (n int) {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(b), "part", capture.Options{BatchSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var batch capture.Batch
	for r.Read(&batch) == nil {
		n += len(batch.Packets)
	}
	if list, k := r.Problems(); k > 0 {
		t.Fatal(list[0])
	}
	return n
}
