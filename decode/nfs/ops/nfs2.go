package ops

import "github.com/rpcrdma/toolkit/decode/nfs/nfs2"

// made2 takes the handle of a name from results.
func made2(m *nfs2.Diropres, o *Outcome) { o.Handle = m.Diropok.File[:] }

// procedures2 has the procedures of NFSv2 (RFC 1094).
var procedures2 = table{
	nfs2.NFSPROC_NULL:     {Class: Nothing},
	nfs2.NFSPROC_GETATTR:  {Class: Nothing},
	nfs2.NFSPROC_SETATTR:  {Class: Changes, act: of(func(m *nfs2.Sattrargs, a *Act) { a.object(m.File[:]) })},
	nfs2.NFSPROC_ROOT:     {Class: Nothing},
	nfs2.NFSPROC_LOOKUP:   {Class: Nothing, Gives: Handle, outcome: gets(made2), act: of(func(m *nfs2.Diropargs, a *Act) { a.entry(m.Dir[:], m.Name) })},
	nfs2.NFSPROC_READLINK: {Class: Nothing, Reply: Reply{Items: OneItem, Room: nfs2.NFS_MAXPATHLEN}},
	nfs2.NFSPROC_READ: {Class: Nothing, Reply: Reply{Items: OneItem, Item: "count"},
		act: of(func(m *nfs2.Readargs, a *Act) {
			a.object(m.File[:])
			a.span(uint64(m.Offset), uint64(m.Count))
		}),
		outcome: gets(func(m *nfs2.Readres, o *Outcome) { o.moved(uint64(m.Reply.Data.Length)) })},
	nfs2.NFSPROC_WRITECACHE: {Class: Never}, // reserved; what it would do is not defined
	nfs2.NFSPROC_WRITE: {Class: Changes, act: of(func(m *nfs2.Writeargs, a *Act) {
		a.object(m.File[:])
		a.span(uint64(m.Offset), uint64(m.Data.Length))
	})},
	nfs2.NFSPROC_CREATE: {Class: Changes, Gives: Handle, outcome: gets(made2), act: of(func(m *nfs2.Createargs, a *Act) { a.entry(m.Where.Dir[:], m.Where.Name) })},
	nfs2.NFSPROC_REMOVE: {Class: Changes, act: of(func(m *nfs2.Diropargs, a *Act) { a.entry(m.Dir[:], m.Name) })},
	nfs2.NFSPROC_RENAME: {Class: Changes, act: of(func(m *nfs2.Renameargs, a *Act) {
		a.entry(m.From.Dir[:], m.From.Name)
		a.entry(m.To.Dir[:], m.To.Name)
	})},
	nfs2.NFSPROC_LINK: {Class: Changes, act: of(func(m *nfs2.Linkargs, a *Act) {
		a.object(m.From[:])
		a.entry(m.To.Dir[:], m.To.Name)
	})},
	nfs2.NFSPROC_SYMLINK: {Class: Changes, act: of(func(m *nfs2.Symlinkargs, a *Act) { a.entry(m.From.Dir[:], m.From.Name); a.text(m.To) })},
	nfs2.NFSPROC_MKDIR:   {Class: Changes, Gives: Handle, outcome: gets(made2), act: of(func(m *nfs2.Createargs, a *Act) { a.entry(m.Where.Dir[:], m.Where.Name) })},
	nfs2.NFSPROC_RMDIR:   {Class: Changes, act: of(func(m *nfs2.Diropargs, a *Act) { a.entry(m.Dir[:], m.Name) })},
	nfs2.NFSPROC_READDIR: {Class: Nothing, Reply: Reply{Rest: "count"}},
	nfs2.NFSPROC_STATFS:  {Class: Nothing},
}
