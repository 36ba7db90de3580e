package simulate

import (
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

var sys = (&oncrpc.Sys{Machine: []byte("client"), UID: 1000, GID: 1000}).Append(nil)

// callMessage is the RPC message of a call, without what lies in chunks.
func (n *network) callMessage(c *Call) []byte {
	q := oncrpc.Call{XID: c.xid, RPCVersion: 2, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3}
	q.Cred = oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys}
	if n.NFS4 {
		q.Version, q.Procedure = 4, 1
		return n.compound(q.Append(nil), c)
	}
	q.Procedure = procedures[c.Op]
	b := q.Append(nil)
	file := nfs3.NfsFh3{Data: handle(c)}
	switch c.Op {
	case Lookup:
		return (&nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: file, Name: fmt.Appendf(nil, "file%d", c.Index)}}).Append(b)
	case Read:
		return (&nfs3.READ3args{File: file, Offset: c.offset(), Count: uint32(c.Size)}).Append(b)
	case Write:
		return (&nfs3.WRITE3args{
			File: file, Offset: c.offset(), Count: uint32(c.Size), Data: xdr.Data{Length: uint32(c.Size), Chunk: 1},
		}).Append(b)
	case Commit:
		return (&nfs3.COMMIT3args{File: file}).Append(b)
	}
	return (&nfs3.GETATTR3args{Object: file}).Append(b)
}

var procedures = [...]uint32{
	Getattr: nfs3.NFSPROC3_GETATTR, Lookup: nfs3.NFSPROC3_LOOKUP, Read: nfs3.NFSPROC3_READ, Write: nfs3.NFSPROC3_WRITE,
	Commit: nfs3.NFSPROC3_COMMIT,
}

// handle is the file of a call: one of eight of its client.
func handle(c *Call) []byte {
	if c.delegation != nil {
		c = c.delegation.call
	}
	b := make([]byte, 28)
	b[0] = 1
	binary.BigEndian.PutUint64(b[8:], uint64(c.client.h.index))
	binary.BigEndian.PutUint64(b[16:], uint64(c.Index%8)+2)
	return b
}

func (c *Call) offset() uint64 { return uint64(c.Index/8) << 20 }

// attributes of the file of a call.
func attributes(c *Call) nfs3.PostOpAttr {
	a := nfs3.PostOpAttr{AttributesFollow: true}
	a.Attributes = nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o644, Nlink: 1, Size: 1 << 40, Used: 1 << 40, Fsid: 7, Fileid: uint64(c.Index % 8)}
	return a
}

// replyMessage is the RPC message of a reply, without what lies in chunks.
func (n *network) replyMessage(c *Call) []byte {
	b := (&oncrpc.Reply{XID: c.xid}).Append(nil)
	if n.NFS4 {
		return n.compoundReply(b, c)
	}
	status := nfs3.NFS3_OK
	if c.delayed {
		status = nfs3.NFS3ERR_JUKEBOX
	}
	at := attributes(c)
	wcc := nfs3.WccData{After: at}
	switch c.Op {
	case Lookup:
		r := nfs3.LOOKUP3res{Status: status}
		r.Resok.Object, r.Resok.ObjAttributes = nfs3.NfsFh3{Data: handle(c)}, at
		return r.Append(b)
	case Read:
		r := nfs3.READ3res{Status: status}
		r.Resok = nfs3.READ3resok{FileAttributes: at, Count: uint32(c.Size), Data: xdr.Data{Length: uint32(c.Size), Chunk: 1}}
		return r.Append(b)
	case Write:
		r := nfs3.WRITE3res{Status: status}
		r.Resok = nfs3.WRITE3resok{FileWcc: wcc, Count: uint32(c.Size), Verf: [8]byte{1}}
		return r.Append(b)
	case Commit:
		r := nfs3.COMMIT3res{Status: status}
		r.Resok = nfs3.COMMIT3resok{FileWcc: wcc, Verf: [8]byte{1}}
		return r.Append(b)
	}
	r := nfs3.GETATTR3res{Status: status}
	r.Resok.ObjAttributes = at.Attributes
	return r.Append(b)
}
