package ops

import "github.com/rpcrdma/toolkit/decode/nfs/nfs3"

// entry3 is a name in a directory.
func entry3(w *nfs3.Diropargs3, a *Act) { a.entry(w.Dir.Data, w.Name) }

// procedures3 are those of NFSv3 (RFC 1813). The places of those that change
// nothing say where a handle of their result belongs.
var procedures3 = table{
	nfs3.NFSPROC3_NULL:     {Class: Nothing},
	nfs3.NFSPROC3_GETATTR:  {Class: Nothing},
	nfs3.NFSPROC3_SETATTR:  {Class: Changes, act: of(func(m *nfs3.SETATTR3args, a *Act) { a.object(m.Object.Data) })},
	nfs3.NFSPROC3_LOOKUP:   {Class: Nothing, act: of(func(m *nfs3.LOOKUP3args, a *Act) { entry3(&m.What, a) })},
	nfs3.NFSPROC3_ACCESS:   {Class: Nothing},
	nfs3.NFSPROC3_READLINK: {Class: Nothing},
	nfs3.NFSPROC3_READ:     {Class: Nothing},
	nfs3.NFSPROC3_WRITE:    {Class: Changes, act: of(func(m *nfs3.WRITE3args, a *Act) { a.object(m.File.Data) })},
	nfs3.NFSPROC3_CREATE:   {Class: Changes, act: of(func(m *nfs3.CREATE3args, a *Act) { entry3(&m.Where, a) })},
	nfs3.NFSPROC3_MKDIR:    {Class: Changes, act: of(func(m *nfs3.MKDIR3args, a *Act) { entry3(&m.Where, a) })},
	nfs3.NFSPROC3_SYMLINK:  {Class: Changes, act: of(func(m *nfs3.SYMLINK3args, a *Act) { entry3(&m.Where, a) })},
	nfs3.NFSPROC3_MKNOD:    {Class: Changes, act: of(func(m *nfs3.MKNOD3args, a *Act) { entry3(&m.Where, a) })},
	nfs3.NFSPROC3_REMOVE:   {Class: Changes, act: of(func(m *nfs3.REMOVE3args, a *Act) { entry3(&m.Object, a) })},
	nfs3.NFSPROC3_RMDIR:    {Class: Changes, act: of(func(m *nfs3.RMDIR3args, a *Act) { entry3(&m.Object, a) })},
	nfs3.NFSPROC3_RENAME: {Class: Changes, act: of(func(m *nfs3.RENAME3args, a *Act) {
		entry3(&m.From, a)
		entry3(&m.To, a)
	})},
	nfs3.NFSPROC3_LINK: {Class: Changes, act: of(func(m *nfs3.LINK3args, a *Act) {
		a.object(m.File.Data)
		entry3(&m.Link, a)
	})},
	nfs3.NFSPROC3_READDIR:     {Class: Nothing},
	nfs3.NFSPROC3_READDIRPLUS: {Class: Nothing, act: of(func(m *nfs3.READDIRPLUS3args, a *Act) { a.object(m.Dir.Data) })},
	nfs3.NFSPROC3_FSSTAT:      {Class: Nothing},
	nfs3.NFSPROC3_FSINFO:      {Class: Nothing},
	nfs3.NFSPROC3_PATHCONF:    {Class: Nothing},
	nfs3.NFSPROC3_COMMIT:      {Class: Nothing}, // what it writes to disk was changed by WRITE
}
