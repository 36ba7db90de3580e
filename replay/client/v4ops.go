package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// asked has the attributes that Attr needs.
var asked = nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.FATTR4_TYPE, nfs4.FATTR4_SIZE, nfs4.FATTR4_FILEID,
	nfs4.FATTR4_MODE, nfs4.FATTR4_NUMLINKS, nfs4.FATTR4_OWNER, nfs4.FATTR4_OWNER_GROUP, nfs4.FATTR4_RAWDEV, nfs4.FATTR4_TIME_ACCESS, nfs4.FATTR4_TIME_MODIFY)}

func (c *compound) getattr() *compound {
	return c.add(nfs4.OP_GETATTR, &nfs4.GETATTR4args{AttrRequest: asked})
}

func attr4(m xdr.Message) (Attr, error) {
	r, ok := m.(*nfs4.GETATTR4res)
	if !ok {
		return Attr{}, errors.New("GETATTR: no result")
	}
	a, err := r.Resok4.ObjAttributes.Attrs()
	if err != nil {
		return Attr{}, err
	}
	number := func(b []byte) int64 {
		n, err := strconv.ParseUint(string(b), 10, 32)
		if err != nil {
			return -1
		}
		return int64(n)
	}
	moment := func(t nfs4.Nfstime4) time.Time { return time.Unix(t.Seconds, int64(t.Nseconds)) }
	return Attr{Type: Type(a.Type), Mode: a.Mode, Links: a.Numlinks, Size: a.Size, Fileid: a.Fileid,
		Atime: moment(a.TimeAccess), Mtime: moment(a.TimeModify), UID: number(a.Owner), GID: number(a.OwnerGroup),
		Major: a.Rawdev.Specdata1, Minor: a.Rawdev.Specdata2}, nil
}

func fattr4(s SetAttr) nfs4.Fattr4 {
	var a nfs4.Attrs
	if s.Size != nil {
		a.Size, a.Mask = *s.Size, a.Mask.With(nfs4.FATTR4_SIZE)
	}
	if s.Mode != nil {
		a.Mode, a.Mask = *s.Mode, a.Mask.With(nfs4.FATTR4_MODE)
	}
	// Numbers as text: what servers take that map no names (RFC 8881, section
	// 5.9).
	if s.UID != nil {
		a.Owner, a.Mask = strconv.AppendUint(nil, uint64(*s.UID), 10), a.Mask.With(nfs4.FATTR4_OWNER)
	}
	if s.GID != nil {
		a.OwnerGroup, a.Mask = strconv.AppendUint(nil, uint64(*s.GID), 10), a.Mask.With(nfs4.FATTR4_OWNER_GROUP)
	}
	at := func(t time.Time) nfs4.Settime4 {
		return nfs4.Settime4{SetIt: nfs4.SET_TO_CLIENT_TIME4, Time: nfs4.Nfstime4{Seconds: t.Unix(), Nseconds: uint32(t.Nanosecond())}}
	}
	if s.Atime != nil {
		a.TimeAccessSet, a.Mask = at(*s.Atime), a.Mask.With(nfs4.FATTR4_TIME_ACCESS_SET)
	}
	if s.Mtime != nil {
		a.TimeModifySet, a.Mask = at(*s.Mtime), a.Mask.With(nfs4.FATTR4_TIME_MODIFY_SET)
	}
	return a.Fattr4()
}

// Lookup implements FS.
func (v *V4) Lookup(ctx context.Context, dir []byte, name string) ([]byte, Attr, error) {
	c := v.get()
	defer v.put(c)
	c.putfh(dir).add(nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte(name)}).getattr()
	h, err := v.handle(ctx, c)
	if err != nil {
		return nil, Attr{}, err
	}
	a, err := attr4(c.result(-2))
	return h, a, err
}

// Getattr implements FS.
func (v *V4) Getattr(ctx context.Context, handle []byte) (Attr, error) {
	c := v.get()
	defer v.put(c)
	if err := v.do(ctx, c.putfh(handle).getattr()); err != nil {
		return Attr{}, err
	}
	return attr4(c.result(-1))
}

// Setattr implements FS. It uses the anonymous stateid.
func (v *V4) Setattr(ctx context.Context, handle []byte, a SetAttr) error {
	c := v.get()
	defer v.put(c)
	return v.do(ctx, c.putfh(handle).add(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: fattr4(a)}))
}

// Access implements FS.
func (v *V4) Access(ctx context.Context, handle []byte, mask uint32) (uint32, error) {
	c := v.get()
	defer v.put(c)
	if err := v.do(ctx, c.putfh(handle).add(nfs4.OP_ACCESS, &nfs4.ACCESS4args{Access: mask})); err != nil {
		return 0, err
	}
	return c.result(-1).(*nfs4.ACCESS4res).Resok4.Access, nil
}

// GetXattr returns the value of an extended attribute (RFC 8276), which NFSv4.2 has.
func (v *V4) GetXattr(ctx context.Context, handle []byte, name string) ([]byte, error) {
	c := v.get()
	defer v.put(c)
	c.MaxReply = 66 << 10
	if err := v.do(ctx, c.putfh(handle).add(nfs4.OP_GETXATTR, &nfs4.GETXATTR4args{GxaName: []byte(name)})); err != nil {
		return nil, err
	}
	return clone(c.result(-1).(*nfs4.GETXATTR4res).GxrValue), nil
}

// Readlink implements FS.
func (v *V4) Readlink(ctx context.Context, handle []byte) (string, error) {
	c := v.get()
	defer v.put(c)
	c.MaxReply = 8192
	if err := v.do(ctx, c.putfh(handle).add(nfs4.OP_READLINK, xdr.Void{})); err != nil {
		return "", err
	}
	return string(c.Reply.Bytes(c.result(-1).(*nfs4.READLINK4res).Resok4.Link)), nil
}

func (v *V4) create(ctx context.Context, dir []byte, name string, t nfs4.Createtype4, a SetAttr) ([]byte, error) {
	c := v.get()
	defer v.put(c)
	c.putfh(dir).add(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: t, Objname: []byte(name), Createattrs: fattr4(a)})
	return v.handle(ctx, c)
}

// Mkdir implements FS.
func (v *V4) Mkdir(ctx context.Context, dir []byte, name string, a SetAttr) ([]byte, error) {
	return v.create(ctx, dir, name, nfs4.Createtype4{Type: nfs4.NF4DIR}, a)
}

// Symlink implements FS.
func (v *V4) Symlink(ctx context.Context, dir []byte, name, target string, a SetAttr) ([]byte, error) {
	t := nfs4.Createtype4{Type: nfs4.NF4LNK, Linkdata: xdr.Data{Length: uint32(len(target)), Inline: []byte(target)}}
	return v.create(ctx, dir, name, t, a)
}

// Mknod implements FS.
func (v *V4) Mknod(ctx context.Context, dir []byte, name string, t Type, major, minor uint32, a SetAttr) ([]byte, error) {
	return v.create(ctx, dir, name, nfs4.Createtype4{Type: nfs4.NfsFtype4(t), Devdata: nfs4.Specdata4{Specdata1: major, Specdata2: minor}}, a)
}

// Link implements FS.
func (v *V4) Link(ctx context.Context, object, dir []byte, name string) error {
	c := v.get()
	defer v.put(c)
	return v.do(ctx, c.putfh(object).add(nfs4.OP_SAVEFH, xdr.Void{}).putfh(dir).add(nfs4.OP_LINK, &nfs4.LINK4args{Newname: []byte(name)}))
}

// Remove implements FS.
func (v *V4) Remove(ctx context.Context, dir []byte, name string) error {
	c := v.get()
	defer v.put(c)
	return v.do(ctx, c.putfh(dir).add(nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: []byte(name)}))
}

// Rmdir is Remove: NFSv4 has one operation for both.
func (v *V4) Rmdir(ctx context.Context, dir []byte, name string) error {
	return v.Remove(ctx, dir, name)
}

// Rename implements FS.
func (v *V4) Rename(ctx context.Context, from []byte, name string, to []byte, newname string) error {
	c := v.get()
	defer v.put(c)
	c.putfh(from).add(nfs4.OP_SAVEFH, xdr.Void{}).putfh(to)
	return v.do(ctx, c.add(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte(name), Newname: []byte(newname)}))
}

// Readdir implements FS.
func (v *V4) Readdir(ctx context.Context, dir []byte, f func(Entry) bool) error {
	args := nfs4.READDIR4args{Dircount: readdirSize / 4, Maxcount: readdirSize,
		AttrRequest: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.FATTR4_FILEID)}}
	for {
		c := v.get()
		c.MaxReply = readdirSize + 512
		if err := v.do(ctx, c.putfh(dir).add(nfs4.OP_READDIR, &args)); err != nil {
			v.put(c)
			return err
		}
		r := &c.result(-1).(*nfs4.READDIR4res).Resok4
		last, eof, n := args.Cookie, r.Reply.Eof, len(r.Reply.Entries)
		for i := range r.Reply.Entries {
			e := &r.Reply.Entries[i]
			last = e.Cookie
			var id uint64
			if a, err := e.Attrs.Attrs(); err == nil {
				id = a.Fileid
			}
			if !f(Entry{string(e.Name), id, e.Cookie}) {
				v.put(c)
				return nil
			}
		}
		verf := r.Cookieverf
		v.put(c)
		switch {
		case eof:
			return nil
		case n == 0:
			return fmt.Errorf("READDIR: no entries, and not the end: %w", ErrListing)
		case last == args.Cookie:
			return fmt.Errorf("READDIR: the server repeats itself: %w", ErrListing)
		}
		args.Cookie, args.Cookieverf = last, verf
	}
}

// Create implements FS.
func (v *V4) Create(ctx context.Context, dir []byte, name string, a SetAttr, exclusive bool) (*File, error) {
	how := nfs4.Openflag4{Opentype: nfs4.OPEN4_CREATE, How: nfs4.Createhow4{Mode: nfs4.UNCHECKED4, Createattrs: fattr4(a)}}
	if exclusive {
		how.How.Mode = nfs4.GUARDED4
	}
	return v.open(ctx, dir, name, nfs4.OPEN4_SHARE_ACCESS_BOTH, how)
}

// Open implements FS.
func (v *V4) Open(ctx context.Context, dir []byte, name string, write bool) (*File, error) {
	share := nfs4.ShareAccess4(nfs4.OPEN4_SHARE_ACCESS_READ)
	if write {
		share = nfs4.OPEN4_SHARE_ACCESS_BOTH
	}
	return v.open(ctx, dir, name, share, nfs4.Openflag4{})
}

func (v *V4) open(ctx context.Context, dir []byte, name string, share nfs4.ShareAccess4, how nfs4.Openflag4) (*File, error) {
	c := v.get()
	defer v.put(c)
	a := &nfs4.OPEN4args{ShareAccess: share, Openhow: how, Claim: nfs4.OpenClaim4{Claim: nfs4.CLAIM_NULL, File: []byte(name)}}
	a.Owner = nfs4.StateOwner4{Clientid: v.ClientID, Owner: v.ownerID}
	if v.Minor > 0 {
		a.ShareAccess |= nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG
	} else {
		v.owner.Lock()
		defer v.owner.Unlock()
		a.Seqid = v.owner.seqid
	}
	h, err := v.handle(ctx, c.putfh(dir).add(nfs4.OP_OPEN, a))
	v.count(c, nfs4.OP_OPEN, err)
	if err != nil {
		return nil, err
	}
	res, ok := c.result(-2).(*nfs4.OPEN4res)
	if !ok {
		return nil, errors.New("OPEN: no result")
	}
	f := &File{Handle: h, state: &openState{res.Resok4.Stateid}}
	if res.Resok4.Rflags&nfs4.OPEN4_RESULT_CONFIRM == 0 {
		return f, nil
	}
	c.args.Ops = c.args.Ops[:0]
	err = v.do(ctx, c.putfh(h).add(nfs4.OP_OPEN_CONFIRM, &nfs4.OPEN_CONFIRM4args{OpenStateid: f.state.stateid, Seqid: v.owner.seqid}))
	v.count(c, nfs4.OP_OPEN_CONFIRM, err)
	if err != nil {
		return nil, err
	}
	f.state.stateid = c.result(-1).(*nfs4.OPEN_CONFIRM4res).Resok4.OpenStateid
	return f, nil
}

// count advances the open-owner's seqid, unless the operation was not reached, or failed in
// a way that leaves the seqid unchanged (RFC 7530, section 9.1.7).
func (v *V4) count(c *compound, op nfs4.NfsOpnum4, err error) {
	if v.Minor > 0 || err != nil && !errors.As(err, new(*StatusError)) {
		return
	}
	for i := range c.res.Ops {
		if c.res.Ops[i].Number != uint32(op) {
			continue
		}
		code, _, _ := c.res.Ops[i].Status()
		if !ops.KeepsSeqid(nfs4.Nfsstat4(code)) {
			v.owner.seqid++
		}
	}
}

// Close implements FS.
func (v *V4) Close(ctx context.Context, f *File) error {
	if f.state == nil {
		return nil
	}
	c := v.get()
	defer v.put(c)
	a := &nfs4.CLOSE4args{OpenStateid: f.state.stateid}
	if v.Minor == 0 {
		v.owner.Lock()
		defer v.owner.Unlock()
		a.Seqid = v.owner.seqid
	}
	err := v.do(ctx, c.putfh(f.Handle).add(nfs4.OP_CLOSE, a))
	v.count(c, nfs4.OP_CLOSE, err)
	f.state = nil
	return err
}

func (f *File) stateid() (s nfs4.Stateid4) {
	if f.state != nil {
		s = f.state.stateid
	}
	return s
}

// Read implements FS.
func (v *V4) Read(ctx context.Context, f *File, offset uint64, p []byte) (int, bool, error) {
	c := v.get()
	defer v.put(c)
	c.Results = [][]byte{p}
	c.putfh(f.Handle).add(nfs4.OP_READ, &nfs4.READ4args{Stateid: f.stateid(), Offset: offset, Count: uint32(len(p))})
	if err := v.do(ctx, c); err != nil {
		return 0, false, err
	}
	r := &c.result(-1).(*nfs4.READ4res).Resok4
	n, err := take(&c.Call, r.Data, p)
	return n, r.Eof, err
}

// Write implements FS.
func (v *V4) Write(ctx context.Context, f *File, offset uint64, p []byte, stable bool) (int, error) {
	c := v.get()
	defer v.put(c)
	a := &nfs4.WRITE4args{Stateid: f.stateid(), Offset: offset, Stable: nfs4.UNSTABLE4, Data: xdr.Data{Length: uint32(len(p)), Chunk: 1}}
	if stable {
		a.Stable = nfs4.FILE_SYNC4
	}
	if err := v.do(ctx, c.putfh(f.Handle).add(nfs4.OP_WRITE, a), p); err != nil {
		return 0, err
	}
	n := c.result(-1).(*nfs4.WRITE4res).Resok4.Count
	if n > uint32(len(p)) {
		return 0, fmt.Errorf("WRITE: the server says it took %d of %d bytes", n, len(p))
	}
	return int(n), nil
}

// Commit implements FS.
func (v *V4) Commit(ctx context.Context, f *File) error {
	c := v.get()
	defer v.put(c)
	return v.do(ctx, c.putfh(f.Handle).add(nfs4.OP_COMMIT, &nfs4.COMMIT4args{}))
}

// Lock asks for a byte-range lock as a new lock-owner, and returns what Unlock
// needs. It fails with NFS4ERR_DENIED if another lock conflicts.
func (v *V4) Lock(ctx context.Context, f *File, owner []byte, write bool, offset, length uint64) (*Lock, error) {
	c := v.get()
	defer v.put(c)
	a := &nfs4.LOCK4args{Locktype: nfs4.READ_LT, Offset: offset, Length: length}
	if write {
		a.Locktype = nfs4.WRITE_LT
	}
	a.Locker.NewLockOwner = true
	a.Locker.OpenOwner = nfs4.OpenToLockOwner4{OpenStateid: f.stateid(), LockOwner: nfs4.StateOwner4{Clientid: v.ClientID, Owner: owner}}
	if v.Minor == 0 {
		v.owner.Lock()
		defer v.owner.Unlock()
		a.Locker.OpenOwner.OpenSeqid = v.owner.seqid
	}
	err := v.do(ctx, c.putfh(f.Handle).add(nfs4.OP_LOCK, a))
	v.count(c, nfs4.OP_LOCK, err)
	if err != nil {
		return nil, err
	}
	return &Lock{handle: f.Handle, locktype: a.Locktype, offset: offset, length: length, seqid: 1,
		stateid: c.result(-1).(*nfs4.LOCK4res).Resok4.LockStateid}, nil
}

// Lock is a byte-range lock.
type Lock struct {
	handle         []byte
	stateid        nfs4.Stateid4
	locktype       nfs4.NfsLockType4
	offset, length uint64
	seqid          uint32 // 4.0
}

// Unlock releases a lock.
func (v *V4) Unlock(ctx context.Context, l *Lock) error {
	c := v.get()
	defer v.put(c)
	a := &nfs4.LOCKU4args{Locktype: l.locktype, LockStateid: l.stateid, Offset: l.offset, Length: l.length}
	if v.Minor == 0 {
		a.Seqid = l.seqid
	}
	return v.do(ctx, c.putfh(l.handle).add(nfs4.OP_LOCKU, a))
}
