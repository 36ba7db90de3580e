package annotate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

const samples = "../../samples"

func annotated(t *testing.T, name string, window int) ([]byte, Stats) {
	t.Helper()
	r, err := capture.Open([]string{filepath.Join(samples, name)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	a := New(capture.NewWriter(&out, capture.WriterOptions{Taps: r.(capture.Tapper).Taps}), window)
	var opt decode.Options
	a.Options(&opt)
	if err := decode.New(opt, a.Transaction).Run(r); err != nil {
		t.Fatal(err)
	}
	st, err := a.Close()
	if err != nil {
		t.Fatal(err)
	}
	if len(a.known) != 0 {
		t.Errorf("%s: %d transactions are remembered", name, len(a.known))
	}
	return out.Bytes(), st
}

// packets reads all of a capture.
func packets(t *testing.T, r capture.Reader) []capture.Packet {
	t.Helper()
	var out []capture.Packet
	for {
		var b capture.Batch // of its own for each: the data stays
		if r.Read(&b) != nil {
			break
		}
		out = append(out, b.Packets...)
	}
	if list, n := r.Problems(); n > 0 {
		t.Fatal(list[0])
	}
	return out
}

// comments reads the comments of packets, without the reader.
func comments(t *testing.T, b []byte) [][]string {
	t.Helper()
	le := binary.LittleEndian
	var all [][]string
	for len(b) > 0 {
		typ, size := le.Uint32(b), le.Uint32(b[4:])
		if typ == 6 {
			var list []string
			n := int(le.Uint32(b[20:])+3) &^ 3
			for o := b[28+n : size-4]; len(o) > 0; {
				code, n := le.Uint16(o), int(le.Uint16(o[2:]))
				if code == 1 {
					list = append(list, string(o[4:4+n]))
				}
				o = o[4+(n+3)&^3:]
			}
			all = append(all, list)
		}
		b = b[size:]
	}
	return all
}

// The packets are the input's, whatever the size of the window.
func TestPacketsUnchanged(t *testing.T) {
	files := sampled.Captures(t, "*")
	for _, f := range files {
		name := filepath.Base(f)
		r, err := capture.Open([]string{f}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := packets(t, r)
		taps := r.(capture.Tapper).Taps()
		r.Close()
		for _, window := range []int{0, 100 << 10} {
			out, st := annotated(t, name, window)
			r, err := capture.NewReader(bytes.NewReader(out), "out", capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := packets(t, r)
			if len(got) != len(want) || st.Packets != uint64(len(want)) {
				t.Fatalf("%s: %d packets of %d", name, len(got), len(want))
			}
			for i := range got {
				a, b := &got[i], &want[i]
				if a.Time != b.Time || a.Length != b.Length || a.Tap != b.Tap || a.Link != b.Link || !bytes.Equal(a.Data, b.Data) {
					t.Fatalf("%s: packet %d differs", name, i+1)
				}
			}
			for i, tap := range r.(capture.Tapper).Taps() {
				if tap.Name != taps[i].Name || tap.SnapLen != taps[i].SnapLen || tap.Link != taps[i].Link {
					t.Errorf("%s: interface %d: %+v, was %+v", name, i, tap, taps[i])
				}
			}
			n := uint64(0)
			for _, c := range comments(t, out) {
				if len(c) > 0 {
					n++
				}
			}
			if n != st.Annotated || n == 0 && !strings.Contains(name, "rping") {
				t.Errorf("%s: %d packets have comments, not %d", name, n, st.Annotated)
			}
			if window == 0 && (st.Open > 0 || st.Late > 0 || st.Dropped > 0) {
				t.Errorf("%s: %+v", name, st)
			}
			if strings.HasPrefix(name, "rocev2-nfs3-basic") && window != 0 && st.Open == 0 {
				t.Errorf("%s: all transactions ended within %d bytes", name, window)
			}
		}
	}
}

// What the comments say.
func TestComments(t *testing.T) {
	for _, c := range []struct {
		sample string
		packet int
		want   string
	}{
		{"rocev2-nfs41-recall.pcap", 122, "nfs4.1 READ export/deleg1 @0+8K=8000 xid 0xb1466d78: call, 224 bytes; ok in 13.06ms, server 9.393ms, result_push 3.003ms, reply_transfer 659.3µs"},
		{"rocev2-nfs41-recall.pcap", 123, "nfs4.1 READ export/deleg1 @0+8K=8000 xid 0xb1466d78: ACK of the call; server phase 9.393ms, +699.7µs"},
		{"rocev2-nfs41-recall.pcap", 127, "nfs4.1 READ export/deleg1 @0+8K=8000 xid 0xb1466d78: RDMA Write 1 of 1 to Write chunk 0, 1024 bytes; result_push phase 3.003ms, +11.13ms"},
		{"rocev2-nfs41-recall.pcap", 134, "nfs4.1 READ export/deleg1 @0+8K=8000 xid 0xb1466d78: ACK of the reply; after the reply, +19.62ms"},
		{"rocev2-nfs41-recall.pcap", 169, "nfs_cb CB_RECALL export/deleg1 xid 0x92cacf53: call, 196 bytes; ok in 5.440ms, server 5.440ms"},
		{"rocev2-nfs3-longcall.pcap", 102, "nfsacl3 SETACL acl xid 0x756617bc: RDMA Read Request 2 of 2 of Position-Zero Read chunk; argument_pull phase 4.119ms, +1.895ms"},
		{"rocev2-nfs3-longcall.pcap", 96, "nfsacl3 GETACL acl xid 0x746617bc: reply, 80 bytes; ok in 2.337ms, server 2.049ms, reply_transfer 287.9µs"},
		// One TCP segment, two transactions.
		{"iwarp-nfs41-recall.pcap", 159, "nfs_cb CB_RECALL export/deleg1 xid 0x537095f9: ACK of the call; reply_transfer phase 0ns, +5.190ms|" +
			"nfs_cb CB_RECALL export/deleg1 xid 0x537095f9: reply, 112 bytes; ok in 5.190ms, server 5.190ms"},
	} {
		out, _ := annotated(t, c.sample, 0)
		if got := strings.Join(comments(t, out)[c.packet-1], "|"); got != c.want {
			t.Errorf("%s, packet %d:\n got %s\nwant %s", c.sample, c.packet, got, c.want)
		}
	}
	out, _ := annotated(t, "rocev2-nfs3-loss.both.pcapng.zst", 0)
	again, nak := 0, 0
	for _, list := range comments(t, out) {
		for _, s := range list {
			if strings.Contains(s, "seen again;") {
				again++
			}
			if strings.Contains(s, "NAK PSN sequence error") {
				nak++
			}
		}
	}
	if again != 291 || nak < 3 { // what the listing counts
		t.Errorf("%d packets seen again, %d NAKs", again, nak)
	}
}

type full struct{}

var errFull = errors.New("no room")

func (full) Write([]byte) (int, error) { return 0, errFull }

// An error of the output is not lost.
func TestWriteError(t *testing.T) {
	r, err := capture.Open([]string{filepath.Join(samples, "rocev2-nfs41-recall.pcap")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a := New(capture.NewWriter(full{}, capture.WriterOptions{Buffer: 16}), 4096)
	var opt decode.Options
	a.Options(&opt)
	if err := decode.New(opt, a.Transaction).Run(r); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Close(); !errors.Is(err, errFull) || !errors.Is(a.Err(), errFull) {
		t.Error(err)
	}
}

// FuzzAnnotate annotates damaged captures: as many packets come out.
