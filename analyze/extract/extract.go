// Package extract puts the contents of files together again from the data of
// READ and WRITE, and writes them below a directory.
//
// DIR/PATH is a file whose path is known from the capture, as seen from the
// root of what was mounted (with NFSv4, from the first handle whose name was
// not captured). Files without a known name are in DIR/by-handle/HANDLE.
// DIR/manifest.ndjson says of each file how much of it was seen.
package extract

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

// Entry is a line of the manifest.
type Entry struct {
	Path         string `json:"path"`       // below the directory
	FileHandle   string `json:"filehandle"` // hexadecimal
	Size         uint64 `json:"size"`       // bytes, as far as it is known
	Covered      uint64 `json:"covered"`    // bytes of them whose contents were seen
	MD5          string `json:"md5"`        // of the file as written here
	Complete     bool   `json:"complete"`   // the size is certain and all of it is covered
	ReadBytes    uint64 `json:"read_bytes"`
	WrittenBytes uint64 `json:"written_bytes"`
	Note         string `json:"note,omitempty"`
	// CapturedPath is the path in the capture, where Path is another: a name had
	// characters that do not belong into the name of a file, or was taken.
	CapturedPath string `json:"captured_path,omitempty"`
}

// maxFiles bounds the files that are written.
const maxFiles = 1 << 16

// maxOffset bounds the offset of data that is written: a hostile offset must
// not make a file that no file system can hold.
const maxOffset = 1 << 42

// Extractor writes files.
type Extractor struct {
	dir      string
	root     *os.Root // the directory; nil at the end
	temp     string   // below it
	outputs  *outfile.Files
	manifest *outfile.File
	done     func() // of the cleanup

	files map[string]*file
	order []*file
	lost  int // data that was not written because of a limit
}

type file struct {
	handle    string
	root      *os.Root
	temp      string // below root
	size      uint64
	sizeKnown bool
	spans     []span
	read      uint64
	written   uint64
	note      string
}

type span struct{ from, to uint64 }

// Add takes the data of a transaction.
func (x *Extractor) Add(v *rpc.View) error {
	switch a := v.Args.(type) {
	case *nfs2.Readargs:
		if r, ok := v.Result.(*nfs2.Readres); ok && r.Status == nfs2.NFS_OK {
			return x.data(v, a.File[:], uint64(a.Offset), r.Reply.Data, false)
		}
	case *nfs2.Writeargs:
		if !v.Failed() && v.Tx.Reply.Seen() {
			return x.data(v, a.File[:], uint64(a.Offset), a.Data, true)
		}
	case *nfs3.READ3args:
		if r, ok := v.Result.(*nfs3.READ3res); ok && r.Status == nfs3.NFS3_OK {
			err := x.data(v, a.File.Data, a.Offset, r.Resok.Data, false)
			x.attr3(a.File.Data, &r.Resok.FileAttributes)
			if r.Resok.Eof {
				x.atLeast(a.File.Data, a.Offset+uint64(r.Resok.Count), true)
			}
			return err
		}
	case *nfs3.WRITE3args:
		if r, ok := v.Result.(*nfs3.WRITE3res); ok && r.Status == nfs3.NFS3_OK {
			d := a.Data
			err := x.data(v, a.File.Data, a.Offset, d, true)
			x.attr3(a.File.Data, &r.Resok.FileWcc.After)
			return err
		}
	case *nfs3.SETATTR3args:
		if !v.Failed() && v.Tx.Reply.Seen() && a.NewAttributes.Size.SetIt {
			x.truncate(a.Object.Data, a.NewAttributes.Size.Size)
		}
	case *nfs3.GETATTR3args:
		if r, ok := v.Result.(*nfs3.GETATTR3res); ok && r.Status == nfs3.NFS3_OK {
			x.settle(a.Object.Data, r.Resok.ObjAttributes.Size)
		}
	case *nfs4.CompoundArgs:
		return x.compound(v)
	}
	return nil
}

func (x *Extractor) attr3(handle []byte, a *nfs3.PostOpAttr) {
	if a.AttributesFollow {
		x.settle(handle, a.Attributes.Size)
	}
}

func (x *Extractor) compound(v *rpc.View) error {
	var current []byte
	var failure error
	var attrs nfs4.Attrs
	for _, o := range v.Operations() {
		ok := o.Result != nil && o.Code == 0
		switch a := o.Args.(type) {
		case *nfs4.PUTFH4args:
			current = a.Object
		case *nfs4.LOOKUP4args, *nfs4.OPEN4args, *nfs4.CREATE4args:
			current = nil
		case *nfs4.READ4args:
			if r, is := o.Result.(*nfs4.READ4res); is && ok {
				if err := x.data(v, current, a.Offset, r.Resok4.Data, false); err != nil {
					failure = err
				}
				if r.Resok4.Eof {
					x.atLeast(current, a.Offset+uint64(r.Resok4.Data.Length), true)
				}
			}
		case *nfs4.WRITE4args:
			if ok {
				if err := x.data(v, current, a.Offset, a.Data, true); err != nil {
					failure = err
				}
			}
		case *nfs4.SETATTR4args:
			if ok && attrs.Decode(&a.ObjAttributes) == nil && a.ObjAttributes.Attrmask.Has(nfs4.FATTR4_SIZE) {
				x.truncate(current, attrs.Size)
			}
		case *nfs4.ALLOCATE4args, *nfs4.DEALLOCATE4args, *nfs4.COPY4args, *nfs4.CLONE4args, *nfs4.WRITE_SAME4args:
			if ok {
				x.changed(current, o.Name)
			}
		}
		switch r := o.Result.(type) {
		case *nfs4.GETFH4res:
			if ok {
				current = r.Resok4.Object
			}
		case *nfs4.GETATTR4res:
			if ok && r.Resok4.ObjAttributes.Attrmask.Has(nfs4.FATTR4_SIZE) && attrs.Decode(&r.Resok4.ObjAttributes) == nil {
				x.settle(current, attrs.Size)
			}
		}
	}
	return failure
}

// of returns the file of a handle; nil if there is none, or too many.
func (x *Extractor) of(handle []byte, make bool) *file {
	if len(handle) == 0 {
		return nil
	}
	f := x.files[string(handle)]
	if f == nil && make {
		if len(x.order) >= maxFiles {
			x.lost++
			return nil
		}
		f = &file{handle: string(handle), root: x.root, temp: filepath.Join(x.temp, fmt.Sprint(len(x.order)))}
		x.files[f.handle] = f
		x.order = append(x.order, f)
	}
	return f
}

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
			b = v.Tx.Data(transaction.WriteList, d.Chunk-1)
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
		f.note = "data missing from the capture"
	}
	if len(b) == 0 {
		return f.touch()
	}
	if offset > maxOffset {
		f.note = "data beyond the offset that is extracted"
		return nil
	}
	w, err := f.open()
	if err != nil {
		return err
	}
	_, err = w.WriteAt(b, int64(offset))
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	f.cover(offset, offset+uint64(len(b)))
	f.size = max(f.size, offset+uint64(len(b)))
	return nil
}

// open opens the file, which has no name of its own yet.
func (f *file) open() (*os.File, error) {
	return f.root.OpenFile(f.temp, os.O_CREATE|os.O_WRONLY, 0o666)
}

// resize cuts or extends the file.
func (f *file) resize(size int64) {
	if w, err := f.open(); err == nil {
		_ = w.Truncate(size)
		_ = w.Close()
	}
}

func (f *file) touch() error {
	w, err := f.open()
	if err != nil {
		return err
	}
	return w.Close()
}

// truncate sets the size of a file, as SETATTR does: what lies beyond it is
// gone, and what comes to be within it reads as zeros.
func (x *Extractor) truncate(handle []byte, size uint64) {
	f := x.of(handle, size == 0)
	if f == nil {
		return
	}
	if size > f.size && f.sizeKnown {
		f.cover(f.size, size)
	}
	f.uncover(size)
	f.size, f.sizeKnown = size, true
	if f.touch() == nil && size <= maxOffset {
		f.resize(int64(size))
	}
}

// settle notes the size that the server reports.
func (x *Extractor) settle(handle []byte, size uint64) {
	f := x.of(handle, false)
	if f == nil {
		return
	}
	if size < f.size {
		f.uncover(size)
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
		f.spans = f.spans[:0]
		f.note = "changed by the server: " + how
	}
}

func (f *file) cover(from, to uint64) {
	if from >= to {
		return
	}
	i := sort.Search(len(f.spans), func(i int) bool { return f.spans[i].to >= from })
	j := i
	for j < len(f.spans) && f.spans[j].from <= to {
		from, to = min(from, f.spans[j].from), max(to, f.spans[j].to)
		j++
	}
	if j > i {
		f.spans[i] = span{from, to}
		f.spans = append(f.spans[:i+1], f.spans[j:]...)
		return
	}
	f.spans = append(f.spans, span{})
	copy(f.spans[i+1:], f.spans[i:])
	f.spans[i] = span{from, to}
}

// uncover forgets what was seen from an offset on.
func (f *file) uncover(from uint64) {
	for i := range f.spans {
		if f.spans[i].to > from {
			n := i
			if f.spans[i].from < from {
				f.spans[i].to = from
				n = i + 1
			}
			f.spans = f.spans[:n]
			return
		}
	}
}
