package iwarp

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// idle is a connection that does not read, and writes only what batch returns.
func idle(depth int, a agreement) *conn {
	end, _ := net.Pipe()
	c := &conn{state: verbs.StateRTS, agreement: a, s: &socket{Conn: end}}
	c.sends.init(depth)
	c.completions.init(depth)
	c.resps.ring = make([]response, 4)
	c.tx.c = c
	c.tx.sendMSN, c.tx.readMSN = 1, 1
	return c
}

// add adds a request to the queue.
func (c *conn) add(op verbs.Op, parts ...[]byte) {
	e := c.sends.at(c.sends.tail)
	c.sends.tail++
	e.op, e.sge, e.length = op, parts, 0
	for _, p := range parts {
		e.length += len(p)
	}
}

// batch is what is written next, as if the socket took all of it; nil if there is nothing.
func (c *conn) batch(t *testing.T) []byte {
	t.Helper()
	x := &c.tx
	if !x.plan() {
		return nil
	}
	if len(x.segs) > txFPDUs {
		t.Fatalf("%d segments", len(x.segs))
	}
	x.build()
	if cap(x.heads) > txHeaders {
		t.Fatalf("%d bytes of headers", cap(x.heads))
	}
	b := bytes.Join(x.vecs, nil)
	if len(b) != x.size {
		t.Fatalf("%d bytes, said to be %d", len(b), x.size)
	}
	x.account(len(b))
	if !x.empty() {
		t.Fatal("not accounted for")
	}
	return b
}

// TestBatches: messages of any size, in any number of pieces, arrive as they were posted, in FPDUs that are not too large.
func TestBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 300 {
		a := agreement{maxULPDU: minULPDU + rng.IntN(2000), crc: rng.IntN(2) == 0}
		c := idle(256, a)
		var want [][]byte
		for range 1 + rng.IntN(200) {
			var parts [][]byte
			for range rng.IntN(4) {
				p := make([]byte, 1+rng.IntN(1+rng.IntN(400)))
				for i := range p {
					p[i] = byte(rng.Uint32())
				}
				parts = append(parts, p)
			}
			if round%10 == 0 { // so much that the room for headers fills up
				parts = [][]byte{make([]byte, inlineMax)}
			} else if rng.IntN(20) == 0 {
				parts = append(parts, make([]byte, 5000))
			}
			op := verbs.OpSend
			if round%10 != 0 && rng.IntN(10) == 0 {
				op = verbs.OpSendInvalidate
			}
			want = append(want, bytes.Join(parts, nil))
			c.add(op, parts...)
		}
		var stream []byte
		for b := c.batch(t); b != nil; b = c.batch(t) {
			stream = append(stream, b...)
		}
		var message []byte
		for msn := uint32(1); len(stream) > 0; {
			f, err := iwarp.ParseFPDU(stream)
			if err != nil {
				t.Fatal(err)
			}
			stream = stream[len(f):]
			u := iwarp.ULPDU(f.ULPDU())
			h := iwarp.Untagged(u)
			sum := uint32(0)
			if a.crc {
				sum = crc32.Checksum(f[:len(f)-iwarp.CRCLen], castagnoli)
			}
			if len(u) > a.maxULPDU || f.CRC() != sum || h.MSN() != msn || int(h.MO()) != len(message) {
				t.Fatalf("message %d: a segment of %d bytes at %d, of message %d, CRC %08x, not %08x", msn, len(u), h.MO(), h.MSN(), f.CRC(), sum)
			}
			message = append(message, u.Payload()...)
			if h.Control().Last() {
				if !bytes.Equal(message, want[msn-1]) {
					t.Fatalf("message %d of %d bytes has %d", msn, len(want[msn-1]), len(message))
				}
				message = message[:0]
				msn++
			}
		}
		if n := c.tx.sendMSN - 1; int(n) != len(want) || c.sends.head != c.sends.tail {
			t.Fatalf("%d of %d messages", n, len(want))
		}
	}
}

// TestShort: a short Send waits for what goes first.
func TestShort(t *testing.T) {
	a := agreement{maxULPDU: DefaultULPDU, ord: 1, ird: 1}
	first := func(c *conn) iwarp.Opcode {
		b := c.batch(t)
		if b == nil {
			return 0xff
		}
		f, err := iwarp.ParseFPDU(b)
		if err != nil {
			t.Fatal(err)
		}
		return iwarp.ULPDU(f.ULPDU()).Control().Opcode()
	}
	for _, x := range []struct {
		name string
		set  func(c *conn)
		want iwarp.Opcode
	}{
		{"nothing else", func(*conn) {}, iwarp.OpSend},
		{"the peer has to send first", func(c *conn) { c.tx.hold = true }, 0xff},
		{"the ready-to-receive message", func(c *conn) { c.tx.ready, c.rtr = true, RTRWrite }, iwarp.OpWrite},
		{"a Read Response", func(c *conn) { c.resps.at(0).refused, c.resps.tail = allowed, 1 }, iwarp.OpReadResponse},
		{"the Terminate", func(c *conn) { c.state, c.term = verbs.StateError, []byte{1, 2, 3, 4} }, iwarp.OpTerminate},
		{"the end", func(c *conn) { c.state = verbs.StateError }, 0xff},
		{"our direction is closed", func(c *conn) { c.finSent = true }, 0xff},
		{"a fence", func(c *conn) { c.sends.at(0).fence = true; c.reads.push(read{}) }, 0xff},
	} {
		c := idle(4, a)
		c.add(verbs.OpSend, []byte("call"))
		x.set(c)
		if got := first(c); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}
