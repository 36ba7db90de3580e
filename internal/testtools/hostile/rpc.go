package hostile

import (
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

const (
	nfs      = 100003
	mountd   = 100005
	nfsPort  = 2049
	credits  = 32
	rootFile = "root directory!!"
)

// link carries RPC messages; side 0 is the client.
type link interface {
	send(side int, msg []byte)
}

// peer is a client and a server that talk over a link.
type peer struct {
	g    *gen
	link link
	rdma bool
	cred oncrpc.Auth
}

// rdma is a client that talks to a server over RDMA.
func (g *gen) rdma(client int) *peer {
	return &peer{g: g, link: g.pair(g.host(client), g.host(0xfffe), 0x100+2*g.id()), rdma: true}
}

// overTCP is one that talks over TCP.
func (g *gen) overTCP(client int, port uint16) *peer {
	return &peer{g: g, link: g.stream(netip.AddrPortFrom(g.host(client), 700+uint16(g.id()%60000)), netip.AddrPortFrom(g.host(0xfffe), port))}
}

type encoder interface{ Append([]byte) []byte }

// callMessage is an RPC call without a transport header.
func (p *peer) callMessage(xid, program, version, procedure uint32, args encoder) []byte {
	c := oncrpc.Call{XID: xid, RPCVersion: 2, Program: program, Version: version, Procedure: procedure, Cred: p.cred}
	b := c.Append(nil)
	if args != nil {
		b = args.Append(b)
	}
	return b
}

func replyMessage(xid uint32, res encoder) []byte {
	r := oncrpc.Reply{XID: xid}
	b := r.Append(nil)
	if res != nil {
		b = res.Append(b)
	}
	return b
}

// send sends a message, after the header that the fabric wants.
func (p *peer) send(side int, xid uint32, msg []byte, fill func(*rpcrdma.Header)) {
	if p.rdma {
		h := rpcrdma.Header{XID: xid, Version: 1, Credits: credits, Type: rpcrdma.TypeMsg}
		if fill != nil {
			fill(&h)
		}
		msg = append(h.Append(nil), msg...)
	}
	p.link.send(side, msg)
}

// do is a call with its reply, nil for none.
func (p *peer) do(program, version, procedure uint32, args, res encoder) {
	xid := p.g.id()
	p.send(0, xid, p.callMessage(xid, program, version, procedure, args), nil)
	if res != nil {
		p.send(1, xid, replyMessage(xid, res), nil)
	}
}

// op is an operation of a COMPOUND with its result.
type op struct {
	number nfs4.NfsOpnum4
	args   xdr.Message
	res    xdr.Message
}

func (p *peer) compound(minor uint32, ops ...op) {
	a := &nfs4.CompoundArgs{Minorversion: minor}
	r := &nfs4.CompoundRes{}
	for _, x := range ops {
		a.Ops = append(a.Ops, nfs4.Op{Number: uint32(x.number), Body: x.args})
		if x.res != nil {
			r.Ops = append(r.Ops, nfs4.Op{Number: uint32(x.number), Body: x.res})
		}
	}
	p.do(nfs, 4, 1, a, r)
}

func putfh(h []byte) op {
	return op{nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: h}, &nfs4.Status4res{}}
}

func getfh(h []byte) op {
	return op{nfs4.OP_GETFH, xdr.Void{}, &nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: h}}}
}

func lookup(name []byte) op {
	return op{nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: name}, &nfs4.Status4res{}}
}

// handle is a file handle of 32 bytes.
func handle(n int) []byte {
	b := []byte("hostile handle, many of them....")
	binary.BigEndian.PutUint64(b[24:], uint64(n))
	return b
}

// name is a component that stands for a number.
func name(n int) []byte {
	return binary.AppendUvarint([]byte("f"), uint64(n)<<1|1)
}

func sys(n int, machine string, groups int) oncrpc.Auth {
	s := oncrpc.Sys{Stamp: uint32(n), Machine: []byte(machine), UID: uint32(n), GID: uint32(n), Count: groups}
	for i := range groups {
		s.GIDs[i] = uint32(n + i)
	}
	return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: s.Append(nil)}
}
