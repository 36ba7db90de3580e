// Package extract reassembles the contents of files from the data of READ and WRITE, and writes them below a
// directory.
//
// DIR/PATH is a file whose path is known from the capture, as seen from the root of what was mounted (with
// NFSv4, from the first handle whose name was not captured). Files without a known name are in
// DIR/by-handle/HANDLE. DIR/manifest.ndjson records how much of each file was seen.
//
// Parts of a file that were not seen are zeros in it, as long as they are all together no longer than the
// capture, or than Options.Holes. A file for which there is no room for that is packed: it has only what was
// seen, one part after the other, and the manifest tells where they belong.
package extract

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

// Entry is a line of the manifest.
type Entry struct {
	Path         string `json:"path"`             // below the directory
	FileHandle   string `json:"filehandle"`       // hexadecimal
	Server       string `json:"server,omitempty"` // its address, if the files are of several servers
	Size         uint64 `json:"size"`             // bytes, as far as it is known
	Covered      uint64 `json:"covered"`          // bytes of them whose contents were seen
	MD5          string `json:"md5"`              // of the file as written here
	Packed       bool   `json:"packed,omitempty"`
	Holes        []Hole `json:"holes,omitempty"`      // what was not seen: the first ones
	MoreHoles    int    `json:"more_holes,omitempty"` // how many follow
	Complete     bool   `json:"complete"`             // the size is certain and all of it is covered
	ReadBytes    uint64 `json:"read_bytes"`
	WrittenBytes uint64 `json:"written_bytes"`
	Note         string `json:"note,omitempty"`
	// CapturedPath is the path in the capture, where Path is another: a name had
	// characters that do not belong into the name of a file, or was taken.
	CapturedPath string `json:"captured_path,omitempty"`
}

// Hole is a part of a file that was not seen.
type Hole struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
}

// maxHoles is how many the manifest lists of one file.
const maxHoles = 64

// maxFiles bounds the files that are written.
const maxFiles = 1 << 16

// maxOffset bounds the offset of data that is written: a file system has to be
// able to hold it, if Options.Holes wants it there.
const maxOffset = 1 << 42

// Options say how files are written.
type Options struct {
	// Holes is how many bytes that were not seen may be written as zeros, in all
	// files together. 0: as many as Extractor.Carried has been told.
	Holes int64
	// Files knows what is read meanwhile: it is never replaced. It may be nil.
	Files *outfile.Files
}

// Extractor writes files.
type Extractor struct {
	dir      string
	root     *os.Root // the directory; nil at the end
	temp     string   // below it
	outputs  *outfile.Files
	manifest *outfile.File
	done     func() // of the cleanup

	files  map[fileKey]*file
	server rpc.Server // of the transaction at hand
	addr   netip.Addr // of it
	first  rpc.Server // of the first file
	mixed  bool       // others are of other servers
	order  []*file
	lost   int // data that was not written because of a limit

	holes    uint64 // bytes of them that may still be written
	given    bool   // by Options
	packed   int
	regions  int
	pieces   int
	full     bool // no more pieces are followed
	open     [maxOpen]*store
	nextOpen int
	buf      [regionSize]byte
	walk     ops.FileWalk // of the COMPOUND at hand
	act      ops.Act      // scratch
	attrs    nfs4.Attrs   // scratch
}

// fileKey identifies a file: handles mean something to their server only.
type fileKey struct {
	server rpc.Server
	handle string
}

type file struct {
	fileKey
	address   netip.Addr // of the server
	store     store
	size      uint64
	sizeKnown bool
	known     spans
	read      uint64
	written   uint64
	carried   uint64 // bytes in the store, or more
	note      string
}

// Carried sets the size of the capture in bytes, before Close. Unless Options.Holes
// is set, as many bytes that were not seen may be written as zeros.
func (x *Extractor) Carried(n uint64) {
	if !x.given {
		x.holes = n
	}
}

// Packed is how many files have been written without their holes.
func (x *Extractor) Packed() int { return x.packed }

// Add takes the data of a transaction.
func (x *Extractor) Add(v *rpc.View) error {
	if v.Tx.Connection != nil {
		x.server, x.addr = rpc.ServerOf(v.Tx), v.Tx.Server().Addr
	}
	if _, ok := v.Args().(*nfs4.CompoundArgs); ok {
		return x.compound(v)
	}
	if v.Status() == "" { // the reply is not there, or is cut before it says what became of the call
		return nil
	}
	// What is behind the place at which the capture cut a message is zero: it is no offset, and no size. Behind the length of data there is nothing.
	switch a := v.Args().(type) {
	case *nfs2.Readargs:
		if r, ok := v.Result().(*nfs2.Readres); ok && r.Status == nfs2.NFS_OK {
			return x.placed(v, v.ArgsErr == nil, a.File[:], uint64(a.Offset), r.Reply.Data, false)
		}
	case *nfs2.Writeargs:
		if !v.StatusFailed() {
			return x.placed(v, v.ArgsErr == nil || a.Data.Length > 0, a.File[:], uint64(a.Offset), a.Data, true)
		}
	case *nfs3.READ3args:
		return x.read3(v, a)
	case *nfs3.WRITE3args:
		if r, ok := v.Result().(*nfs3.WRITE3res); ok && r.Status == nfs3.NFS3_OK {
			err := x.placed(v, v.ArgsErr == nil || a.Data.Length > 0, a.File.Data, a.Offset, a.Data, true)
			x.attr3(v, a.File.Data, &r.Resok.FileWcc.After)
			return err
		}
	case *nfs3.SETATTR3args:
		if !v.StatusFailed() && v.ArgsErr == nil && a.NewAttributes.Size.SetIt {
			x.truncate(a.Object.Data, a.NewAttributes.Size.Size)
		}
	case *nfs3.GETATTR3args:
		if r, ok := v.Result().(*nfs3.GETATTR3res); ok && r.Status == nfs3.NFS3_OK {
			x.size3(v, a.Object.Data, r.Resok.ObjAttributes.Size)
		}
	}
	return nil
}

func (x *Extractor) read3(v *rpc.View, a *nfs3.READ3args) error {
	r, ok := v.Result().(*nfs3.READ3res)
	if !ok || r.Status != nfs3.NFS3_OK {
		return nil
	}
	known := v.ArgsErr == nil && (v.ResultErr == nil || r.Resok.Data.Length > 0)
	err := x.placed(v, known, a.File.Data, a.Offset, r.Resok.Data, false)
	x.attr3(v, a.File.Data, &r.Resok.FileAttributes)
	if r.Resok.Eof && v.ArgsErr == nil {
		x.atLeast(a.File.Data, a.Offset+uint64(r.Resok.Count), true)
	}
	return err
}

// attr3 takes the size in attributes, if there are some.
func (x *Extractor) attr3(v *rpc.View, handle []byte, a *nfs3.PostOpAttr) {
	if a.AttributesFollow {
		x.size3(v, handle, a.Attributes.Size)
	}
}

// size3 takes a size in results, if it was captured.
func (x *Extractor) size3(v *rpc.View, handle []byte, size uint64) {
	if v.ResultErr == nil || size > 0 {
		x.settle(handle, size)
	}
}

// compound takes the data of a COMPOUND, as far as its operations succeeded. Data
// belong to the current file handle, if it is known.
func (x *Extractor) compound(v *rpc.View) error {
	var failure error
	x.walk.Reset()
	list := v.Operations()
	for i := range list {
		o := &list[i]
		if o.Result == nil || o.Code != 0 {
			return failure // nothing that follows was executed
		}
		if err := x.operation(v, o, x.walk.Current.Handle); err != nil {
			failure = err
		}
		x.walk.Step(o.Number, o.Args, o.Result)
	}
	return failure
}

// operation takes one that succeeded, on a file whose handle may be nil.
func (x *Extractor) operation(v *rpc.View, o *rpc.Operation, file []byte) error {
	switch a := o.Args.(type) {
	case *nfs4.READ4args:
		r, ok := o.Result.(*nfs4.READ4res)
		if !ok {
			return nil
		}
		err := x.data(v, file, a.Offset, r.Resok4.Data, false)
		if r.Resok4.Eof {
			x.atLeast(file, a.Offset+uint64(r.Resok4.Data.Length), true)
		}
		return err
	case *nfs4.WRITE4args:
		return x.data(v, file, a.Offset, a.Data, true)
	case *nfs4.SETATTR4args:
		if x.attrs.Decode(&a.ObjAttributes) == nil && a.ObjAttributes.Attrmask.Has(nfs4.FATTR4_SIZE) {
			x.truncate(file, x.attrs.Size)
		}
	case *nfs4.GETATTR4args:
		if r, ok := o.Result.(*nfs4.GETATTR4res); ok && r.Resok4.ObjAttributes.Attrmask.Has(nfs4.FATTR4_SIZE) && x.attrs.Decode(&r.Resok4.ObjAttributes) == nil {
			x.settle(file, x.attrs.Size)
		}
	default:
		if e := ops.Operation(o.Number); e != nil && a != nil {
			if e.Act(a, &x.act); x.act.Class == ops.Changes && x.act.Ranged {
				x.changed(file, o.Name) // by what is not in the call
			}
		}
	}
	return nil
}

// placed is data for a call of NFSv2 or NFSv3. known says that its offset and the length of the data were captured.
func (x *Extractor) placed(v *rpc.View, known bool, handle []byte, offset uint64, d xdr.Data, write bool) error {
	if known {
		return x.data(v, handle, offset, d, write)
	}
	if len(bytes.Trim(handle, "\x00")) == 0 { // cut as well: those of NFSv2 have 32 bytes anyway
		return nil
	}
	f := x.of(handle, true)
	if f == nil {
		return nil
	}
	f.note = missing
	_, err := x.openStore(&f.store) // also if there is nothing else of it: it is listed
	return err
}

// missing is the note on a file of which not all data were captured.
const missing = "data missing from the capture"

// data writes the bytes of a READ or WRITE.
func (x *Extractor) data(v *rpc.View, handle []byte, offset uint64, d xdr.Data, write bool) error {
	f := x.of(handle, true)
	if f == nil {
		return nil
	}
	b := d.Inline
	if d.Chunk != 0 {
		if write {
			b = v.Tx.CallData(d.Chunk - 1)
		} else {
			b = v.Tx.ReplyData(d.Chunk - 1)
		}
		if len(b) > int(d.Length) {
			b = b[:d.Length]
		}
	}
	if write {
		f.written += uint64(len(b))
	} else {
		f.read += uint64(len(b))
	}
	if uint64(len(b)) < uint64(d.Length) {
		f.note = missing
	}
	if len(b) == 0 {
		_, err := x.openStore(&f.store)
		return err
	}
	if offset > maxOffset {
		f.note = "data beyond the offset that is extracted"
		_, err := x.openStore(&f.store)
		return err
	}
	if x.crowded() {
		f.note = "more pieces than are followed"
		x.lost++
		return nil
	}
	ok, err := x.write(&f.store, offset, b)
	if err != nil {
		return err
	}
	if !ok {
		f.note = "more pieces than are followed"
		x.lost++
		return nil
	}
	f.carried += uint64(len(b))
	x.pieces += f.known.add(offset, offset+uint64(len(b)))
	f.size = max(f.size, offset+uint64(len(b)))
	return nil
}

// crowded reports whether there are too many pieces of files to follow more.
func (x *Extractor) crowded() bool {
	if x.full || x.pieces < maxPieces {
		return x.full
	}
	x.pieces = 0
	for _, f := range x.order {
		x.pieces += len(f.known.merge()) + len(f.store.data.merge())
	}
	x.full = x.pieces >= maxPieces-maxPieces/8
	return x.full
}

// truncate sets the size of a file, as SETATTR does: data beyond it is gone, and new space reads as zeros.
func (x *Extractor) truncate(handle []byte, size uint64) {
	f := x.of(handle, size == 0)
	if f == nil {
		return
	}
	if size > f.size && f.sizeKnown {
		x.pieces += f.known.add(f.size, size)
	}
	x.pieces -= f.known.cut(size)
	f.size, f.sizeKnown = size, true
	_ = x.resize(&f.store, min(size, maxOffset))
}

// settle records the size that the server reports.
func (x *Extractor) settle(handle []byte, size uint64) {
	f := x.of(handle, false)
	if f == nil {
		return
	}
	if size < f.size {
		x.pieces -= f.known.cut(size)
	}
	f.size, f.sizeKnown = size, true
}

func (x *Extractor) atLeast(handle []byte, size uint64, end bool) {
	if f := x.of(handle, false); f != nil {
		f.size = max(f.size, size)
		if end && f.size == size {
			f.sizeKnown = true
		}
	}
}

func (x *Extractor) changed(handle []byte, how string) {
	if f := x.of(handle, false); f != nil {
		x.pieces -= f.known.cut(0)
		f.note = "changed by the server: " + how
	}
}

// of returns the file of a handle; nil if there is none, or too many.
func (x *Extractor) of(handle []byte, make bool) *file {
	if len(handle) == 0 {
		return nil
	}
	f := x.files[fileKey{x.server, string(handle)}]
	if f == nil && make {
		if len(x.order) >= maxFiles {
			x.lost++
			return nil
		}
		f = &file{fileKey: fileKey{x.server, string(handle)}, address: x.addr}
		f.store.path = filepath.Join(x.temp, fmt.Sprint(len(x.order)))
		if x.files[f.fileKey] = f; len(x.order) == 0 {
			x.first = x.server
		}
		x.mixed = x.mixed || x.server != x.first
		x.order = append(x.order, f)
	}
	return f
}

const forever = ^uint64(0)

// list tells where the holes of a file are.
func (f *file) list(e *Entry) {
	var total uint64
	f.known.holes(max(f.size, f.store.length), func(h span) bool {
		total += h.to - h.from
		if len(e.Holes) < maxHoles {
			e.Holes = append(e.Holes, Hole{h.from, h.to - h.from})
		} else {
			e.MoreHoles++
		}
		return true
	})
	if len(e.Holes) == 0 {
		return
	}
	note := fmt.Sprintf("%d bytes were not seen, from %d on", total, e.Holes[0].Offset)
	if n := len(e.Holes) + e.MoreHoles; n > 1 {
		note = fmt.Sprintf("%d bytes were not seen, in %d holes, the first at %d", total, n, e.Holes[0].Offset)
	}
	if e.Packed {
		note += "; the file is packed: what was seen is in it without the holes"
	}
	if e.Note != "" {
		note = e.Note + "; " + note
	}
	e.Note = note
}
