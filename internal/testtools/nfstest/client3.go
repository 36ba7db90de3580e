package nfstest

import (
	"context"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Client3 is a client of NFSv3.
type Client3 struct{ *Client }

// New3 makes a client with the credential of a user.
func New3(d Doer, uid, gid uint32, gids ...uint32) Client3 {
	return Client3{&Client{Doer: d, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Cred: Sys(uid, gid, gids...)}}
}

// Status is an NFSv3 error.
type Status nfs3.Nfsstat3

// Error names the status.
func (s Status) Error() string { return nfs3.Nfsstat3(s).String() }

// Mount gets the handle of a path.
func Mount(ctx context.Context, d Doer, path string) ([]byte, error) {
	c := &Client{Doer: d, Program: mount.MOUNT_PROGRAM, Version: mount.MOUNT_V3, Cred: Sys(0, 0)}
	var res mount.Mountres3
	if err := c.Call(ctx, mount.MOUNTPROC3_MNT, &mount.DirpathMessage{Dirpath: []byte(path)}, &res, nil, nil); err != nil {
		return nil, err
	}
	if res.FhsStatus != mount.MNT3_OK {
		return nil, fmt.Errorf("mount: %v", res.FhsStatus)
	}
	return append([]byte(nil), res.Mountinfo.Fhandle...), nil
}

// Do makes a call; a status that is not NFS3_OK is an error of type Status.
func (c Client3) Do(ctx context.Context, procedure uint32, args, res xdr.Message) error {
	return c.do(ctx, procedure, args, res, nil, nil)
}

func (c Client3) do(ctx context.Context, procedure uint32, args, res xdr.Message, data, result []byte) error {
	if err := c.Call(ctx, procedure, args, res, data, result); err != nil {
		return err
	}
	if st, ok := res.(xdr.Status); ok {
		if code, _ := st.StatusCode(); code != 0 {
			return Status(code)
		}
	}
	return nil
}

// Where is a name in a directory.
func Where(dir []byte, name string) nfs3.Diropargs3 {
	return nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: dir}, Name: []byte(name)}
}

// Lookup finds a name.
func (c Client3) Lookup(ctx context.Context, dir []byte, name string) ([]byte, *nfs3.LOOKUP3res, error) {
	res := &nfs3.LOOKUP3res{}
	err := c.Do(ctx, nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: Where(dir, name)}, res)
	return res.Resok.Object.Data, res, err
}

// Getattr gets the attributes of an object.
func (c Client3) Getattr(ctx context.Context, fh []byte) (*nfs3.Fattr3, error) {
	res := &nfs3.GETATTR3res{}
	err := c.Do(ctx, nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: fh}}, res)
	return &res.Resok.ObjAttributes, err
}

// Create makes a file with UNCHECKED.
func (c Client3) Create(ctx context.Context, dir []byte, name string, mode uint32) ([]byte, *nfs3.CREATE3res, error) {
	res := &nfs3.CREATE3res{}
	args := &nfs3.CREATE3args{Where: Where(dir, name)}
	args.How.ObjAttributes.Mode = nfs3.SetMode3{SetIt: true, Mode: mode}
	err := c.Do(ctx, nfs3.NFSPROC3_CREATE, args, res)
	return res.Resok.Obj.Handle.Data, res, err
}

// Mkdir makes a directory.
func (c Client3) Mkdir(ctx context.Context, dir []byte, name string, mode uint32) ([]byte, error) {
	res := &nfs3.MKDIR3res{}
	args := &nfs3.MKDIR3args{Where: Where(dir, name)}
	args.Attributes.Mode = nfs3.SetMode3{SetIt: true, Mode: mode}
	err := c.Do(ctx, nfs3.NFSPROC3_MKDIR, args, res)
	return res.Resok.Obj.Handle.Data, err
}

// Write writes with the data apart, as over RDMA with a Read chunk.
func (c Client3) Write(ctx context.Context, fh []byte, offset uint64, data []byte, how nfs3.StableHow) (*nfs3.WRITE3res, error) {
	res := &nfs3.WRITE3res{}
	args := &nfs3.WRITE3args{
		File: nfs3.NfsFh3{Data: fh}, Offset: offset, Count: uint32(len(data)), Stable: how,
		Data: xdr.Data{Length: uint32(len(data)), Chunk: 1},
	}
	if data == nil {
		data = []byte{}
	}
	return res, c.do(ctx, nfs3.NFSPROC3_WRITE, args, res, data, nil)
}

// Read reads; with apart the data comes into memory of its own, as over RDMA
// with a Write chunk.
func (c Client3) Read(ctx context.Context, fh []byte, offset uint64, count uint32, apart bool) ([]byte, *nfs3.READ3res, error) {
	res := &nfs3.READ3res{}
	args := &nfs3.READ3args{File: nfs3.NfsFh3{Data: fh}, Offset: offset, Count: count}
	var result []byte
	if apart {
		result = make([]byte, count)
	}
	err := c.do(ctx, nfs3.NFSPROC3_READ, args, res, nil, result)
	d := res.Resok.Data
	if d.Chunk != 0 {
		return result[:d.Length], res, err
	}
	return d.Inline, res, err
}

// Entries reads a whole directory with READDIRPLUS calls of maxcount bytes.
func (c Client3) Entries(ctx context.Context, dir []byte, maxcount uint32) ([]nfs3.Entryplus3, error) {
	var all []nfs3.Entryplus3
	args := &nfs3.READDIRPLUS3args{Dir: nfs3.NfsFh3{Data: dir}, Dircount: maxcount, Maxcount: maxcount}
	for {
		res := &nfs3.READDIRPLUS3res{}
		if err := c.Do(ctx, nfs3.NFSPROC3_READDIRPLUS, args, res); err != nil {
			return all, err
		}
		list := &res.Resok.Reply
		all = append(all, list.Entries...)
		if list.Eof {
			return all, nil
		}
		if len(list.Entries) == 0 {
			return all, fmt.Errorf("no entries and no end after cookie %d", args.Cookie)
		}
		args.Cookie, args.Cookieverf = list.Entries[len(list.Entries)-1].Cookie, res.Resok.Cookieverf
	}
}
