package ops

import "github.com/rpcrdma/toolkit/decode/nfs/nfs3"

// in3 is a name in a directory.
func in3(w *nfs3.Diropargs3, a *Act) { a.entry(w.Dir.Data, w.Name) }

// made3 takes the handle of a new object from results, if the server returns one.
func made3(h *nfs3.PostOpFh3, o *Outcome) {
	if h.HandleFollows {
		o.Handle = h.Handle.Data
	}
}

// procedures3 has the procedures of NFSv3 (RFC 1813).
var procedures3 = table{
	nfs3.NFSPROC3_NULL: {Class: Nothing},
	nfs3.NFSPROC3_GETATTR: {Class: Nothing,
		act: of(func(m *nfs3.GETATTR3args, a *Act) { a.object(m.Object.Data) })},
	nfs3.NFSPROC3_SETATTR: {Class: Changes,
		act: of(func(m *nfs3.SETATTR3args, a *Act) { a.object(m.Object.Data) })},
	nfs3.NFSPROC3_LOOKUP: {Class: Nothing, Gives: Handle,
		act:     of(func(m *nfs3.LOOKUP3args, a *Act) { in3(&m.What, a) }),
		outcome: gets(func(m *nfs3.LOOKUP3res, o *Outcome) { o.Handle = m.Resok.Object.Data })},
	nfs3.NFSPROC3_ACCESS: {Class: Nothing,
		act: of(func(m *nfs3.ACCESS3args, a *Act) { a.object(m.Object.Data) })},
	nfs3.NFSPROC3_READLINK: {Class: Nothing, Reply: Reply{Items: OneItem, Room: 4096},
		act: of(func(m *nfs3.READLINK3args, a *Act) { a.object(m.Symlink.Data) })},
	nfs3.NFSPROC3_READ: {Class: Nothing, Reply: Reply{Items: OneItem, Item: "count"},
		act: of(func(m *nfs3.READ3args, a *Act) {
			a.object(m.File.Data)
			a.span(m.Offset, uint64(m.Count))
		}),
		outcome: gets(func(m *nfs3.READ3res, o *Outcome) {
			o.moved(uint64(m.Resok.Count))
			o.EOF = m.Resok.Eof
		})},
	nfs3.NFSPROC3_WRITE: {Class: Changes,
		act: of(func(m *nfs3.WRITE3args, a *Act) {
			a.object(m.File.Data)
			a.span(m.Offset, uint64(m.Count))
			a.Stable = m.Stable.Symbol()
		}),
		outcome: gets(func(m *nfs3.WRITE3res, o *Outcome) { o.moved(uint64(m.Resok.Count)) })},
	nfs3.NFSPROC3_CREATE: {Class: Changes, Gives: Handle,
		act:     of(func(m *nfs3.CREATE3args, a *Act) { in3(&m.Where, a) }),
		outcome: gets(func(m *nfs3.CREATE3res, o *Outcome) { made3(&m.Resok.Obj, o) })},
	nfs3.NFSPROC3_MKDIR: {Class: Changes, Gives: Handle,
		act:     of(func(m *nfs3.MKDIR3args, a *Act) { in3(&m.Where, a) }),
		outcome: gets(func(m *nfs3.MKDIR3res, o *Outcome) { made3(&m.Resok.Obj, o) })},
	nfs3.NFSPROC3_SYMLINK: {Class: Changes, Gives: Handle,
		act: of(func(m *nfs3.SYMLINK3args, a *Act) {
			in3(&m.Where, a)
			a.text(m.Symlink.SymlinkData)
		}),
		outcome: gets(func(m *nfs3.SYMLINK3res, o *Outcome) { made3(&m.Resok.Obj, o) })},
	nfs3.NFSPROC3_MKNOD: {Class: Changes, Gives: Handle,
		act:     of(func(m *nfs3.MKNOD3args, a *Act) { in3(&m.Where, a) }),
		outcome: gets(func(m *nfs3.MKNOD3res, o *Outcome) { made3(&m.Resok.Obj, o) })},
	nfs3.NFSPROC3_REMOVE: {Class: Changes,
		act: of(func(m *nfs3.REMOVE3args, a *Act) { in3(&m.Object, a) })},
	nfs3.NFSPROC3_RMDIR: {Class: Changes,
		act: of(func(m *nfs3.RMDIR3args, a *Act) { in3(&m.Object, a) })},
	nfs3.NFSPROC3_RENAME: {Class: Changes,
		act: of(func(m *nfs3.RENAME3args, a *Act) {
			in3(&m.From, a)
			in3(&m.To, a)
		})},
	nfs3.NFSPROC3_LINK: {Class: Changes,
		act: of(func(m *nfs3.LINK3args, a *Act) {
			a.object(m.File.Data)
			in3(&m.Link, a)
		})},
	nfs3.NFSPROC3_READDIR: {Class: Nothing, Reply: Reply{Rest: "count"},
		act: of(func(m *nfs3.READDIR3args, a *Act) { a.object(m.Dir.Data) })},
	nfs3.NFSPROC3_READDIRPLUS: {Class: Nothing, Gives: Handles, Reply: Reply{Rest: "maxcount"},
		act: of(func(m *nfs3.READDIRPLUS3args, a *Act) { a.object(m.Dir.Data) })},
	nfs3.NFSPROC3_FSSTAT: {Class: Nothing,
		act: of(func(m *nfs3.FSSTAT3args, a *Act) { a.object(m.Fsroot.Data) })},
	nfs3.NFSPROC3_FSINFO: {Class: Nothing,
		act: of(func(m *nfs3.FSINFO3args, a *Act) { a.object(m.Fsroot.Data) })},
	nfs3.NFSPROC3_PATHCONF: {Class: Nothing,
		act: of(func(m *nfs3.PATHCONF3args, a *Act) { a.object(m.Object.Data) })},
	nfs3.NFSPROC3_COMMIT: {Class: Nothing, // what it writes to disk was changed by WRITE
		act: of(func(m *nfs3.COMMIT3args, a *Act) {
			a.object(m.File.Data)
			a.span(m.Offset, uint64(m.Count))
		})},
}
