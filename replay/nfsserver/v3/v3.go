// Package v3 serves NFS version 3 (RFC 1813) from a store.
//
// What a client sees of it: READ and WRITE of at most Options.MaxIO bytes, a
// write verifier that changes when the server starts again, unstable writes that
// are answered as UNSTABLE whatever the store, so that clients COMMIT, cookies of
// READDIR that stay good, and "." and ".." in every directory. A name that no
// file can have gives NFS3ERR_INVAL, unless RFC 1813 says otherwise for "." and
// "..".
package v3

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Options of the program.
type Options struct {
	// MaxIO is the largest READ and WRITE in bytes (rtmax, wtmax); 0 stands
	// for 1 MiB.
	MaxIO uint32
	// PreferredIO is what clients ought to use (rtpref, wtpref); 0 stands for
	// MaxIO.
	PreferredIO uint32
	// PreferredDir is the same for READDIR (dtpref); 0 stands for 64 KiB.
	PreferredDir uint32
}

type server struct {
	store    store.Store
	info     *store.Info
	opt      Options
	verifier [8]byte
	fsid     uint64
}

// New makes the program. The store is the caller's to close.
func New(st store.Store, opt Options) nfsserver.Program {
	if opt.MaxIO == 0 {
		opt.MaxIO = 1 << 20
	}
	if opt.PreferredIO == 0 {
		opt.PreferredIO = opt.MaxIO
	}
	if opt.PreferredDir == 0 {
		opt.PreferredDir = 64 << 10
	}
	s := &server{store: st, info: st.Info(), opt: opt}
	binary.BigEndian.PutUint64(s.verifier[:], st.Verifier())
	s.fsid = fsid(s.info)
	p := nfsserver.Program{
		Name: "nfs", Number: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3,
		NewState: func() any { return new(state) },
		Procedures: []nfsserver.Procedure{
			nfs3.NFSPROC3_NULL:        {Do: nfsserver.Null, Inline: true},
			nfs3.NFSPROC3_GETATTR:     {Do: s.getattr},
			nfs3.NFSPROC3_SETATTR:     {Do: s.setattr, Cached: true},
			nfs3.NFSPROC3_LOOKUP:      {Do: s.lookup},
			nfs3.NFSPROC3_ACCESS:      {Do: s.access},
			nfs3.NFSPROC3_READLINK:    {Do: s.readlink},
			nfs3.NFSPROC3_READ:        {Do: s.read},
			nfs3.NFSPROC3_WRITE:       {Do: s.write},
			nfs3.NFSPROC3_CREATE:      {Do: s.create, Cached: true},
			nfs3.NFSPROC3_MKDIR:       {Do: s.mkdir, Cached: true},
			nfs3.NFSPROC3_SYMLINK:     {Do: s.symlink, Cached: true},
			nfs3.NFSPROC3_MKNOD:       {Do: s.mknod, Cached: true},
			nfs3.NFSPROC3_REMOVE:      {Do: s.remove, Cached: true},
			nfs3.NFSPROC3_RMDIR:       {Do: s.rmdir, Cached: true},
			nfs3.NFSPROC3_RENAME:      {Do: s.rename, Cached: true},
			nfs3.NFSPROC3_LINK:        {Do: s.link, Cached: true},
			nfs3.NFSPROC3_READDIR:     {Do: s.readdir},
			nfs3.NFSPROC3_READDIRPLUS: {Do: s.readdirplus},
			nfs3.NFSPROC3_FSSTAT:      {Do: s.fsstat},
			nfs3.NFSPROC3_FSINFO:      {Do: s.fsinfo},
			nfs3.NFSPROC3_PATHCONF:    {Do: s.pathconf},
			nfs3.NFSPROC3_COMMIT:      {Do: s.commit},
		},
	}
	for i := range p.Procedures {
		p.Procedures[i].Name = nfs3.Programs[0].Procedures[i].Name
	}
	return p
}

// state is the memory of a call.
type state struct {
	attr, attr2 store.Attr
	wcc, wcc2   store.Wcc
	set         store.SetAttr
	guard       store.Time
	how         store.Create
	list        store.DirList
	text        []byte

	getattrArgs     nfs3.GETATTR3args
	setattrArgs     nfs3.SETATTR3args
	lookupArgs      nfs3.LOOKUP3args
	accessArgs      nfs3.ACCESS3args
	readlinkArgs    nfs3.READLINK3args
	readArgs        nfs3.READ3args
	writeArgs       nfs3.WRITE3args
	createArgs      nfs3.CREATE3args
	mkdirArgs       nfs3.MKDIR3args
	symlinkArgs     nfs3.SYMLINK3args
	mknodArgs       nfs3.MKNOD3args
	removeArgs      nfs3.REMOVE3args
	rmdirArgs       nfs3.RMDIR3args
	renameArgs      nfs3.RENAME3args
	linkArgs        nfs3.LINK3args
	readdirArgs     nfs3.READDIR3args
	readdirplusArgs nfs3.READDIRPLUS3args
	fsstatArgs      nfs3.FSSTAT3args
	fsinfoArgs      nfs3.FSINFO3args
	pathconfArgs    nfs3.PATHCONF3args
	commitArgs      nfs3.COMMIT3args
}
