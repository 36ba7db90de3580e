// Package nfs4 decodes and encodes NFSv4.0, 4.1 and 4.2, extended attributes
// (RFC 8276) and the callback program. One code base serves all minor versions:
// a COMPOUND carries its minor version, and no operation number means two
// things.
//
// The types of the protocol are generated from the .x files. Written by hand
// are COMPOUND with its array of operations, attributes (Fattr4, Attrs), bitmaps,
// and opaques whose content another field decides (layouts, notifications).
package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen -package nfs4 -o nfs4_gen.go types.x flags.x ops.x ops41.x ops42.x layout.x callback.x

// Numbers of the programs. That of the callback program is chosen by the
// client, from the transient range that begins here (RFC 7531).
const (
	NFS4_PROGRAM  = 100003
	NFS_V4        = 4
	NFS4_CALLBACK = 0x40000000
	NFS_CB        = 1

	NFSPROC4_NULL     = 0
	NFSPROC4_COMPOUND = 1
	CB_NULL           = 0
	CB_COMPOUND       = 1
)

// Programs are the programs of this package.
var Programs = []xdr.Program{
	{Name: "nfs", Number: NFS4_PROGRAM, Version: NFS_V4, Procedures: []xdr.Procedure{
		{Name: "NULL", Number: NFSPROC4_NULL, NewArgs: xdr.NewVoid, NewResult: xdr.NewVoid},
		{Name: "COMPOUND", Number: NFSPROC4_COMPOUND, NewArgs: newMessage[CompoundArgs], NewResult: newMessage[CompoundRes], StatusFirst: true},
	}},
	{Name: "nfs_cb", Number: NFS4_CALLBACK, Version: NFS_CB, Procedures: []xdr.Procedure{
		{Name: "CB_NULL", Number: CB_NULL, NewArgs: xdr.NewVoid, NewResult: xdr.NewVoid},
		{Name: "CB_COMPOUND", Number: CB_COMPOUND, NewArgs: newMessage[CbCompoundArgs], NewResult: newMessage[CbCompoundRes], StatusFirst: true},
	}},
}
