package monitor

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// traffic makes NFSv3 GETATTR calls over UDP, and their replies.
type traffic struct {
	number uint64
}

// datagram is an Ethernet frame with a UDP datagram.
func (x *traffic) datagram(at int64, from, to uint32, fromPort, toPort uint16, payload []byte) capture.Packet {
	b := make([]byte, 0, 42+len(payload))
	b = append(b, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0)
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(28+len(payload)))
	b = append(b, 0, 0, 0x40, 0, 64, 17, 0, 0)
	b = binary.BigEndian.AppendUint32(b, from)
	b = binary.BigEndian.AppendUint32(b, to)
	b = binary.BigEndian.AppendUint16(b, fromPort)
	b = binary.BigEndian.AppendUint16(b, toPort)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	b = append(append(b, 0, 0), payload...)
	x.number++
	return capture.Packet{Time: at, Number: x.number, Length: uint32(len(b)), Link: capture.LinkEthernet, Data: b}
}

// call is GETATTR of a file handle.
func (x *traffic) call(at int64, client uint32, port uint16, xid uint32, handle uint64) capture.Packet {
	var b []byte
	for _, v := range []uint32{xid, 0, 2, 100003, 3, 1, 0, 0, 0, 0, 8} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = binary.BigEndian.AppendUint64(b, handle)
	return x.datagram(at, client, server, port, 2049, b)
}

// reply is a reply with the status NFS3ERR_STALE.
func (x *traffic) reply(at int64, client uint32, port uint16, xid uint32) capture.Packet {
	var b []byte
	for _, v := range []uint32{xid, 1, 0, 0, 0, 0, 70} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return x.datagram(at, server, client, 2049, port, b)
}

const server = 0xc0000201 // 192.0.2.1

const second = int64(1e9)

// at is a time of the tests.
func at(ns int64) int64 { return 1_700_000_000*second + ns }

// memory is a capture.Reader of packets in memory.
type memory struct {
	packets []capture.Packet
	batch   int
	end     error // io.EOF
}

func (m *memory) Read(b *capture.Batch) error {
	b.Packets = b.Packets[:0]
	if len(m.packets) == 0 {
		if m.end != nil {
			return m.end
		}
		return io.EOF
	}
	n := min(max(m.batch, 1), len(m.packets))
	b.Packets = append(b.Packets, m.packets[:n]...)
	m.packets = m.packets[n:]
	return nil
}

func (m *memory) Problems() ([]*capture.Problem, int) { return nil, 0 }
func (m *memory) Close() error                        { return nil }

// packets reads a sample.
func packets(t testing.TB, name string) (out []capture.Packet) {
	t.Helper()
	r, err := capture.Open([]string{samples + "/" + name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		var b capture.Batch
		if err := r.Read(&b); err != nil {
			if err != io.EOF {
				t.Fatal(err)
			}
			return out
		}
		out = append(out, b.Packets...)
	}
}
