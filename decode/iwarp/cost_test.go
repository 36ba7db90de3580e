package iwarp

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// traffic is segments of both directions that can be played forever: the sequence numbers go on.
type traffic struct {
	c     *Conn
	frame [2][]link.Frame
	seq   [2]uint32
	n     uint64
}

// newTraffic makes rounds of calls of n bytes, Reads, Writes and replies.
func newTraffic(n int, crc bool, unaligned bool) *traffic {
	rec := newRecorder()
	rec.quiet = true
	x := &traffic{c: NewTracker(rec, Options{}).New(connection())}
	set := &MPAFrame{Revision: 1, CRC: crc}
	peers := [2]*peer{newPeer(crc, false, 1442), newPeer(crc, false, 1442)}
	for i := range peers {
		set.Reply = i == 1
		x.segment(i, &link.Frame{TCPFlags: 2, PayloadLen: 0})
		x.seq[i]++
		b := set.Append(nil)
		x.segment(i, &link.Frame{TCPFlags: flagACK, Payload: b, PayloadLen: len(b)})
	}
	var offset uint64
	for range 16 {
		peers[0].untagged(OpSend, 0, make([]byte, n))
		peers[1].untagged(OpReadRequest, 0, AppendReadRequest(nil, 7, offset, uint32(n), 8, offset))
		peers[0].tagged(OpReadResponse, 7, offset, make([]byte, n))
		peers[1].tagged(OpWrite, 9, offset, make([]byte, n))
		peers[1].untagged(OpSendInvalidate, 3, make([]byte, n))
		offset += uint64(n)
	}
	for i, p := range peers {
		if unaligned {
			for at := 0; at < len(p.stream); at += 1000 {
				end := min(at+1000, len(p.stream))
				x.frame[i] = append(x.frame[i], link.Frame{TCPFlags: flagACK, Payload: p.stream[at:end], PayloadLen: end - at})
			}
			continue
		}
		for j, at := range p.starts {
			end := len(p.stream)
			if j+1 < len(p.starts) {
				end = p.starts[j+1]
			}
			x.frame[i] = append(x.frame[i], link.Frame{TCPFlags: flagACK, Payload: p.stream[at:end], PayloadLen: end - at})
		}
	}
	return x
}

func (x *traffic) segment(dir int, f *link.Frame) {
	x.n++
	f.TCPSeq = x.seq[dir]
	f.TCPAck = x.seq[dir^1]
	x.c.Segment(dir, f, rdma.Ref{Time: int64(x.n), Number: x.n})
	x.seq[dir] += uint32(f.PayloadLen)
}

func (x *traffic) round() (fpdus int) {
	// Requests go before responses, as far as they depend on each other.
	for _, i := range []int{1, 0} {
		for j := range x.frame[i] {
			x.segment(i, &x.frame[i][j])
		}
		fpdus += len(x.frame[i])
	}
	return fpdus
}

func TestNoAllocations(t *testing.T) {
	for _, test := range []struct {
		name           string
		n              int
		crc, unaligned bool
	}{
		{"whole", 100, false, false}, {"crc", 1400, true, false}, {"several segments", 10000, true, false}, {"unaligned", 5000, true, true},
	} {
		x := newTraffic(test.n, test.crc, test.unaligned)
		for range 200 {
			x.round()
		}
		if n := testing.AllocsPerRun(100, func() { x.round() }); n != 0 {
			t.Errorf("%s: %v allocations", test.name, n)
		}
		sent := x.c.c.Sent
		if sent[0].Sends == 0 || sent[1].Reads != sent[0].Sends || sent[1].Writes != sent[0].Sends || sent[0].ReadBytes != sent[1].WriteBytes || sent[0].BadCRC != 0 {
			t.Errorf("%s: %+v", test.name, sent)
		}
	}
}

func TestCodecAllocations(t *testing.T) {
	var f MPAFrame
	request, call := unhex(t, mpaRequestCRC), unhex(t, fpduCall)
	u := FPDU(call).ULPDU()
	buf := make([]byte, 0, 2048)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := f.Decode(request); err != nil {
			t.Error(err)
		}
		buf = f.Append(buf[:0])
		buf = AppendFPDU(buf, u, true)
		buf = AppendMarkedFPDU(buf, u, true, 0)
		if g, err := ParseFPDU(call); err != nil || g.Checksum() != g.CRC() || !ULPDU(g.ULPDU()).Valid(86) {
			t.Error(err)
		}
		if Sniff(call, len(call)) != Yes {
			t.Error("not recognised")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkConn(b *testing.B) {
	for _, bench := range []struct {
		n              int
		crc, unaligned bool
	}{{100, false, false}, {100, true, false}, {1400, false, false}, {1400, true, false}, {1400, true, true}} {
		b.Run(fmt.Sprintf("%dB/crc=%v/unaligned=%v", bench.n, bench.crc, bench.unaligned), func(b *testing.B) {
			x := newTraffic(bench.n, bench.crc, bench.unaligned)
			for range 50 {
				x.round()
			}
			fpdus, bytes := 0, x.c.c.Sent[0].Bytes+x.c.c.Sent[1].Bytes
			b.ReportAllocs()
			b.ResetTimer()
			for fpdus < b.N {
				fpdus += x.round()
			}
			b.StopTimer()
			b.SetBytes(int64((x.c.c.Sent[0].Bytes + x.c.c.Sent[1].Bytes - bytes) / uint64(fpdus)))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(fpdus), "ns/segment")
		})
	}
}

// searchThrough feeds the search a megabyte of a pattern in segments of a size.
func searchThrough(fill func(b []byte), size int, each func(h *half)) {
	rec := newRecorder()
	rec.quiet = true
	c := NewTracker(rec, Options{}).New(connection())
	c.recognise() // no giving up
	b := make([]byte, 1<<20)
	fill(b)
	h := &c.halves[0]
	for at := 0; at < len(b); at += size {
		h.data(b[at:min(at+size, len(b))], rdma.Ref{Number: uint64(at + 1)})
		each(h)
	}
}

// patterns are what the search may have to go through, from what is usual to
// what is made to hurt.
var patterns = map[string]func([]byte){
	"zero":   func(b []byte) {},
	"random": func(b []byte) { rand.New(rand.NewSource(1)).Read(b) },
	// Each place looks like the start of a long tagged FPDU.
	"tagged": func(b []byte) {
		for i := range b {
			b[i] = "\xc1\x40"[i&1]
		}
	},
	"short": func(b []byte) {
		// Chains of short tagged FPDUs, one of which is broken.
		for i := 0; i+4 <= len(b); i += 4 {
			copy(b[i:], "\x00\x0e\x81\x40")
		}
	},
	// Good untagged FPDUs, each followed by a bad one.
	"lures": func(b []byte) {
		one := AppendFPDU(nil, AppendUntagged(nil, NewControl(OpSend, true), 0, 1, 0), false)
		for i := 0; i+len(one)+1 < len(b); i += len(one) + 1 {
			copy(b[i:], one)
			b[i+len(one)] = 0xff
		}
	},
	// Good long ones that end nowhere.
	"traps": func(b []byte) {
		one := AppendUntagged([]byte{0xff, 0xf0}, NewControl(OpSend, true), 0, 1, 0)
		for i := 0; i+len(one) < len(b); i += len(one) {
			copy(b[i:], one)
		}
	},
}

// TestSearchBounds checks that the search keeps no more than it may. That its
// time is linear is for BenchmarkSearch to show.
func TestSearchBounds(t *testing.T) {
	for name, fill := range patterns {
		for _, size := range []int{20, 1448, 60000, 1 << 20} {
			searchThrough(fill, size, func(h *half) {
				if s := h.search; h.mode == modeSearch && (len(s.buf) > searchKnown || len(s.pieces) > maxPieces || len(s.candidates) > maxCandidates || s.cursor > len(s.buf)) {
					t.Fatalf("%s in segments of %d: %d bytes, %d pieces, %d candidates, cursor %d", name, size, len(s.buf), len(s.pieces), len(s.candidates), s.cursor)
				}
				if len(h.buf) > maxFPDU {
					t.Fatalf("%s in segments of %d: an FPDU of %d bytes", name, size, len(h.buf))
				}
			})
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	for name, fill := range patterns {
		for _, size := range []int{20, 1448, 60000} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(1 << 20)
				for range b.N {
					searchThrough(fill, size, func(*half) {})
				}
			})
		}
	}
}

func BenchmarkMPAFrame(b *testing.B) {
	var f MPAFrame
	p := unhex(b, mpaRequestCRC)
	b.ReportAllocs()
	for range b.N {
		if _, err := f.Decode(p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendFPDU(b *testing.B) {
	u := make([]byte, 1442)
	buf := make([]byte, 0, 2000)
	b.SetBytes(1448)
	b.ReportAllocs()
	for range b.N {
		buf = AppendFPDU(buf[:0], u, true)
	}
}
