// Package nfs knows the programs of the NFS family: NFS itself in its versions, and what travels beside it
// (MOUNT, NLM, NSM, NFSACL, rpcbind). The types of each protocol are in its own package.
package nfs

import (
	"iter"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// What a caller needs of package xdr. A caller keeps one Message for each procedure
// and direction, and decodes into it repeatedly.
type (
	// Program is one version of a program, with its procedures.
	Program = xdr.Program
	// Procedure makes the messages of one procedure.
	Procedure = xdr.Procedure
	// Message is an argument or a result.
	Message = xdr.Message
)

// tables lists the programs of all protocols.
var tables = [][]Program{
	nfs2.Programs,
	nfs3.Programs,
	nfs4.Programs,
	nfsacl.Programs,
	mount.Programs,
	nlm.Programs,
	nsm.Programs,
	rpcbind.Programs,
}

type key struct{ program, version uint32 }

var byNumber = func() map[key]*Program {
	m := map[key]*Program{}
	for _, t := range tables {
		for i := range t {
			m[key{t[i].Number, t[i].Version}] = &t[i]
		}
	}
	return m
}()

// All visits every version of every program.
func All() iter.Seq[*Program] {
	return func(yield func(*Program) bool) {
		for _, t := range tables {
			for i := range t {
				if !yield(&t[i]) {
					return
				}
			}
		}
	}
}

// Lookup returns the version of a program, or nil if unknown. The table knows NFSv4
// callbacks as nfs4.NFS4_CALLBACK; a client may choose another number.
func Lookup(program, version uint32) *Program {
	return byNumber[key{program, version}]
}

// Find returns the version of a program of that name, and the number of its procedure of that name.
func Find(program string, version uint32, procedure string) (p *Program, number uint32, ok bool) {
	for p := range All() {
		if p.Name == program && p.Version == version {
			for i := range p.Procedures {
				if p.Procedures[i].Name == procedure {
					return p, uint32(i), true
				}
			}
		}
	}
	return nil, 0, false
}

// names has the names of programs, regardless of the version.
var names = map[uint32]string{
	rpcbind.PMAP_PROG:      "rpcbind",
	nfs3.NFS_PROGRAM:       "nfs",
	mount.MOUNT_PROGRAM:    "mount",
	nlm.NLM_PROG:           "nlm",
	nsm.SM_PROG:            "nsm",
	nfsacl.NFS_ACL_PROGRAM: "nfsacl",
}

// Name returns the name of a program: of this version if it is known, else of the program
// in any version. It is empty if the program is unknown.
func Name(program, version uint32) string {
	if p := Lookup(program, version); p != nil {
		return p.Name
	}
	return names[program]
}
