package iwarp

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

func FuzzMPAFrame(f *testing.F) {
	for _, s := range []string{mpaRequestCRC, mpaReplyCRC, mpaRequestP2P, mpaReplyP2P} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m MPAFrame
		n, err := m.Decode(b)
		if err != nil {
			return
		}
		if n > len(b) || n != m.Size() || !bytes.Equal(m.Append(nil), b[:n]) {
			t.Errorf("%x: %d bytes, %+v gives %x", b, n, m, m.Append(nil))
		}
	})
}

func FuzzFPDU(f *testing.F) {
	for _, s := range []string{fpduCall, fpduReply, fpduWrite} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Sniff(b, len(b))
		g, err := ParseFPDU(b)
		if err != nil {
			return
		}
		u := ULPDU(g.ULPDU())
		again := AppendFPDU(nil, u, false)
		if len(again) != len(g) || !bytes.Equal(again[:2+len(u)], g[:2+len(u)]) {
			t.Errorf("%x gives %x", b, again)
		}
		if !u.Valid(len(u)) {
			return
		}
		p := u.Payload()
		if u.Control().Opcode() == OpTerminate && len(p) >= TerminateLen {
			x := Terminate(p)
			_, _, _, _ = x.String(), x.DDPHeader(), x.ReadRequest(), x.Word()
			x.SegmentLength()
		}
		marked := AppendMarkedFPDU(nil, u, true, 512)
		if plain := RemoveMarkers(nil, marked, 512); !bytes.Equal(plain[:2+len(u)], g[:2+len(u)]) {
			t.Errorf("%x with markers gives %x", b, plain)
		}
	})
}

// checker is a Handler that knows what must always hold.
type checker struct {
	t *testing.T
	recorder
}

func (c *checker) Send(k *rdma.Connection, s *rdma.Send) rdma.Tag {
	if len(s.Data) > s.Length || cap(s.Data) != len(s.Data) || s.Packets < 1 || s.First.Number > s.Last.Number || !s.First.Seen() {
		c.t.Errorf("Send of %d/%d bytes, capacity %d, %d packets, %v to %v", len(s.Data), s.Length, cap(s.Data), s.Packets, s.First, s.Last)
	}
	return rdma.Tag{}
}

func (c *checker) OpData(k *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	if len(f.Data) > int(f.Length) || !f.Ref.Seen() {
		c.t.Errorf("fragment of %d/%d bytes, %v", len(f.Data), f.Length, f.Ref)
	}
	if op.Kind == rdma.Read && (f.Offset-op.Offset > uint64(op.Length) || uint64(f.Length) > uint64(op.Length)-(f.Offset-op.Offset)) {
		c.t.Errorf("%d bytes at %x of a Read of %d at %x", f.Length, f.Offset, op.Length, op.Offset)
	}
}

// FuzzConn plays segments: each is a byte of flags, two of the distance of its
// sequence number, one of the captured share, and its length.
func FuzzConn(f *testing.F) {
	script := func(parts ...[]byte) []byte {
		var b []byte
		for i, p := range parts {
			b = append(b, byte(i&1)|0x80, 0, 0, 255, byte(len(p)>>8), byte(len(p)))
			b = append(b, p...)
		}
		return b
	}
	f.Add(script(unhex(f, mpaRequestCRC), unhex(f, mpaReplyCRC), unhex(f, fpduCall), unhex(f, fpduReply), nil, unhex(f, fpduWrite)), true)
	f.Add(script(unhex(f, fpduCall), unhex(f, fpduReply), nil, unhex(f, fpduWrite)), false)
	p := newPeer(true, true, 300)
	p.mpa(&MPAFrame{Reply: true, Revision: 1, CRC: true})
	p.untagged(OpSend, 0, make([]byte, 1000))
	p.untagged(OpReadRequest, 0, AppendReadRequest(nil, 1, 2, 3, 4, 5))
	p.untagged(OpTerminate, 0, AppendTerminate(nil, LayerDDP, 2, 2, 0, nil, nil))
	f.Add(script(unhex(f, mpaRequestCRC), p.stream[:300], nil, p.stream[300:700], nil, p.stream[700:]), true)
	// An FPDU whose length reaches into the next ones, and segments that are seen again with other bytes.
	for _, crc := range []bool{false, true} {
		q := newPeer(crc, false, 300)
		q.mpa(&MPAFrame{Revision: 1, CRC: crc})
		parts := [][]byte{bytes.Clone(q.stream), unhex(f, mpaReplyCRC)}
		for i := range 4 {
			from := len(q.stream)
			q.untagged(OpSend, 0, make([]byte, 60))
			x := bytes.Clone(q.stream[from:])
			if i == 1 {
				x[0] = 0xf0
			}
			parts = append(parts, x, nil)
		}
		whole := script(parts...)
		f.Add(whole, true)
		twice := append(bytes.Clone(whole), whole[len(whole)-6-84-6:]...)
		twice[len(whole)+1], twice[len(whole)+2] = 0xff, 0xac // 84 bytes back
		twice[len(twice)-20] ^= 0x5a
		f.Add(twice, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, syn bool) {
		x := &checker{t: t, recorder: *newRecorder()}
		x.quiet = true
		c := NewTracker(x, Options{MaxSend: 1000}).New(connection())
		var seq [2]uint32
		n := uint64(0)
		if syn {
			for dir := range 2 {
				n++
				c.Segment(dir, &link.Frame{TCPFlags: tcp.SYN}, rdma.Ref{Number: n})
				seq[dir]++
			}
		}
		for len(b) >= 6 {
			dir := int(b[0] & 1)
			distance := int16(uint16(b[1])<<8 | uint16(b[2]))
			size := int(b[4])<<8 | int(b[5])
			have := min(size*int(b[3])/255, len(b)-6)
			fr := link.Frame{TCPSeq: seq[dir] + uint32(int32(distance)), TCPAck: seq[dir^1], PayloadLen: size}
			if b[0]&0x80 != 0 {
				fr.TCPFlags |= flagACK
			}
			if b[0]&0x40 != 0 {
				fr.TCPFlags |= uint8(b[0]>>2) & 7
			}
			fr.Payload = b[6 : 6+have]
			n++
			ref := rdma.Ref{Number: n, Time: int64(n)}
			if !c.Segment(dir, &fr, ref) {
				c = NewTracker(x, Options{MaxSend: 1000}).New(connection())
				c.Segment(dir, &fr, ref)
			}
			seq[dir] = fr.TCPSeq + uint32(size)
			b = b[6+have:]
		}
		c.Close("", rdma.Ref{Number: n + 1})
	})
}

// maxFPDU is the largest FPDU: length, ULPDU, pad, CRC, and one marker for each
// 508 bytes of it, with one more in front.
const maxFPDU = FPDUHeaderLen + MaxULPDU + 3 + CRCLen + ((MaxULPDU+9)/markerData+2)*MarkerLen

// FuzzStream plays a stream with holes, without TCP: what of the first bytes
// is seen, the rest of each step is skipped.
func FuzzStream(f *testing.F) {
	p := newPeer(false, false, 200)
	p.untagged(OpSend, 0, make([]byte, 500))
	p.tagged(OpWrite, 1, 2, make([]byte, 500))
	f.Add(p.stream, []byte{200, 0, 200, 0, 200, 50, 100, 0}, false)
	f.Add(p.stream, []byte{20, 180}, true)
	f.Fuzz(func(t *testing.T, stream, steps []byte, markers bool) {
		x := &checker{t: t, recorder: *newRecorder()}
		x.quiet = true
		c := NewTracker(x, Options{MaxSend: 1000}).New(connection())
		h := &c.halves[0]
		h.mode, h.marked = modeFraming, markers
		n := uint64(0)
		for i := 0; len(stream) > 0; i++ {
			see, skip := len(stream), 0
			if 2*i+1 < len(steps) {
				see, skip = min(int(steps[2*i]), len(stream)), int(steps[2*i+1])
			}
			n++
			h.data(stream[:see:see], rdma.Ref{Number: n})
			stream = stream[see:]
			if skip > 0 {
				h.skip(uint64(skip))
				stream = stream[min(skip, len(stream)):]
			}
			if h.have > 0 && (h.have > maxFPDU || len(h.buf) > h.have) {
				t.Fatalf("%d of %d bytes", len(h.buf), h.have)
			}
			if h.mode == modeFraming && h.pos != h.start+uint64(h.have) && h.have > 0 {
				t.Fatalf("at %d, FPDU from %d with %d bytes", h.pos, h.start, h.have)
			}
		}
		c.Close("", rdma.Ref{})
	})
}
