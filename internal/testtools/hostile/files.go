package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Attacks on what is kept of files, names, users and NFSv4 state.

func attributes(size uint64) *nfs3.GETATTR3res {
	return &nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o644, Nlink: 1, Size: size}}}
}

func fh(h []byte) nfs3.NfsFh3 { return nfs3.NfsFh3{Data: h} }

func follows(h []byte) nfs3.PostOpFh3 { return nfs3.PostOpFh3{HandleFollows: true, Handle: fh(h)} }

func inline(b []byte) xdr.Data { return xdr.Data{Length: uint32(len(b)), Inline: b} }

// files are handles that no name leads to.
func files(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		p.do(nfs, 3, 1, &nfs3.GETATTR3args{Object: fh(handle(i))}, attributes(uint64(i)))
	}
}

// clients are hosts that read a file each.
func clients(g *gen, n int) {
	q := g.pair(g.host(1), g.host(0xfffe), 0)
	for i := range n {
		if i%16 == 0 { // a new address
			q = g.pair(g.host(1+i/16), g.host(0xfffe), 0)
		}
		q.qpn = [2]uint32{uint32(2*i+2) & 0xffffff, uint32(2*i+3) & 0xffffff}
		q.psn = [2]uint32{}
		p := &peer{g: g, link: q, rdma: true}
		p.do(nfs, 3, 6, &nfs3.READ3args{File: fh(handle(i)), Count: 8},
			&nfs3.READ3res{Resok: nfs3.READ3resok{Count: 8, Data: inline([]byte("contents"))}})
	}
}

// crowd are clients that call in turn, each over its one lasting connection.
func crowd(g *gen, n int) {
	const rounds = 20
	list := make([]*peer, n)
	for i := range list {
		list[i] = g.rdma(1 + i)
	}
	for r := range rounds {
		for i, p := range list {
			p.do(nfs, 3, 6, &nfs3.READ3args{File: fh(handle(i)), Offset: uint64(8 * r), Count: 8},
				&nfs3.READ3res{Resok: nfs3.READ3resok{Count: 8, Data: inline([]byte("contents"))}})
		}
	}
}

// names are LOOKUPs of different names in one directory.
func names(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		p.do(nfs, 3, 3, &nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: fh([]byte(rootFile)), Name: name(i)}},
			&nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: fh(handle(i))}})
	}
}

// deepNames are LOOKUPs that each go one directory deeper.
func deepNames(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		p.do(nfs, 3, 3, &nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: fh(handle(i)), Name: name(i)}},
			&nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: fh(handle(i + 1))}})
	}
}

// longNames are LOOKUPs of names of 60,000 bytes.
func longNames(g *gen, n int) {
	p := g.overTCP(1, nfsPort)
	for i := range n {
		long := bytes.Repeat(name(i), 60000/len(name(i)))
		p.do(nfs, 3, 3, &nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: fh([]byte(rootFile)), Name: long}},
			&nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: fh(handle(i))}})
	}
}

// creates are files that are made, written and removed.
func creates(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		where := nfs3.Diropargs3{Dir: fh([]byte(rootFile)), Name: name(i)}
		p.do(nfs, 3, 8, &nfs3.CREATE3args{Where: where}, &nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: follows(handle(i))}})
		p.do(nfs, 3, 7, &nfs3.WRITE3args{File: fh(handle(i)), Count: 4, Data: inline([]byte("data"))}, &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: 4}})
		if i%2 == 0 {
			p.do(nfs, 3, 12, &nfs3.REMOVE3args{Object: where}, &nfs3.REMOVE3res{})
		}
	}
}

// swaps renames two files back and forth.
func swaps(g *gen, n int) {
	p := g.rdma(1)
	at := func(i int) nfs3.Diropargs3 { return nfs3.Diropargs3{Dir: fh([]byte(rootFile)), Name: name(i)} }
	for i := range n {
		p.do(nfs, 3, 14, &nfs3.RENAME3args{From: at(i), To: at(i + 1)}, &nfs3.RENAME3res{})
		p.do(nfs, 3, 3, &nfs3.LOOKUP3args{What: at(i + 1)}, &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: fh(handle(i))}})
	}
}

// scattered are WRITEs of a few bytes all over one file, so that no two touch.
func scattered(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		at := (uint64(i) * 0x9e3779b1 % (1 << 20)) << 4
		p.do(nfs, 3, 7, &nfs3.WRITE3args{File: fh(handle(1)), Offset: at, Count: 4, Data: inline([]byte("data"))}, &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: 4}})
	}
}

// scatteredReads are READs of the same kind, with contents that differ.
func scatteredReads(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		at := (uint64(i) * 0x9e3779b1 % (1 << 20)) << 4
		data := binary.BigEndian.AppendUint32(nil, uint32(i))
		p.do(nfs, 3, 6, &nfs3.READ3args{File: fh(handle(1)), Offset: at, Count: 4}, &nfs3.READ3res{Resok: nfs3.READ3resok{Count: 4, Data: inline(data)}})
	}
}

// farOffsets are pairs of WRITEs; the second claims to be far after the first.
func farOffsets(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		for _, at := range []uint64{0, 257e9 + uint64(i)} {
			p.do(nfs, 3, 7, &nfs3.WRITE3args{File: fh(handle(i)), Offset: at, Count: 4, Data: inline([]byte("data"))}, &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: 4}})
		}
	}
}

// sizes are SETATTRs that make files huge.
func sizes(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		a := &nfs3.SETATTR3args{Object: fh(handle(i))}
		for _, size := range []uint64{0, 1 << 41} {
			a.NewAttributes.Size.SetIt, a.NewAttributes.Size.Size = true, size
			p.do(nfs, 3, 2, a, &nfs3.SETATTR3res{})
		}
	}
}

// entriesEach is how many entries a reply of listings has.
const entriesEach = 100_000

// listings are READDIRs with 100,000 entries a reply.
func listings(g *gen, n int) {
	p := g.overTCP(1, nfsPort)
	for i := range n {
		r := &nfs3.READDIR3res{}
		r.Resok.Reply.Entries = make([]nfs3.Entry3, entriesEach)
		for j := range r.Resok.Reply.Entries {
			k := i*entriesEach + j
			r.Resok.Reply.Entries[j] = nfs3.Entry3{Fileid: uint64(k), Name: name(k), Cookie: uint64(k) + 1}
		}
		p.do(nfs, 3, 16, &nfs3.READDIR3args{Dir: fh([]byte(rootFile)), Cookie: uint64(i * entriesEach), Count: 4 << 20}, r)
	}
}

// listingsPlus are READDIRPLUSes whose entries have handles.
func listingsPlus(g *gen, n int) {
	p := g.overTCP(1, nfsPort)
	for i := range n {
		r := &nfs3.READDIRPLUS3res{}
		r.Resok.Reply.Entries = make([]nfs3.Entryplus3, 1000)
		for j := range r.Resok.Reply.Entries {
			k := i*1000 + j
			r.Resok.Reply.Entries[j] = nfs3.Entryplus3{Fileid: uint64(k), Name: name(k), Cookie: uint64(k) + 1, NameHandle: follows(handle(k))}
		}
		p.do(nfs, 3, 17, &nfs3.READDIRPLUS3args{Dir: fh([]byte(rootFile)), Cookie: uint64(i * 1000), Dircount: 1 << 20, Maxcount: 4 << 20}, r)
	}
}

// lookupsEach is how many operations a COMPOUND of deepCompounds has.
const lookupsEach = 5000

// deepCompounds are COMPOUNDs of 5000 LOOKUPs.
func deepCompounds(g *gen, n int) {
	p := g.overTCP(1, nfsPort)
	ops := []op{putfh([]byte(rootFile))}
	for i := range lookupsEach {
		ops = append(ops, lookup(name(i)))
	}
	for i := range n {
		p.compound(1, append(ops[:len(ops):len(ops)], getfh(handle(i)))...)
	}
}

// wideCompound is one COMPOUND with as many LOOKUPs.
func wideCompound(g *gen, n int) {
	p := g.overTCP(1, nfsPort)
	ops := []op{putfh([]byte(rootFile))}
	for range n {
		ops = append(ops, lookup([]byte("d")))
	}
	p.compound(1, ops...)
}

// compoundReads are COMPOUNDs of 500 READs of different places.
func compoundReads(g *gen, n int) {
	p := g.overTCP(1, nfsPort)
	for i := range n {
		ops := []op{putfh(handle(i))}
		for j := range 500 {
			r := &nfs4.READ4res{}
			r.Resok4.Data = inline([]byte("data"))
			a := &nfs4.READ4args{Offset: uint64(j) << 13, Count: 4}
			binary.BigEndian.PutUint32(a.Stateid.Other[:], uint32(i))
			binary.BigEndian.PutUint32(a.Stateid.Other[4:], uint32(j)+1)
			a.Stateid.Seqid = 1
			ops = append(ops, op{nfs4.OP_READ, a, r})
		}
		p.compound(1, ops...)
	}
}

// states are NFSv4.0 OPENs with an owner, a file and a state id each.
func states(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		a := &nfs4.OPEN4args{Seqid: 1, ShareAccess: 3, Owner: nfs4.StateOwner4{Clientid: uint64(i / 8), Owner: name(i)}}
		a.Claim.Claim, a.Claim.File = nfs4.CLAIM_NULL, name(i)
		r := &nfs4.OPEN4res{}
		r.Resok4.Stateid.Seqid = 1
		binary.BigEndian.PutUint64(r.Resok4.Stateid.Other[:], uint64(i)+1)
		p.compound(0, putfh([]byte(rootFile)), op{nfs4.OP_OPEN, a, r}, getfh(handle(i)))
		l := &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Length: 1}
		l.Locker.NewLockOwner = true
		l.Locker.OpenOwner.OpenStateid = r.Resok4.Stateid
		l.Locker.OpenOwner.LockOwner = nfs4.StateOwner4{Clientid: uint64(i / 8), Owner: name(i)}
		k := &nfs4.LOCK4res{}
		k.Resok4.LockStateid.Seqid = 1
		binary.BigEndian.PutUint64(k.Resok4.LockStateid.Other[4:], uint64(i)+1)
		p.compound(0, putfh(handle(i)), op{nfs4.OP_LOCK, l, k})
	}
}

// sessions are NFSv4.1 clients with a session each.
func sessions(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		e := &nfs4.EXCHANGE_ID4args{}
		e.EiaClientowner.CoOwnerid = name(i)
		r := &nfs4.EXCHANGE_ID4res{}
		r.EirResok4.EirClientid = uint64(i) + 1
		p.compound(1, op{nfs4.OP_EXCHANGE_ID, e, r})
		c := &nfs4.CREATE_SESSION4res{}
		binary.BigEndian.PutUint64(c.CsrResok4.CsrSessionid[:], uint64(i)+1)
		p.compound(1, op{nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4args{CsaClientid: uint64(i) + 1, CsaSequence: 1}, c})
		s := &nfs4.SEQUENCE4args{SaSessionid: c.CsrResok4.CsrSessionid, SaSequenceid: 1, SaSlotid: uint32(i)}
		q := &nfs4.SEQUENCE4res{}
		q.SrResok4.SrSessionid = s.SaSessionid
		p.compound(1, op{nfs4.OP_SEQUENCE, s, q})
	}
}

// slots are calls of one session, each on its own slot, and then as many DESTROY_SESSIONs that wait for all
// of them.
func slots(g *gen, n int) {
	p := g.rdma(1)
	var id [16]byte
	id[0] = 1
	for i := range n {
		s := &nfs4.SEQUENCE4args{SaSessionid: id, SaSequenceid: 1, SaSlotid: uint32(i)}
		q := &nfs4.SEQUENCE4res{}
		q.SrResok4.SrSessionid = id
		p.compound(1, op{nfs4.OP_SEQUENCE, s, q})
	}
	for range n {
		p.compound(1, op{nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{DsaSessionid: id}, &nfs4.Status4res{Status: nfs4.NFS4ERR_DELAY + 1}})
	}
}

// programs are calls of programs, versions and procedures that nobody knows.
func programs(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		p.do(uint32(200000+i), uint32(i%1000), uint32(i), nil, xdr.Void{})
	}
}

// procedures are procedures of NFS that do not exist.
func procedures(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		p.do(nfs, uint32(2+i%3), uint32(i), nil, xdr.Void{})
	}
}

// users are calls with a credential each.
func users(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		p.cred = sys(i, fmt.Sprintf("machine-%d", i), 16)
		p.do(nfs, 3, 1, &nfs3.GETATTR3args{Object: fh(handle(1))}, attributes(1))
	}
}

// tickets are calls with an RPCSEC_GSS context each.
func tickets(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		var b []byte
		for _, v := range []uint32{1, 0, uint32(i), 1, 16} {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		p.cred = oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: append(b, handle(i)[16:]...)}
		p.do(nfs, 3, 1, &nfs3.GETATTR3args{Object: fh(handle(1))}, attributes(1))
	}
}

// exports are mounts of a path each.
func exports(g *gen, n int) {
	p := g.overTCP(1, 20048)
	for i := range n {
		p.do(mountd, 3, 1, &mount.DirpathMessage{Dirpath: append([]byte("/export/"), name(i)...)},
			&mount.Mountres3{Mountinfo: mount.Mountres3Ok{Fhandle: handle(i), AuthFlavors: []int32{1}}})
	}
}

// statuses are replies with a status each, most of which do not exist.
func statuses(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		res := xdr.AppendUint32(nil, uint32(i))
		p.do(nfs, 3, 6, &nfs3.READ3args{File: fh(handle(i)), Count: 8}, bytesOf(res))
	}
}

type bytesOf []byte

func (b bytesOf) Append(to []byte) []byte { return append(to, b...) }

// mistakes break as many rules of the transport as there are.
func mistakes(g *gen, n int) {
	p := g.rdma(1)
	for i := range n {
		xid := g.id()
		m := p.callMessage(xid, nfs, 3, 6, &nfs3.READ3args{File: fh(handle(i)), Count: 1 << 16})
		p.send(0, xid, m, func(h *rpcrdma.Header) {
			one := rpcrdma.Segment{Handle: uint32(i % 5), Length: uint32(i % 9), Offset: ^uint64(i % 3)}
			switch i % 8 {
			case 0:
				h.Credits = 0
			case 1:
				h.Version = uint32(i)
			case 2:
				h.Type = rpcrdma.Type(i)
			case 3:
				h.Reads = []rpcrdma.ReadSegment{{Position: 3, Segment: one}, {Position: 0, Segment: one}}
			case 4:
				h.Writes = []rpcrdma.WriteChunk{{}, {one, one}}
			case 5:
				h.Reply, h.HasReply = rpcrdma.WriteChunk{one}, true
			case 6:
				h.XID++
			case 7:
				h.Type, h.Error = rpcrdma.TypeError, rpcrdma.ErrorCode(i)
			}
		})
		p.send(1, xid, replyMessage(xid, &nfs3.READ3res{}), func(h *rpcrdma.Header) { h.Credits = uint32(i) })
	}
}
