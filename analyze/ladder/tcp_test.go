package ladder

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// packets is a capture.Reader of packets in memory.
type packets struct{ list []capture.Packet }

func (p *packets) Read(b *capture.Batch) error {
	if len(p.list) == 0 {
		return io.EOF
	}
	b.Packets, p.list = append(b.Packets[:0], p.list...), nil
	return nil
}

func (p *packets) Problems() ([]*capture.Problem, int) { return nil, 0 }
func (p *packets) Close() error                        { return nil }

// segment of TCP in IPv4, from port a of 192.0.2.a to port b.
func (p *packets) segment(at int64, a, b uint16, seq, ack uint32, data []byte) {
	host := func(port uint16) byte {
		if port == 2049 {
			return 1
		}
		return 2
	}
	ip := []byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, host(a), 192, 0, 2, host(b)}
	binary.BigEndian.PutUint16(ip[2:], uint16(40+len(data)))
	ip = binary.BigEndian.AppendUint16(ip, a)
	ip = binary.BigEndian.AppendUint16(ip, b)
	ip = binary.BigEndian.AppendUint32(ip, seq)
	ip = binary.BigEndian.AppendUint32(ip, ack)
	ip = append(ip, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0)
	ip = append(ip, data...)
	p.list = append(p.list, capture.Packet{
		Time: 1e18 + at, Number: uint64(len(p.list) + 1), Link: capture.LinkRaw, Length: uint32(len(ip)), Data: ip,
	})
}

// nfsOverTCP is an NFSv3 READ of 4000 bytes whose reply takes four segments, of
// which the third comes twice, and which is acknowledged in two steps.
func nfsOverTCP(t *testing.T) capture.Reader {
	t.Helper()
	words := func(b []byte, w ...uint32) []byte {
		for _, x := range w {
			b = binary.BigEndian.AppendUint32(b, x)
		}
		return b
	}
	const xid, client, server = 0x11223344, 1 << 20, 1 << 30
	// Call: AUTH_NONE, file handle of 4 bytes, offset 0, count 4000.
	call := words(nil, xid, 0, 2, 100003, 3, 6, 0, 0, 0, 0, 4, 0xabad1dea, 0, 0, 4000)
	call = append(words(nil, 0x80000000|uint32(len(call))), call...)
	// Reply: accepted, no attributes, count 4000, not the end, data.
	reply := words(nil, xid, 1, 0, 0, 0, 0, 0, 0, 4000, 0, 4000)
	reply = append(reply, make([]byte, 4000)...)
	reply = append(words(nil, 0x80000000|uint32(len(reply))), reply...)
	p := &packets{}
	p.segment(0, 800, 2049, client, server, call)
	next := client + uint32(len(call))
	p.segment(50e3, 2049, 800, server, next, nil)
	for i, at := range []int64{900e3, 901e3, 950e3, 960e3} {
		from, to := i*1100, min((i+1)*1100, len(reply))
		p.segment(at, 2049, 800, server+uint32(from), next, reply[from:to])
		if i == 1 {
			p.segment(at+10e3, 800, 2049, next, server+2200, nil)
		}
		if i == 2 {
			p.segment(at+5e3, 2049, 800, server+uint32(from), next, reply[from:to])
		}
	}
	p.segment(1000e3, 800, 2049, next, server+uint32(len(reply)), nil)
	return p
}
