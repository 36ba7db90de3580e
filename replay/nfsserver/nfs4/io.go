package nfs4

import (
	"encoding/binary"
	"math"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// dataOps executes the operations on the data of files.
type dataOps struct {
	*request
	*objects
	*reply
	sender *sender
	files  *guard
	wcc    store.Wcc
	copied uint64 // bytes, by COPY
}

// allow checks the stateid of an operation on the data of the object h. Until forbid is called,
// permissions are not checked for a file that the caller itself has opened. They are checked for
// a caller with somebody else's stateid.
func (x *dataOps) allow(s *nfs4.Stateid4, h store.Handle, write bool) status {
	id, st := x.stateid(s)
	if st != ok {
		return st
	}
	x.sender.identify(id)
	x.c.Cred.Bypass, st = x.s.table.Stateids.CheckIO(x.client, id, h, write, x.principal())
	return st
}

func (x *dataOps) forbid() { x.c.Cred.Bypass = false }

func (x *dataOps) read(a *nfs4.READ4args) status {
	if st := x.allow(&a.Stateid, x.fh, false); st != ok {
		return st
	}
	defer x.forbid()
	count := min(a.Count, x.s.opt.MaxIO, uint32(max(x.room()-8, 0))&^3)
	count = x.c.MaxItem(x.c.Items(), count)
	if a.Count > 0 && count == 0 {
		return x.beyond
	}
	r := x.c.Read()
	if err := x.files.Read(&x.c.Cred, x.fh, a.Offset, count, r); err != nil {
		return x.dataError(err, x.fh)
	}
	x.c.Out = xdr.AppendBool(x.c.Out, r.EOF)
	x.data(r.Data)
	return ok
}

func (x *dataOps) write(a *nfs4.WRITE4args) status {
	data, fine := x.c.Bytes(a.Data)
	if !fine {
		return nfs4.NFS4ERR_BADXDR
	}
	if st := x.allow(&a.Stateid, x.fh, true); st != ok {
		return st
	}
	defer x.forbid()
	if uint64(len(data)) > math.MaxUint64-a.Offset {
		return nfs4.NFS4ERR_INVAL
	}
	if uint64(len(data)) > uint64(x.s.opt.MaxIO) {
		data = data[:x.s.opt.MaxIO]
	}
	stable := a.Stable != nfs4.UNSTABLE4
	if err := x.files.Write(&x.c.Cred, x.fh, a.Offset, data, stable, &x.wcc); err != nil {
		return x.dataError(err, x.fh)
	}
	committed := nfs4.UNSTABLE4
	if stable {
		committed = nfs4.FILE_SYNC4
	}
	b := xdr.AppendUint32(x.c.Out, uint32(len(data)))
	b = xdr.AppendUint32(b, uint32(committed))
	x.c.Out = binary.BigEndian.AppendUint64(b, x.s.store.Verifier())
	return ok
}

func (x *dataOps) commit(a *nfs4.COMMIT4args) status {
	if uint64(a.Count) > math.MaxUint64-a.Offset {
		return nfs4.NFS4ERR_INVAL
	}
	if err := x.s.store.Commit(&x.c.Cred, x.fh, a.Offset, uint64(a.Count), &x.wcc); err != nil {
		return x.dataError(err, x.fh)
	}
	x.c.Out = binary.BigEndian.AppendUint64(x.c.Out, x.s.store.Verifier())
	return ok
}

func (x *dataOps) allocate(a *nfs4.ALLOCATE4args) status {
	if st := x.allow(&a.AaStateid, x.fh, true); st != ok {
		return st
	}
	defer x.forbid()
	if st := x.extent(a.AaOffset, a.AaLength); st != ok {
		return st
	}
	return x.dataError(x.files.Allocate(&x.c.Cred, x.fh, a.AaOffset, a.AaLength, &x.wcc), x.fh)
}

func (x *dataOps) deallocate(a *nfs4.DEALLOCATE4args) status {
	if st := x.allow(&a.DaStateid, x.fh, true); st != ok {
		return st
	}
	defer x.forbid()
	if a.DaLength == 0 || a.DaLength > math.MaxUint64-a.DaOffset {
		return nfs4.NFS4ERR_INVAL
	}
	return x.dataError(x.files.Deallocate(&x.c.Cred, x.fh, a.DaOffset, a.DaLength, &x.wcc), x.fh)
}

// extent checks a range that an operation would give a file.
func (x *dataOps) extent(offset, length uint64) status {
	switch {
	case length == 0, length > math.MaxUint64-offset:
		return nfs4.NFS4ERR_INVAL
	case offset+length > x.s.info.MaxFileSize:
		return nfs4.NFS4ERR_FBIG
	}
	return ok
}

func (x *dataOps) ioAdvise(a *nfs4.IO_ADVISE4args) status {
	if st := x.allow(&a.IaaStateid, x.fh, false); st != ok {
		return st
	}
	x.forbid()
	x.c.Out = xdr.AppendUint32(x.c.Out, 0) // no hint is followed
	return ok
}

func (x *dataOps) seek(a *nfs4.SEEK4args) status {
	if st := x.allow(&a.SaStateid, x.fh, false); st != ok {
		return st
	}
	defer x.forbid()
	var what store.Whence
	switch a.SaWhat {
	case nfs4.NFS4_CONTENT_DATA:
		what = store.SeekData
	case nfs4.NFS4_CONTENT_HOLE:
		what = store.SeekHole
	default:
		return nfs4.NFS4ERR_UNION_NOTSUPP
	}
	size, st := x.size()
	if st != ok {
		return st
	}
	at, err := x.files.Seek(&x.c.Cred, x.fh, a.SaOffset, what)
	if err != nil {
		return x.dataError(err, x.fh)
	}
	x.c.Out = xdr.AppendUint64(xdr.AppendBool(x.c.Out, at >= size), at)
	return ok
}

// maxSegments is how many pieces of data and holes one READ_PLUS describes.
const maxSegments = 64

// readPlus is READ_PLUS. The data of its first data segment goes into a chunk if the client
// offers one; it then offers one for each, and should offer none for the holes between.
func (x *dataOps) readPlus(a *nfs4.READ_PLUS4args) status {
	if st := x.allow(&a.RpaStateid, x.fh, false); st != ok {
		return st
	}
	defer x.forbid()
	c := x.c
	size, st := x.size()
	if st != ok {
		return st
	}
	head := len(c.Out) // eof, number of segments
	segments := uint32(0)
	c.Out = append(c.Out, make([]byte, 8)...)
	pos := a.RpaOffset
	end := min(size, pos+min(uint64(min(a.RpaCount, x.s.opt.MaxIO)), math.MaxUint64-pos))
	for pos < end && segments < maxSegments {
		const frame = 4 + 8 + 8 // of a segment
		room := x.room()
		if room < frame+4 {
			if segments == 0 {
				return x.beyond
			}
			break
		}
		data := pos
		if x.s.info.Seek {
			next, err := x.files.Seek(&c.Cred, x.fh, pos, store.SeekData)
			switch store.Of(err) {
			case 0:
				data = max(next, pos)
			case store.ErrNXIO:
				data = end
			default:
				return x.dataError(err, x.fh)
			}
		}
		if data > pos {
			data = min(data, end)
			b := xdr.AppendUint32(c.Out, uint32(nfs4.NFS4_CONTENT_HOLE))
			c.Out = xdr.AppendUint64(xdr.AppendUint64(b, pos), data-pos)
			segments++
			pos = data
			continue
		}
		stop := end
		if x.s.info.Seek {
			if hole, err := x.files.Seek(&c.Cred, x.fh, pos, store.SeekHole); err == nil && hole > pos {
				stop = min(hole, end)
			}
		}
		n := uint32(min(stop-pos, uint64(room-frame)&^3))
		if n = c.MaxItem(c.Items(), n); n == 0 {
			break
		}
		r := c.Read()
		if err := x.files.Read(&c.Cred, x.fh, pos, n, r); err != nil {
			return x.dataError(err, x.fh)
		}
		if len(r.Data) == 0 {
			size, end = pos, pos // the file was cut meanwhile
			break
		}
		b := xdr.AppendUint32(c.Out, uint32(nfs4.NFS4_CONTENT_DATA))
		c.Out = xdr.AppendUint64(b, pos)
		x.data(r.Data)
		segments++
		pos += uint64(len(r.Data))
	}
	if segments == 0 && a.RpaCount > 0 && pos < end {
		return x.beyond
	}
	eof := uint32(0)
	if pos >= size {
		eof = 1
	}
	binary.BigEndian.PutUint32(c.Out[head:], eof)
	binary.BigEndian.PutUint32(c.Out[head+4:], segments)
	return ok
}
