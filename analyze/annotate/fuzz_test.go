package annotate

import (
	"bytes"
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzAnnotate writes changed captures with comments. Each packet is written
// once, in its place and as it was, whatever the size of the window.
func FuzzAnnotate(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), uint16(0), []byte{})
		f.Add(uint8(i), uint16(700), []byte{})
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which uint8, window uint16, program []byte) {
		packets := traffic.Apply(which, program)
		memory.Start()
		var out bytes.Buffer
		a := New(capture.NewWriter(&out, capture.WriterOptions{Buffer: 4096}), int(window))
		var opt decode.Options
		a.Options(&opt)
		traffic.Run(decode.New(opt, a.Transaction), packets, 16)
		st, err := a.Close()
		if st.Packets != uint64(len(packets)) || len(a.known) != 0 {
			t.Fatalf("%d of %d packets, %d transactions left", st.Packets, len(packets), len(a.known))
		}
		if err == nil {
			same(t, out.Bytes(), packets)
		}
		memory.End(t)
	})
}

// same reads what was written.
func same(t *testing.T, written []byte, packets []capture.Packet) {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(written), "annotated", capture.Options{BatchSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	for {
		err := r.Read(&b)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			if len(packets) == 0 {
				t.Fatal("too many packets")
			}
			q := packets[0]
			packets = packets[1:]
			if p.Time != q.Time || p.Link != q.Link || p.Length != q.Length || !bytes.Equal(p.Data, q.Data) {
				t.Fatalf("packet %d: %d ns, %d of %d bytes, link type %d\nwas %d ns, %d of %d bytes, link type %d",
					q.Number, p.Time, len(p.Data), p.Length, p.Link, q.Time, len(q.Data), q.Length, q.Link)
			}
		}
	}
	if list, n := r.Problems(); n > 0 {
		t.Fatal(list[0])
	}
	if len(packets) > 0 {
		t.Fatalf("%d packets are missing", len(packets))
	}
}
