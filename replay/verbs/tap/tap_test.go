package tap

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
)

// packets is a Tap that keeps what it gets.
type packets struct{ all [][]byte }

func (p *packets) Packet(_ time.Time, ip []byte) { p.all = append(p.all, bytes.Clone(ip)) }

// plainSum is the checksum's definition (RFC 1071), word by word.
func plainSum(b []byte) uint32 {
	var s uint32
	for i, v := range b {
		if i%2 == 0 {
			s += uint32(v) << 8
		} else {
			s += uint32(v)
		}
		s = s&0xffff + s>>16
	}
	return s
}

func checkPacket(t *testing.T, ip []byte, proto byte) (segment []byte) {
	t.Helper()
	header, addresses, length := 20, ip[12:20], int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 == 6 {
		header, addresses, length = 40, ip[8:40], 40+int(binary.BigEndian.Uint16(ip[4:]))
	} else if plainSum(ip[:20]) != 0xffff {
		t.Error("wrong IPv4 checksum")
	}
	if length != len(ip) {
		t.Errorf("packet of %d bytes says %d", len(ip), length)
	}
	segment = ip[header:]
	pseudo := append(bytes.Clone(addresses), 0, proto, byte(len(segment)>>8), byte(len(segment)))
	if plainSum(append(pseudo, segment...)) != 0xffff {
		t.Error("wrong transport checksum")
	}
	return segment
}

// TestTCP puts both directions together again from the packets.
func TestTCP(t *testing.T) {
	for _, ends := range [][2]string{{"192.0.2.1:1000", "192.0.2.2:20049"}, {"[2001:db8::1]:1000", "[2001:db8::2]:20049"}, {"[::ffff:192.0.2.1]:1", "192.0.2.2:2"}} {
		local, remote := netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1])
		for _, dialed := range []bool{true, false} {
			p := &packets{}
			c := NewTCP(p, local, remote, dialed)
			out, in := make([]byte, 150001), make([]byte, 70000)
			for i := range out {
				out[i] = byte(i * 7)
			}
			for i := range in {
				in[i] = byte(i * 3)
			}
			c.Sent(out[:1], nil, out[1:100000])
			c.Received(in)
			c.Sent(out[100000:])
			c.SentFIN()
			c.ReceivedFIN()
			c.SentFIN()
			c.Sent(out) // after the end: nothing
			var got [2][]byte
			var next [2]uint32
			var fins int
			for i, ip := range p.all {
				seg := checkPacket(t, ip, 6)
				from := 0
				if binary.BigEndian.Uint16(seg) != local.Port() {
					from = 1
				}
				seq, ack, flags := binary.BigEndian.Uint32(seg[4:]), binary.BigEndian.Uint32(seg[8:]), seg[13]
				if i > 1 && (seq != next[from] || ack != next[1-from]) {
					t.Fatalf("packet %d: sequence %d, acknowledges %d, want %d, %d", i, seq, ack, next[from], next[1-from])
				}
				if i == 0 && (from == 0) != dialed {
					t.Error("the wrong end opens the connection")
				}
				next[from] = seq + uint32(len(seg)-20)
				if flags&(flagSYN|flagFIN) != 0 {
					next[from]++
				}
				if flags&flagFIN != 0 {
					fins++
				}
				got[from] = append(got[from], seg[20:]...)
			}
			if !bytes.Equal(got[0], out) || !bytes.Equal(got[1], in) || fins != 2 {
				t.Errorf("%d and %d bytes, %d FINs", len(got[0]), len(got[1]), fins)
			}
		}
	}
}

func TestUDP(t *testing.T) {
	for _, ends := range [][2]string{{"192.0.2.1:1000", "192.0.2.2:4791"}, {"[2001:db8::1]:1000", "[2001:db8::2]:4791"}} {
		from, to := netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1])
		for _, n := range []int{0, 1, 1000, 1001} {
			payload := bytes.Repeat([]byte{0xa7}, n)
			seg := checkPacket(t, AppendUDP(nil, from, to, 7, true, payload[:n/2], payload[n/2:]), 17)
			if !bytes.Equal(seg[8:], payload) {
				t.Errorf("%d bytes: wrong payload", n)
			}
		}
	}
	ip := AppendUDP(nil, netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:2"), 0x1234, false, []byte{1})
	if sum := binary.BigEndian.Uint16(ip[26:]); sum != 0 || binary.BigEndian.Uint16(ip[4:]) != 0x1234 {
		t.Errorf("%x", ip)
	}
}

// TestWriter: times do not go back, whatever goroutine comes first.
func TestWriter(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(capture.NewWriter(&file, capture.WriterOptions{Format: capture.Pcapng}))
	ip := AppendUDP(nil, netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:2"), 1, true, []byte("abc"))
	start := time.Unix(1000, 0)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range 50 {
				w.Packet(start.Add(time.Duration(100*i-j)), ip)
			}
		}()
	}
	wg.Wait()
	if err := w.Flush(); err != nil || w.Packets() != 200 {
		t.Fatal(err, w.Packets())
	}
	r, err := capture.NewReader(&file, "self", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b capture.Batch
	last, n := int64(0), 0
	for {
		if err := r.Read(&b); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for i := range b.Packets {
			p := &b.Packets[i]
			n++
			if p.Time < last || p.Link != capture.LinkRaw || !bytes.Equal(p.Data, ip) {
				t.Fatalf("packet %d: %+v", n, p)
			}
			last = p.Time
		}
	}
	if n != 200 {
		t.Errorf("%d packets", n)
	}
}
