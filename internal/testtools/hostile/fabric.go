package hostile

import (
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// Attacks on what is kept of fabrics, transports and calls.

// segmentsEach is how many segments a call of openCalls has.
const segmentsEach = 4000

// openCalls are calls without a reply, each with one Write chunk of many
// segments.
func openCalls(g *gen, n int) {
	p := g.rdma(1)
	chunk := make(rpcrdma.WriteChunk, segmentsEach)
	for i := range chunk {
		chunk[i] = rpcrdma.Segment{Handle: uint32(i), Length: 4096, Offset: uint64(i) << 12}
	}
	args := &nfs3.READ3args{File: nfs3.NfsFh3{Data: handle(1)}, Count: 1 << 20}
	for range n {
		xid := g.id()
		p.send(0, xid, p.callMessage(xid, nfs, 3, 6, args), func(h *rpcrdma.Header) { h.Writes = []rpcrdma.WriteChunk{chunk} })
	}
}

// chunksEach is how many Write chunks a call of writeChunks has.
const chunksEach = 3000

// writeChunks are calls without a reply, each with many Write chunks of one
// segment.
func writeChunks(g *gen, n int) {
	p := g.rdma(1)
	chunks := make([]rpcrdma.WriteChunk, chunksEach)
	for i := range chunks {
		chunks[i] = rpcrdma.WriteChunk{{Handle: uint32(i), Length: 4096, Offset: uint64(i) << 12}}
	}
	args := &nfs3.READ3args{File: nfs3.NfsFh3{Data: handle(1)}, Count: 1 << 20}
	for range n {
		xid := g.id()
		p.send(0, xid, p.callMessage(xid, nfs, 3, 6, args), func(h *rpcrdma.Header) { h.Writes = chunks })
	}
}

// readSegments are calls without a reply, each with a Read list of many chunks, every segment at its own
// position.
func readSegments(g *gen, n int) {
	p := g.rdma(1)
	reads := make([]rpcrdma.ReadSegment, 2000)
	for i := range reads {
		reads[i] = rpcrdma.ReadSegment{Position: uint32(4 * (len(reads) - i)), Segment: rpcrdma.Segment{Handle: uint32(i), Length: 1 << 20}}
	}
	args := &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: handle(1)}}
	for range n {
		xid := g.id()
		p.send(0, xid, p.callMessage(xid, nfs, 3, 1, args), func(h *rpcrdma.Header) { h.Reads = reads })
	}
}

// writes are RDMA Writes to the one chunk of a call, each to the same place.
func writes(g *gen, n int) {
	p := g.rdma(1)
	q := p.link.(*pair)
	args := &nfs3.READ3args{File: nfs3.NfsFh3{Data: handle(1)}, Count: 1 << 20}
	xid := g.id()
	chunk := rpcrdma.WriteChunk{{Handle: 7, Length: 1 << 30, Offset: 0x1000}}
	p.send(0, xid, p.callMessage(xid, nfs, 3, 6, args), func(h *rpcrdma.Header) { h.Writes = []rpcrdma.WriteChunk{chunk} })
	data := make([]byte, 64)
	for i := range n {
		q.put(1, 7, 0x1000+uint64(i%5*128), data)
	}
	p.send(1, xid, replyMessage(xid, &nfs3.READ3res{}), func(h *rpcrdma.Header) { h.Writes = []rpcrdma.WriteChunk{chunk} })
}

// udpPorts are calls over UDP, each from its own port.
func udpPorts(g *gen, n int) {
	p := &peer{g: g}
	for i := range n {
		xid := g.id()
		m := p.callMessage(xid, nfs, 3, 1, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: handle(1)}})
		g.udp(netip.AddrPortFrom(g.host(1+i/60000), uint16(1024+i%60000)), netip.AddrPortFrom(g.host(0xfffe), nfsPort), m)
	}
}

// cmRequests are requests for a connection that nobody answers.
func cmRequests(g *gen, n int) {
	p := g.pair(g.host(1), g.host(0xfffe), 0)
	for i := range n {
		p.manage(0, ibcm.AttributeREQ, uint64(i), func(m ibcm.MAD) {
			r := ibcm.REQ(m.Data())
			r.SetLocalID(uint32(i) + 1)
			r.SetLocalQPN(uint32(i+2) & 0xffffff)
			r.SetStartingPSN(uint32(i))
			r.SetPathMTU(ibcm.MTUCode(4096))
			r.SetServiceID(ibcm.ServiceID(0x0000000001064e51))
		})
	}
}

// randomPSN are packets of all kinds whose sequence numbers follow nothing, on
// queue pairs that are not known either.
func randomPSN(g *gen, n int) {
	p := g.rdma(1)
	q := p.link.(*pair)
	ops := []roce.Opcode{
		roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCSendOnly, roce.RCWriteFirst, roce.RCWriteMiddle, roce.RCWriteLast,
		roce.RCWriteOnly, roce.RCReadRequest, roce.RCReadResponseFirst, roce.RCReadResponseMiddle, roce.RCReadResponseLast, roce.RCReadResponseOnly, roce.RCAcknowledge,
	}
	base := q.qpn
	for range n {
		op := ops[g.rng.IntN(len(ops))]
		side := g.rng.IntN(2)
		q.psn[side] = g.rng.Uint32() & 0xffffff
		q.qpn = base
		if g.rng.IntN(2) == 0 {
			q.qpn = [2]uint32{g.rng.Uint32() & 0xffffff, g.rng.Uint32() & 0xffffff}
		}
		k := &roce.Packet{Opcode: op, RETH: roce.RETHFields{VA: g.rng.Uint64(), RKey: g.rng.Uint32(), DMALen: g.rng.Uint32()}}
		var payload []byte
		if op != roce.RCReadRequest && op != roce.RCAcknowledge {
			xid := g.id()
			h := rpcrdma.Header{XID: xid, Version: 1, Credits: credits, Type: rpcrdma.TypeMsg}
			payload = append(h.Append(nil), p.callMessage(xid, nfs, 3, 1, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: handle(1)}})...)
		}
		q.packet(side, k, payload)
	}
}

// queuePairs are as many connections with one call each.
func queuePairs(g *gen, n int) {
	q := g.pair(g.host(1), g.host(0xfffe), 0)
	p := &peer{g: g, link: q, rdma: true}
	for i := range n {
		q.qpn = [2]uint32{uint32(2*i+2) & 0xffffff, uint32(2*i+3) & 0xffffff}
		q.psn = [2]uint32{}
		p.do(nfs, 3, 1, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: handle(1)}}, nil)
	}
}

// addresses are RDMA Writes, each from a different address.
func addresses(g *gen, n int) {
	for i := range n {
		q := g.pair(g.host(i), g.host(0xfffffe), uint32(2*i))
		q.packet(0, &roce.Packet{Opcode: roce.RCWriteOnly, RETH: roce.RETHFields{VA: 0x1000, RKey: 7, DMALen: 64}}, make([]byte, 64))
	}
}

// tcpConnections are as many with a call and its reply each.
func tcpConnections(g *gen, n int) {
	for i := range n {
		s := g.stream(netip.AddrPortFrom(g.host(1+i/60000), uint16(1024+i%60000)), netip.AddrPortFrom(g.host(0xfffe), nfsPort))
		p := &peer{g: g, link: s}
		g.tcp(s.ends[0], s.ends[1], s.seq[0]-1, 0, 2, nil)
		g.tcp(s.ends[1], s.ends[0], s.seq[1]-1, s.seq[0], 0x12, nil)
		p.do(nfs, 3, 1, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: handle(1)}}, attributes(1))
	}
}

// tcpHoles are segments that leave a gap before each of them.
func tcpHoles(g *gen, n int) {
	s := g.stream(netip.AddrPortFrom(g.host(1), 1000), netip.AddrPortFrom(g.host(0xfffe), nfsPort))
	p := &peer{g: g, link: s}
	p.do(nfs, 3, 1, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: handle(1)}}, attributes(1))
	for i := range n {
		g.tcp(s.ends[0], s.ends[1], s.seq[0]+uint32(n-i)*64, s.seq[1], 0x18, make([]byte, 16))
	}
}

// recordMarks are calls over TCP whose record marks claim all that follows. Each is answered, when there are some hundred of them.
func recordMarks(g *gen, n int) {
	const together, size, claimed = 240, 1000, 250_000
	s := g.stream(netip.AddrPortFrom(g.host(1), 1000), netip.AddrPortFrom(g.host(0xfffe), nfsPort))
	p := &peer{g: g, link: s}
	for n > 0 {
		var xids []uint32
		for range min(n, together) {
			xid := g.id()
			b := binary.BigEndian.AppendUint32(nil, claimed|1<<31)
			b = append(b, p.callMessage(xid, nfs, 3, 1, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: handle(1)}})...)
			b = append(b, make([]byte, size-len(b))...)
			g.tcp(s.ends[0], s.ends[1], s.seq[0], s.seq[1], 0x18, b)
			s.seq[0] += size
			xids = append(xids, xid)
		}
		for _, xid := range xids {
			p.send(1, xid, replyMessage(xid, attributes(1)), nil)
		}
		n -= len(xids)
	}
}

// fragments are first fragments of datagrams that are never whole.
func fragments(g *gen, n int) {
	data := make([]byte, 1200)
	for i := range n {
		b := g.ip(g.host(1), g.host(0xfffe), 17, len(data), uint16(i), 0x2000)
		g.buf = append(b, data...)
		g.write(g.buf)
	}
}

// timeline is a call an hour.
func timeline(g *gen, n int) {
	p := g.rdma(1)
	for range n {
		p.do(nfs, 3, 1, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: handle(1)}}, attributes(1))
		g.now += 3600e9
	}
}

// sameXID are calls that are sent again and again, each on another connection
// of the same client.
func sameXID(g *gen, n int) {
	q := g.pair(g.host(1), g.host(0xfffe), 0)
	p := &peer{g: g, link: q, rdma: true}
	for i := range n {
		q.qpn = [2]uint32{uint32(2*(i%100)) + 2, uint32(2*(i%100)) + 3}
		if i < 100 {
			q.psn = [2]uint32{}
		} else {
			q.psn[0] = uint32(i/100) & 0xffffff
		}
		p.send(0, 42, p.callMessage(42, nfs, 3, 1, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: handle(1)}}), nil)
	}
}

// garbage is noise where headers are expected, at every layer.
func garbage(g *gen, n int) {
	p := g.rdma(1)
	q := p.link.(*pair)
	s := g.stream(netip.AddrPortFrom(g.host(1), 1000), netip.AddrPortFrom(g.host(0xfffe), nfsPort))
	for i := range n {
		b := make([]byte, 40+g.rng.IntN(400))
		for j := range b {
			b[j] = byte(g.rng.Uint32())
		}
		switch i % 6 {
		case 0:
			g.udp(netip.AddrPortFrom(g.host(1), ephemer), netip.AddrPortFrom(g.host(2), rocePort), b)
		case 1:
			q.send(0, b)
		case 2:
			h := rpcrdma.Header{XID: g.id(), Version: 1, Credits: credits, Type: rpcrdma.Type(i % 7)}
			q.send(0, append(h.Append(nil), b...))
		case 3:
			xid := g.id()
			m := p.callMessage(xid, nfs, uint32(2+i%4), uint32(i%30), nil)
			p.send(0, xid, append(m, b...), nil)
		case 4:
			xid := g.id()
			m := p.callMessage(xid, nfs, 3, uint32(i%22), nil)
			s.send(0, append(m, b...))
			s.send(1, append(replyMessage(xid, nil), b...))
		case 5:
			binary.BigEndian.PutUint32(b, uint32(len(b)))
			g.tcp(s.ends[0], s.ends[1], s.seq[0], s.seq[1], 0x18, b)
			s.seq[0] += uint32(len(b))
		}
	}
}
