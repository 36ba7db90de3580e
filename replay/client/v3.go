package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// V3 is an FS of version 3.
type V3 struct {
	RPC
	// Mount is the Requester for MOUNT; nil: the one for NFS.
	Mount *RPC

	calls sync.Pool
}

var _ FS = (*V3)(nil)

// NewV3 returns a client that needs no setup.
func NewV3(r RPC) *V3 { return &V3{RPC: r} }

// Version is "3".
func (v *V3) Version() string { return "3" }

// Alloc implements FS.
func (v *V3) Alloc(n int) ([]byte, error) { return v.Requester.Alloc(n) }

// Free implements FS.
func (v *V3) Free(b []byte) { v.Requester.Free(b) }

func (v *V3) get() *Call {
	if c, ok := v.calls.Get().(*Call); ok {
		return c
	}
	return new(Call)
}

func (v *V3) put(c *Call) {
	c.Results, c.Done = nil, nil
	v.calls.Put(c)
}

func v3(number uint32) Procedure { return Procedure{nfs3.NFS_PROGRAM, nfs3.NFS_V3, number} }

// result of NFSv3: all of them report a status.
type result interface {
	xdr.Message
	xdr.Status
}

// do makes one call. What result aliases is valid until put.
func (v *V3) do(ctx context.Context, c *Call, number uint32, args xdr.Message, res result, data ...[]byte) error {
	if c.MaxReply == 0 {
		c.MaxReply = 1024 // all but READDIR and READLINK
	}
	c.Build(v3(number), v.Cred, args, data...)
	if err := v.Do(ctx, c, res); err != nil {
		return err
	}
	if code, symbol := res.StatusCode(); code != 0 {
		return &StatusError{nfs3.Programs[0].Procedures[number].Name, code, symbol}
	}
	return nil
}

// simple makes one call whose result is not kept.
func (v *V3) simple(ctx context.Context, number uint32, args xdr.Message, res result) error {
	c := v.get()
	defer v.put(c)
	return v.do(ctx, c, number, args, res)
}

// Root asks MOUNT for a file handle.
func (v *V3) Root(ctx context.Context, path string) ([]byte, error) {
	r := v.Mount
	if r == nil {
		r = &v.RPC
	}
	c := v.get()
	defer v.put(c)
	c.MaxReply = 1024
	c.Build(Procedure{mount.MOUNT_PROGRAM, mount.MOUNT_V3, mount.MOUNTPROC3_MNT}, r.Cred, &mount.DirpathMessage{Dirpath: []byte(path)})
	var res mount.Mountres3
	if err := r.Do(ctx, c, &res); err != nil {
		return nil, fmt.Errorf("MNT %s: %w", path, err)
	}
	if code, symbol := res.StatusCode(); code != 0 {
		return nil, &StatusError{"MNT " + path, code, symbol}
	}
	return clone(res.Mountinfo.Fhandle), nil
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

func fh3(b []byte) nfs3.NfsFh3 { return nfs3.NfsFh3{Data: b} }

func where3(dir []byte, name string) nfs3.Diropargs3 {
	return nfs3.Diropargs3{Dir: fh3(dir), Name: []byte(name)}
}

func attr3(a *nfs3.Fattr3) Attr {
	moment := func(t nfs3.Nfstime3) time.Time { return time.Unix(int64(t.Seconds), int64(t.Nseconds)) }
	return Attr{Type: Type(a.Type), Mode: a.Mode, Links: a.Nlink, Size: a.Size, Fileid: a.Fileid,
		Atime: moment(a.Atime), Mtime: moment(a.Mtime), UID: int64(a.Uid), GID: int64(a.Gid), Major: a.Rdev.Specdata1, Minor: a.Rdev.Specdata2}
}

func time3(t time.Time) nfs3.Nfstime3 {
	return nfs3.Nfstime3{Seconds: uint32(t.Unix()), Nseconds: uint32(t.Nanosecond())}
}

func sattr3(a SetAttr) (s nfs3.Sattr3) {
	if a.Mode != nil {
		s.Mode = nfs3.SetMode3{SetIt: true, Mode: *a.Mode}
	}
	if a.UID != nil {
		s.Uid = nfs3.SetUid3{SetIt: true, Uid: *a.UID}
	}
	if a.GID != nil {
		s.Gid = nfs3.SetGid3{SetIt: true, Gid: *a.GID}
	}
	if a.Size != nil {
		s.Size = nfs3.SetSize3{SetIt: true, Size: *a.Size}
	}
	if a.Atime != nil {
		s.Atime = nfs3.SetAtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Atime: time3(*a.Atime)}
	}
	if a.Mtime != nil {
		s.Mtime = nfs3.SetMtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Mtime: time3(*a.Mtime)}
	}
	return s
}

// Lookup implements FS.
func (v *V3) Lookup(ctx context.Context, dir []byte, name string) ([]byte, Attr, error) {
	c := v.get()
	defer v.put(c)
	var res nfs3.LOOKUP3res
	if err := v.do(ctx, c, nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: where3(dir, name)}, &res); err != nil {
		return nil, Attr{}, err
	}
	h := clone(res.Resok.Object.Data)
	if res.Resok.ObjAttributes.AttributesFollow {
		return h, attr3(&res.Resok.ObjAttributes.Attributes), nil
	}
	a, err := v.Getattr(ctx, h)
	return h, a, err
}

// Getattr implements FS.
func (v *V3) Getattr(ctx context.Context, handle []byte) (Attr, error) {
	var res nfs3.GETATTR3res
	if err := v.simple(ctx, nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh3(handle)}, &res); err != nil {
		return Attr{}, err
	}
	return attr3(&res.Resok.ObjAttributes), nil
}

// Setattr implements FS.
func (v *V3) Setattr(ctx context.Context, handle []byte, a SetAttr) error {
	return v.simple(ctx, nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: fh3(handle), NewAttributes: sattr3(a)}, &nfs3.SETATTR3res{})
}

// SetACL sets access control lists, by the protocol beside NFSv3 (NFSACL), on the
// same connection.
func (v *V3) SetACL(ctx context.Context, handle []byte, acl *nfsacl.Secattr) error {
	c := v.get()
	defer v.put(c)
	c.MaxReply = 1024
	c.Build(Procedure{nfsacl.NFS_ACL_PROGRAM, nfsacl.NFS_ACL_V3, nfsacl.ACLPROC3_SETACL}, v.Cred, &nfsacl.SETACL3args{Fh: fh3(handle), Acl: *acl})
	var res nfsacl.SETACL3res
	if err := v.Do(ctx, c, &res); err != nil {
		return err
	}
	if code, symbol := res.StatusCode(); code != 0 {
		return &StatusError{"SETACL", code, symbol}
	}
	return nil
}

// GetACL returns all access control lists, by NFSACL on the same connection.
func (v *V3) GetACL(ctx context.Context, handle []byte) (*nfsacl.Secattr, error) {
	c := v.get()
	defer v.put(c)
	c.MaxReply = 32 << 10
	c.Build(Procedure{nfsacl.NFS_ACL_PROGRAM, nfsacl.NFS_ACL_V3, nfsacl.ACLPROC3_GETACL}, v.Cred, &nfsacl.GETACL3args{
		Fh: fh3(handle), Mask: nfsacl.NA_ACL | nfsacl.NA_ACLCNT | nfsacl.NA_DFACL | nfsacl.NA_DFACLCNT,
	})
	var res nfsacl.GETACL3res
	if err := v.Do(ctx, c, &res); err != nil {
		return nil, err
	}
	if code, symbol := res.StatusCode(); code != 0 {
		return nil, &StatusError{"GETACL", code, symbol}
	}
	return &res.Resok.Acl, nil
}

// Access implements FS.
func (v *V3) Access(ctx context.Context, handle []byte, mask uint32) (uint32, error) {
	var res nfs3.ACCESS3res
	err := v.simple(ctx, nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{Object: fh3(handle), Access: mask}, &res)
	return res.Resok.Access, err
}

// Readlink implements FS.
func (v *V3) Readlink(ctx context.Context, handle []byte) (string, error) {
	c := v.get()
	defer v.put(c)
	c.MaxReply = 8192
	var res nfs3.READLINK3res
	if err := v.do(ctx, c, nfs3.NFSPROC3_READLINK, &nfs3.READLINK3args{Symlink: fh3(handle)}, &res); err != nil {
		return "", err
	}
	return string(c.Reply.Bytes(res.Resok.Data)), nil
}

// made returns the handle of a new object, which the server may leave out.
func (v *V3) made(ctx context.Context, p *nfs3.PostOpFh3, dir []byte, name string) ([]byte, error) {
	if p.HandleFollows {
		return clone(p.Handle.Data), nil
	}
	h, _, err := v.Lookup(ctx, dir, name)
	return h, err
}

// Mkdir implements FS.
func (v *V3) Mkdir(ctx context.Context, dir []byte, name string, a SetAttr) ([]byte, error) {
	c := v.get()
	defer v.put(c)
	var res nfs3.MKDIR3res
	if err := v.do(ctx, c, nfs3.NFSPROC3_MKDIR, &nfs3.MKDIR3args{Where: where3(dir, name), Attributes: sattr3(a)}, &res); err != nil {
		return nil, err
	}
	return v.made(ctx, &res.Resok.Obj, dir, name)
}

// Symlink implements FS.
func (v *V3) Symlink(ctx context.Context, dir []byte, name, target string, a SetAttr) ([]byte, error) {
	c := v.get()
	defer v.put(c)
	args := nfs3.SYMLINK3args{Where: where3(dir, name)}
	args.Symlink.SymlinkAttributes = sattr3(a)
	args.Symlink.SymlinkData = xdr.Data{Length: uint32(len(target)), Inline: []byte(target)}
	var res nfs3.SYMLINK3res
	if err := v.do(ctx, c, nfs3.NFSPROC3_SYMLINK, &args, &res); err != nil {
		return nil, err
	}
	return v.made(ctx, &res.Resok.Obj, dir, name)
}

// Mknod implements FS.
func (v *V3) Mknod(ctx context.Context, dir []byte, name string, t Type, major, minor uint32, a SetAttr) ([]byte, error) {
	c := v.get()
	defer v.put(c)
	args := nfs3.MKNOD3args{Where: where3(dir, name)}
	args.What.Type = nfs3.Ftype3(t)
	args.What.PipeAttributes = sattr3(a)
	args.What.Device = nfs3.Devicedata3{DevAttributes: sattr3(a), Spec: nfs3.Specdata3{Specdata1: major, Specdata2: minor}}
	var res nfs3.MKNOD3res
	if err := v.do(ctx, c, nfs3.NFSPROC3_MKNOD, &args, &res); err != nil {
		return nil, err
	}
	return v.made(ctx, &res.Resok.Obj, dir, name)
}

// Link implements FS.
func (v *V3) Link(ctx context.Context, object, dir []byte, name string) error {
	return v.simple(ctx, nfs3.NFSPROC3_LINK, &nfs3.LINK3args{File: fh3(object), Link: where3(dir, name)}, &nfs3.LINK3res{})
}

// Remove implements FS.
func (v *V3) Remove(ctx context.Context, dir []byte, name string) error {
	return v.simple(ctx, nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: where3(dir, name)}, &nfs3.REMOVE3res{})
}

// Rmdir implements FS.
func (v *V3) Rmdir(ctx context.Context, dir []byte, name string) error {
	return v.simple(ctx, nfs3.NFSPROC3_RMDIR, &nfs3.RMDIR3args{Object: where3(dir, name)}, &nfs3.RMDIR3res{})
}

// Rename implements FS.
func (v *V3) Rename(ctx context.Context, from []byte, name string, to []byte, newname string) error {
	args := nfs3.RENAME3args{From: where3(from, name), To: where3(to, newname)}
	return v.simple(ctx, nfs3.NFSPROC3_RENAME, &args, &nfs3.RENAME3res{})
}

// readdirSize is how much of a directory is asked for at a time, in bytes.
const readdirSize = 32 << 10

// Readdir implements FS.
func (v *V3) Readdir(ctx context.Context, dir []byte, f func(Entry) bool) error {
	c := v.get()
	defer v.put(c)
	args := nfs3.READDIR3args{Dir: fh3(dir), Count: readdirSize}
	var res nfs3.READDIR3res
	for {
		c.MaxReply = readdirSize + 512
		if err := v.do(ctx, c, nfs3.NFSPROC3_READDIR, &args, &res); err != nil {
			return err
		}
		entries := res.Resok.Reply.Entries
		for i := range entries {
			e := &entries[i]
			if name := string(e.Name); name != "." && name != ".." && !f(Entry{name, e.Fileid, e.Cookie}) {
				return nil
			}
		}
		if res.Resok.Reply.Eof {
			return nil
		}
		if len(entries) == 0 {
			return fmt.Errorf("READDIR: no entries, and not the end: %w", ErrListing)
		}
		if next := entries[len(entries)-1].Cookie; next == args.Cookie {
			return fmt.Errorf("READDIR: the server repeats itself: %w", ErrListing)
		} else {
			args.Cookie, args.Cookieverf = next, res.Resok.Cookieverf
		}
	}
}

// Create implements FS.
func (v *V3) Create(ctx context.Context, dir []byte, name string, a SetAttr, exclusive bool) (*File, error) {
	c := v.get()
	defer v.put(c)
	args := nfs3.CREATE3args{Where: where3(dir, name), How: nfs3.Createhow3{Mode: nfs3.UNCHECKED, ObjAttributes: sattr3(a)}}
	if exclusive {
		args.How.Mode = nfs3.GUARDED
	}
	var res nfs3.CREATE3res
	if err := v.do(ctx, c, nfs3.NFSPROC3_CREATE, &args, &res); err != nil {
		return nil, err
	}
	h, err := v.made(ctx, &res.Resok.Obj, dir, name)
	return &File{Handle: h}, err
}

// Open looks the file up.
func (v *V3) Open(ctx context.Context, dir []byte, name string, _ bool) (*File, error) {
	h, _, err := v.Lookup(ctx, dir, name)
	return &File{Handle: h}, err
}

// Close does nothing: version 3 has no open files.
func (v *V3) Close(context.Context, *File) error { return nil }

// Read implements FS.
func (v *V3) Read(ctx context.Context, f *File, offset uint64, p []byte) (int, bool, error) {
	c := v.get()
	defer v.put(c)
	c.Results = [][]byte{p}
	var res nfs3.READ3res
	args := nfs3.READ3args{File: fh3(f.Handle), Offset: offset, Count: uint32(len(p))}
	if err := v.do(ctx, c, nfs3.NFSPROC3_READ, &args, &res); err != nil {
		return 0, false, err
	}
	n, err := take(c, res.Resok.Data, p)
	return n, res.Resok.Eof, err
}

// take copies data of a reply to p, unless they are already there.
func take(c *Call, d xdr.Data, p []byte) (int, error) {
	b := c.Reply.Bytes(d)
	if len(b) > len(p) {
		return 0, fmt.Errorf("READ: %d bytes, but %d were asked for", len(b), len(p))
	}
	if len(b) > 0 && &b[0] != &p[0] {
		copy(p, b)
	}
	return len(b), nil
}

// Write implements FS.
func (v *V3) Write(ctx context.Context, f *File, offset uint64, p []byte, stable bool) (int, error) {
	c := v.get()
	defer v.put(c)
	args := nfs3.WRITE3args{File: fh3(f.Handle), Offset: offset, Count: uint32(len(p)), Stable: nfs3.UNSTABLE,
		Data: xdr.Data{Length: uint32(len(p)), Chunk: 1}}
	if stable {
		args.Stable = nfs3.FILE_SYNC
	}
	var res nfs3.WRITE3res
	if err := v.do(ctx, c, nfs3.NFSPROC3_WRITE, &args, &res, p); err != nil {
		return 0, err
	}
	if res.Resok.Count > uint32(len(p)) {
		return 0, fmt.Errorf("WRITE: the server says it took %d of %d bytes", res.Resok.Count, len(p))
	}
	return int(res.Resok.Count), nil
}

// Commit implements FS.
func (v *V3) Commit(ctx context.Context, f *File) error {
	return v.simple(ctx, nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: fh3(f.Handle)}, &nfs3.COMMIT3res{})
}

// Shutdown does nothing: version 3 keeps nothing.
func (v *V3) Shutdown(context.Context) error { return nil }

// Null calls procedure 0 of NFS.
func (r *RPC) Null(ctx context.Context, version uint32) error {
	var c Call
	c.MaxReply = 128
	c.Build(Procedure{nfs3.NFS_PROGRAM, version, 0}, oncrpc.Auth{}, xdr.Void{})
	return r.Do(ctx, &c, xdr.Void{})
}
