package ops

import (
	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
)

// key is a version of a program.
type key struct{ program, version uint32 }

var tables = map[key]table{
	{nfs2.NFS_PROGRAM, nfs2.NFS_VERSION}: procedures2,
	{nfs3.NFS_PROGRAM, nfs3.NFS_V3}:      procedures3,
	{nfs4.NFS4_PROGRAM, nfs4.NFS_V4}: {
		nfs4.NFSPROC4_NULL:     {Class: Nothing},
		nfs4.NFSPROC4_COMPOUND: {Class: Composed},
	},
	// Callbacks: servers call clients, and no client calls them.
	{nfs4.NFS4_CALLBACK, nfs4.NFS_CB}: {
		nfs4.CB_NULL:     {Class: Never},
		nfs4.CB_COMPOUND: {Class: Never},
	},
	{nfsacl.NFS_ACL_PROGRAM, nfsacl.NFS_ACL_V2}: acls2,
	{nfsacl.NFS_ACL_PROGRAM, nfsacl.NFS_ACL_V3}: acls3,
	{mount.MOUNT_PROGRAM, mount.MOUNT_V1}:       mounts[:mount.MOUNTPROC_EXPORTALL+1],
	{mount.MOUNT_PROGRAM, mount.MOUNT_V2}:       mounts,
	{mount.MOUNT_PROGRAM, mount.MOUNT_V3}:       mounts[:mount.MOUNTPROC3_EXPORT+1],
	{nlm.NLM_PROG, nlm.NLM_VERS}:                lockManager(nlm.NLM_VERS, nlm.NLM_NSM_NOTIFY),
	{nlm.NLM_PROG, nlm.NLM_VERSX}:               lockManager(nlm.NLM_VERSX, nlm.NLM3_FREE_ALL),
	{nlm.NLM_PROG, nlm.NLM4_VERS}:               lockManager(nlm.NLM4_VERS, nlm.NLMPROC4_FREE_ALL),
	{nsm.SM_PROG, nsm.SM_VERS}:                  monitor,
	{rpcbind.PMAP_PROG, rpcbind.PMAP_VERS}:      portmap,
	{rpcbind.RPCBPROG, rpcbind.RPCBVERS}:        rpcbind3,
	{rpcbind.RPCBPROG, rpcbind.RPCBVERS4}:       rpcbind4,
}

// Procedure returns the entry of a procedure, nil if it is unknown.
func Procedure(program, version, procedure uint32) *Entry {
	if program == nfs3.NFS_PROGRAM && version == nfs3.NFS_V3 { // most calls, without a look into the map
		return procedures3.at(procedure)
	}
	return tables[key{program, version}].at(procedure)
}

// Operation returns the entry of an operation of NFSv4, nil if it is unknown.
func Operation(number uint32) *Entry {
	if number == uint32(nfs4.OP_ILLEGAL) {
		return &illegal
	}
	return operations.at(number)
}

// Callback returns the entry of an operation of CB_COMPOUND, nil if it is unknown.
func Callback(number uint32) *Entry {
	if number == uint32(nfs4.OP_CB_ILLEGAL) {
		return &illegal
	}
	return callbacks.at(number)
}

// illegal is OP_ILLEGAL, which occurs in replies only.
var illegal = Entry{Class: Never}

// table holds entries by number. One without a class is not assigned.
type table []Entry

func (t table) at(n uint32) *Entry {
	if uint64(n) >= uint64(len(t)) || t[n].Class == Unknown {
		return nil
	}
	return &t[n]
}
