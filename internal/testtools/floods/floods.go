// Package floods makes captures whose only purpose is to make a decoder hold
// much: many open calls, connections, gaps, fragments. Each is a stream of
// frames, made as they are asked for, so that the maker holds nothing itself.
package floods

import (
	"encoding/binary"
	"io"
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// Flood is a kind of capture. Make hands each frame to add, for n of what is
// flooded with.
type Flood struct {
	Name string
	// N is how many there are in a flood that an unbounded decoder would hold
	// some hundred megabytes of.
	N    int
	Make func(n int, add func([]byte))
}

var client, server = netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")

// All are the floods.
var All = []Flood{
	{"segments", 1000, func(n int, add func([]byte)) {
		calls(n, add, func(i uint32, h *rpcrdma.Header) {
			h.Writes = []rpcrdma.WriteChunk{segments(i*4000, 4000)}
		})
	}},
	{"chunks", 500, func(n int, add func([]byte)) {
		calls(n, add, func(i uint32, h *rpcrdma.Header) {
			for _, s := range segments(i*3000, 3000) {
				h.Writes = append(h.Writes, rpcrdma.WriteChunk{s})
			}
		})
	}},
	{"positions", 1000, func(n int, add func([]byte)) {
		calls(n, add, func(i uint32, h *rpcrdma.Header) {
			for j, s := range segments(i*2000, 2000) {
				h.Reads = append(h.Reads, rpcrdma.ReadSegment{Position: uint32(8000 - 4*j), Segment: s})
			}
		})
	}},
	{"calls", 200_000, func(n int, add func([]byte)) { calls(n, add, func(uint32, *rpcrdma.Header) {}) }},
	{"position-zero", 600, positionZero},
	{"beginnings", 20_000, func(n int, add func([]byte)) {
		r := sender{add: add}
		body := make([]byte, 4096)
		for i := range uint32(n) {
			r.send(client, server, 2+i, roce.RCSendFirst, 1, body, nil)
			r.send(client, server, 2+i, roce.RCSendMiddle, 2, body, nil)
		}
	}},
	{"writes", 2_000_000, func(n int, add func([]byte)) {
		r := sender{add: add}
		body := make([]byte, 16)
		for i := range uint32(n) {
			r.send(client, server, 2+i%8000, roce.RCWriteOnly, i/8000, body, func(p *roce.Packet) {
				p.RETH = roce.RETHFields{VA: uint64(i), RKey: i, DMALen: 16}
			})
		}
	}},
	{"queue-pairs", 500_000, func(n int, add func([]byte)) {
		r := sender{add: add}
		h := rpcrdma.Header{Version: rpcrdma.Version1, Type: rpcrdma.TypeMsg}
		for i := range uint32(n) {
			h.XID = i
			r.send(client, server, 2+i, roce.RCSendOnly, i*7919, message(&h, 40), nil)
		}
	}},
	{"sequence-numbers", 200_000, func(n int, add func([]byte)) {
		r := sender{add: add}
		h := rpcrdma.Header{Version: rpcrdma.Version1, Type: rpcrdma.TypeMsg}
		for i := range uint32(n) {
			h.XID = i
			r.send(client, server, 17, roce.RCSendOnly, i*0x9e3779b1>>8, message(&h, 40), nil)
		}
	}},
	{"requests", 200_000, func(n int, add func([]byte)) {
		r := sender{add: add}
		for i := range uint32(n) {
			b, mad := ibcm.Append(nil, ibcm.AttributeREQ, uint64(i)+1)
			q := ibcm.REQ(mad.Data())
			q.SetLocalID(i + 1)
			q.SetLocalQPN(2 + i)
			q.SetStartingPSN(i)
			q.SetPathMTU(ibcm.MTUCode(4096))
			q.SetServiceID(ibcm.ServiceID(0x0000000001064e51))
			r.send(client, server, 1, roce.UDSendOnly, i, b, func(p *roce.Packet) {
				p.DETH = roce.DETHFields{QKey: 0x80010000, SrcQP: 1}
			})
		}
	}},
	{"udp", 100_000, func(n int, add func([]byte)) {
		h := rpcrdma.Header{}
		for i := range uint32(n) {
			h.XID = i
			add(datagram(address(i>>15), server, uint16(1024+i&0x7fff), 2049, rpc(nil, h.XID, 40)))
		}
	}},
	{"tcp-calls", 20_000, func(n int, add func([]byte)) {
		// Each connection has begun a record of 1 MiB.
		for i := range uint32(n) {
			b := binary.BigEndian.AppendUint32(nil, 0x80000000|1<<20)
			src, port := address(i>>15), uint16(1024+i&0x7fff)
			add(segment(src, server, port, 2049, 1, 0x10, rpc(b, i, 1300)))
			for j := range uint32(4) {
				add(segment(src, server, port, 2049, 1+1344+j*1400, 0x10, make([]byte, 1400)))
			}
		}
	}},
	{"tcp-records", 24, func(n int, add func([]byte)) {
		// Few connections with 4 MiB records that do not end.
		body := make([]byte, 60_000)
		for at := uint32(0); at < 4<<20; at += 60_000 {
			for i := range uint32(n) {
				port := uint16(1024 + i)
				if at == 0 {
					b := binary.BigEndian.AppendUint32(nil, 0x80000000|8<<20)
					b = rpc(b, i, 0)
					add(segment(client, server, port, 2049, 1, 0x10, append(b, body[:60_000-len(b)]...)))
					continue
				}
				add(segment(client, server, port, 2049, 1+at, 0x10, body))
			}
		}
	}},
	{"tcp-gaps", 4000, func(n int, add func([]byte)) {
		body := make([]byte, 1400)
		for i := range uint32(n) {
			src, port := address(i>>15), uint16(1024+i&0x7fff)
			b := binary.BigEndian.AppendUint32(nil, 0x80000000|1<<20)
			add(segment(src, server, port, 2049, 1, 0x10, rpc(b, i, 1300)))
			for j := range uint32(32) { // every second segment lacks
				add(segment(src, server, port, 2049, 5000+j*2800, 0x10, body))
			}
		}
	}},
	{"tcp-ports", 400_000, func(n int, add func([]byte)) {
		for i := range uint32(n) {
			add(segment(address(i>>15), server, uint16(1024+i&0x7fff), 80, 1, 0x02, nil))
		}
	}},
	{"iwarp-search", 4000, func(n int, add func([]byte)) {
		// Nothing to be recognised, on the port of NFS over RDMA.
		body := make([]byte, 1400)
		for i := range body {
			body[i] = byte(i*7 + 3)
		}
		for j := range uint32(60) {
			for i := range uint32(n) {
				add(segment(address(i>>15), server, uint16(1024+i&0x7fff), 20049, 1+j*1400, 0x10, body))
			}
		}
	}},
	{"fragments", 100_000, func(n int, add func([]byte)) {
		for i := range uint32(n) {
			add(fragment(client, server, uint16(i), 32768, make([]byte, 1400)))
		}
	}},
}

// address is one of many.
func address(i uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func segments(first uint32, n int) (list rpcrdma.WriteChunk) {
	for i := range uint32(n) {
		list = append(list, rpcrdma.Segment{Handle: first + i, Length: 4096, Offset: uint64(i) << 12})
	}
	return list
}

// rpc is a call.
func rpc(b []byte, xid uint32, args int) []byte {
	for _, w := range []uint32{xid, 0, 2, rocetest.Program, 3, 1, 0, 0, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return append(b, make([]byte, args)...)
}

func message(h *rpcrdma.Header, args int) []byte {
	b := h.Append(nil)
	if h.Type != rpcrdma.TypeMsg {
		return b
	}
	return rpc(b, h.XID, args)
}

// calls are without a reply, on one connection.
func calls(n int, add func([]byte), fill func(i uint32, h *rpcrdma.Header)) {
	r := sender{add: add}
	psn := uint32(0)
	for i := range uint32(n) {
		h := rpcrdma.Header{XID: i, Version: rpcrdma.Version1, Type: rpcrdma.TypeMsg}
		fill(i, &h)
		psn = r.message(client, server, 17, psn, message(&h, 40))
	}
}

// positionZero has long calls whose chunk is read, and that are not answered.
func positionZero(n int, add func([]byte)) {
	r := sender{add: add}
	psn, answers := uint32(0), uint32(0)
	body := make([]byte, 4096)
	for i := range uint32(n) {
		h := rpcrdma.Header{XID: i, Version: rpcrdma.Version1, Type: rpcrdma.TypeNoMsg}
		h.Reads = []rpcrdma.ReadSegment{{Segment: rpcrdma.Segment{Handle: i, Length: 1 << 20}}}
		psn = r.message(client, server, 17, psn, message(&h, 0))
		r.send(server, client, 18, roce.RCReadRequest, answers, nil, func(p *roce.Packet) {
			p.RETH = roce.RETHFields{RKey: i, DMALen: 1 << 20}
		})
		const packets = 1 << 20 / 4096
		for j := range uint32(packets) {
			op := roce.RCReadResponseMiddle
			switch j {
			case 0:
				op = roce.RCReadResponseFirst
			case packets - 1:
				op = roce.RCReadResponseLast
			}
			r.send(client, server, 17, op, answers+j, body, nil)
		}
		answers += packets
	}
}

// sender makes frames of RoCEv2.
type sender struct {
	add func([]byte)
	one [1]rocetest.Record
}

func (r *sender) send(src, dst netip.Addr, qp uint32, op roce.Opcode, psn uint32, payload []byte, set func(*roce.Packet)) {
	pad := -len(payload) & 3
	p := &rocetest.Packet{
		Packet: roce.Packet{
			Opcode: op, DestQP: qp & 0xffffff, PSN: psn & 0xffffff, PKey: 0xffff, Payload: payload, PayloadLen: len(payload), Pad: uint8(pad),
		},
		Src: src, Dst: dst, SrcPort: 0xc000,
	}
	if set != nil {
		set(&p.Packet)
	}
	r.one[0] = rocetest.Record{Cut: -1, Packet: p}
	r.add(rocetest.Frames(r.one[:])[0].Data)
}

// message is a Send of several packets. It returns the PSN after it.
func (r *sender) message(src, dst netip.Addr, qp, psn uint32, b []byte) uint32 {
	const mtu = 4096
	for at := 0; at < len(b); at += mtu {
		end := min(at+mtu, len(b))
		op := roce.RCSendMiddle
		switch {
		case at == 0 && end == len(b):
			op = roce.RCSendOnly
		case at == 0:
			op = roce.RCSendFirst
		case end == len(b):
			op = roce.RCSendLast
		}
		r.send(src, dst, qp, op, psn, b[at:end], nil)
		psn++
	}
	return psn
}

func ipv4(src, dst netip.Addr, proto byte, id uint16, flags uint16, payload int) []byte {
	b := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, 0x45, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(20+payload))
	b = binary.BigEndian.AppendUint16(b, id)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = append(b, 64, proto, 0, 0)
	b = append(b, src.AsSlice()...)
	return append(b, dst.AsSlice()...)
}

func datagram(src, dst netip.Addr, from, to uint16, payload []byte) []byte {
	b := ipv4(src, dst, 17, 0, 0x4000, 8+len(payload))
	b = binary.BigEndian.AppendUint16(b, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	return append(append(b, 0, 0), payload...)
}

func segment(src, dst netip.Addr, from, to uint16, seq uint32, flags byte, payload []byte) []byte {
	b := ipv4(src, dst, 6, 0, 0x4000, 20+len(payload))
	b = binary.BigEndian.AppendUint16(b, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint32(b, seq)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = append(b, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0)
	return append(b, payload...)
}

// fragment is one that is not the last, at an offset.
func fragment(src, dst netip.Addr, id uint16, offset int, payload []byte) []byte {
	return append(ipv4(src, dst, 17, id, uint16(0x2000|offset/8), len(payload)), payload...)
}

// Reader is a capture.Reader of a flood.
type Reader struct {
	batches chan []capture.Packet
	stop    chan struct{}
}

// Read returns a Reader of n of a flood.
func (f *Flood) Read(n int) *Reader {
	r := &Reader{make(chan []capture.Packet, 1), make(chan struct{})}
	go func() {
		defer close(r.batches)
		var list []capture.Packet
		bytes, number := 0, uint64(0)
		flush := func() bool {
			select {
			case r.batches <- list:
				list, bytes = nil, 0
				return true
			case <-r.stop:
				return false
			}
		}
		f.Make(n, func(b []byte) {
			number++
			list = append(list, capture.Packet{
				Time: start + int64(number)*1000, Number: number, Link: capture.LinkEthernet, Length: uint32(len(b)), Data: b,
			})
			if bytes += len(b); bytes > 128<<10 {
				flush()
			}
		})
		flush()
	}()
	return r
}

const start = 1_700_000_000_000_000_000

// Read implements capture.Reader.
func (r *Reader) Read(b *capture.Batch) error {
	list := <-r.batches
	if len(list) == 0 {
		return io.EOF
	}
	b.Packets = append(b.Packets[:0], list...)
	return nil
}

// Problems implements capture.Reader.
func (r *Reader) Problems() ([]*capture.Problem, int) { return nil, 0 }

// Close implements capture.Reader.
func (r *Reader) Close() error { return nil }
