package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// Inputs reads captures by URL. It may be used by several goroutines.
type Inputs struct {
	opt Options

	mu      sync.Mutex
	buckets map[string]*blob.Bucket
}

// NewInputs makes an Inputs.
func NewInputs(opt Options) *Inputs {
	return &Inputs{opt: opt.filled(), buckets: make(map[string]*blob.Bucket)}
}

// Close closes what is open.
func (in *Inputs) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	var errs []error
	for _, b := range in.buckets {
		errs = append(errs, b.Close())
	}
	in.buckets = make(map[string]*blob.Bucket)
	return errors.Join(errs...)
}

// bucket opens a bucket once.
func (in *Inputs) bucket(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	key := u.Scheme + "://" + u.Host + "?" + u.RawQuery
	if b := in.buckets[key]; b != nil {
		return b, nil
	}
	b, err := openBucket(ctx, u)
	if err == nil {
		in.buckets[key] = b
	}
	return b, err
}

// object is one that is to be read, at its store or in a local folder.
type object struct {
	url    *url.URL
	bucket *blob.Bucket // nil: a local file
}

func (in *Inputs) object(ctx context.Context, name string) (*object, error) {
	u, err := parse(name)
	if err != nil {
		return nil, err
	}
	o := &object{url: u}
	if u.Scheme != "file" {
		o.bucket, err = in.bucket(ctx, u)
	}
	return o, err
}

// open opens it, and says what it is now. A negative length is the rest.
func (o *object) open(ctx context.Context, offset, length int64) (io.ReadCloser, layout.File, error) {
	f := layout.File{URL: o.url.String()}
	if o.bucket == nil {
		return o.openFile(f, offset)
	}
	r, err := o.bucket.NewRangeReader(ctx, strings.TrimPrefix(o.url.Path, "/"), offset, length, nil)
	if err != nil {
		return nil, f, err
	}
	f.Size, f.Modified = r.Size(), r.ModTime()
	var out s3.GetObjectOutput
	if r.As(&out) && out.ETag != nil {
		f.ETag = *out.ETag
	}
	return r, f, nil
}

func (o *object) openFile(f layout.File, offset int64) (io.ReadCloser, layout.File, error) {
	name := filepath.FromSlash(o.url.Path)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, f, ErrNotFound
	case err != nil:
		return nil, f, err
	case !info.Mode().IsRegular(): // opening a pipe would wait
		return nil, f, &os.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	x, err := os.Open(name)
	if err != nil {
		return nil, f, err
	}
	if info, err = x.Stat(); err == nil && offset > 0 {
		_, err = x.Seek(offset, io.SeekStart)
	}
	if err != nil {
		x.Close()
		return nil, f, err
	}
	f.Size, f.Modified = info.Size(), info.ModTime()
	return x, f, nil
}

// same says how an object differs from what it was when it was submitted.
func same(want, now *layout.File) error {
	switch {
	case want.Size != now.Size:
		return fmt.Errorf("%s: %w: it had %d bytes, and has %d", want.URL, ErrChanged, want.Size, now.Size)
	case want.ETag != "" && now.ETag != "" && want.ETag != now.ETag:
		return fmt.Errorf("%s: %w: its ETag was %q, and is %q", want.URL, ErrChanged, want.ETag, now.ETag)
	case (want.ETag == "" || now.ETag == "") && !want.Modified.Equal(now.Modified):
		return fmt.Errorf("%s: %w: it was modified at %s", want.URL, ErrChanged, now.Modified.UTC().Format(time.RFC3339))
	}
	return nil
}

// Open reads a file from an offset to its end. Errors after which it can go on are not seen. If it is not the file
// that was submitted, or is changed while it is read, that is ErrChanged; if it is not there any more, ErrNotFound.
func (in *Inputs) Open(ctx context.Context, f layout.File, offset int64) (*Reader, error) {
	o, err := in.object(ctx, f.URL)
	if err != nil {
		return nil, err
	}
	r := &Reader{ctx: ctx, opt: &in.opt, o: o, want: f, at: offset, retry: backoff{opt: &in.opt, what: f.URL}}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// Reader is an object that is read. Read fails after Close.
type Reader struct {
	ctx    context.Context //nolint:containedctx // io.Reader has none
	opt    *Options
	o      *object
	want   layout.File
	at     int64
	retry  backoff
	src    io.ReadCloser // nil: to be opened again
	cancel context.CancelFunc
	stall  *time.Timer
	closed bool
}

func (r *Reader) open() error {
	for {
		ctx, cancel := context.WithCancel(r.ctx)
		stall := time.AfterFunc(r.opt.stall, cancel)
		src, now, err := r.o.open(ctx, r.at, -1)
		stall.Stop()
		if err == nil {
			if err = same(&r.want, &now); err == nil {
				r.src, r.cancel, r.stall = src, cancel, stall
				return nil
			}
			src.Close()
		}
		cancel()
		if err = r.retry.again(r.ctx, err); err != nil {
			return err
		}
	}
}

func (r *Reader) Read(p []byte) (int, error) {
	for {
		if r.closed {
			return 0, os.ErrClosed
		}
		if err := r.ctx.Err(); err != nil {
			return 0, context.Cause(r.ctx)
		}
		if r.src == nil {
			if err := r.open(); err != nil {
				return 0, err
			}
		}
		r.stall.Reset(r.opt.stall)
		n, err := r.src.Read(p)
		r.stall.Stop()
		if n > 0 {
			r.at += int64(n)
			r.retry.worked()
			return n, nil
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF) && r.at == r.want.Size:
			if err := r.Check(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("it ends after %d of %d bytes: %w", r.at, r.want.Size, io.ErrUnexpectedEOF)
			if r.o.bucket == nil {
				return 0, fmt.Errorf("%s: %w: %w", r.want.URL, ErrChanged, err)
			}
		}
		r.shut()
		if err = r.retry.again(r.ctx, err); err != nil {
			return 0, err
		}
	}
}

// Check finds out whether a local file has changed since it was submitted; also after Close. Objects of a store do not
// change while they are read: they are replaced.
func (r *Reader) Check() error {
	if r.o.bucket != nil {
		return nil
	}
	info, err := os.Stat(filepath.FromSlash(r.o.url.Path))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: %w any more", r.want.URL, ErrNotFound)
	case err != nil:
		return err
	}
	return same(&r.want, &layout.File{Size: info.Size(), Modified: info.ModTime()})
}

func (r *Reader) shut() {
	if r.src != nil {
		r.src.Close()
		r.cancel()
		r.src = nil
	}
}

// Close ends the reading.
func (r *Reader) Close() error {
	r.closed = true
	r.shut()
	return nil
}

// Head reads the first bytes of a file, at most n.
func (in *Inputs) Head(ctx context.Context, f layout.File, n int64) (b []byte, err error) {
	o, err := in.object(ctx, f.URL)
	if err != nil {
		return nil, err
	}
	if n = min(n, f.Size); n == 0 {
		return nil, nil
	}
	err = in.opt.try(ctx, f.URL, attempt, func(ctx context.Context) error {
		r, _, err := o.open(ctx, 0, n)
		if err != nil {
			return err
		}
		defer r.Close()
		b, err = io.ReadAll(io.LimitReader(r, n))
		return err
	})
	return b, err
}

// Unchanged reports whether a file is still what it was when it was submitted.
func (in *Inputs) Unchanged(ctx context.Context, f layout.File) (bool, error) {
	r, err := in.Open(ctx, f, 0)
	switch {
	case err == nil:
		return true, r.Close()
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrChanged):
		return false, nil
	}
	return false, err
}

// MaxFound is how many files the patterns of a job may find.
const MaxFound = 5_000_000

// Find lists the files that a pattern means: an object or a file by its name, or all whose path fits. In a pattern, *
// is any part of one name of the path, [a-z] a character, and in paths of local files ? one, too. A pattern without
// any that ends with a slash means all files in the folder and below it. That there are none is an error.
func (in *Inputs) Find(ctx context.Context, pattern string) (list []layout.Found, err error) {
	u, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(pattern, "/") && !strings.HasSuffix(u.Path, "/") {
		u.Path += "/" // which filepath.Abs has taken off
	}
	fixed := u.Path
	if i := strings.IndexAny(fixed, "*?["); i >= 0 {
		fixed = fixed[:strings.LastIndexByte(fixed[:i], '/')+1]
	}
	if _, err := path.Match(u.Path, ""); err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	add := func(name string, size int64, modified time.Time, etag string) error {
		x := *u
		x.Path = name
		f := layout.Found{File: layout.File{URL: x.String(), Size: size, Modified: modified, ETag: etag}}
		if fixed != u.Path || strings.HasSuffix(u.Path, "/") {
			f.Folder = strings.Trim(strings.TrimPrefix(path.Dir(name), strings.TrimSuffix(fixed, "/")), "/")
		}
		if list = append(list, f); len(list) > MaxFound {
			return fmt.Errorf("%s: more than %d files", pattern, MaxFound)
		}
		return nil
	}
	if u.Scheme == "file" {
		err = findFiles(ctx, u.Path, fixed, add)
	} else {
		err = in.findObjects(ctx, u, strings.TrimPrefix(fixed, "/"), add)
	}
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s: %w fits", pattern, ErrNotFound)
	}
	return list, err
}

// fits reports whether a path is what a pattern means.
func fits(pattern, name string) bool {
	if strings.HasSuffix(pattern, "/") && !strings.ContainsAny(pattern, "*?[") {
		return strings.HasPrefix(name, pattern) && name != pattern
	}
	ok, _ := path.Match(pattern, name)
	return ok || pattern == name
}

func (in *Inputs) findObjects(ctx context.Context, u *url.URL, prefix string, add func(string, int64, time.Time, string) error) error {
	bucket, err := in.bucket(ctx, u)
	if err != nil {
		return err
	}
	token := blob.FirstPageToken
	for token != nil {
		var page []*blob.ListObject
		var next []byte
		err := in.opt.try(ctx, u.String(), 2*attempt, func(ctx context.Context) (err error) {
			page, next, err = bucket.ListPage(ctx, token, listPage, &blob.ListOptions{Prefix: prefix})
			return err
		})
		if err != nil {
			return err
		}
		for _, o := range page {
			if o.IsDir || strings.HasSuffix(o.Key, "/") || !fits(u.Path, "/"+o.Key) {
				continue
			}
			if err := add("/"+o.Key, o.Size, o.ModTime, listedETag(o)); err != nil {
				return err
			}
		}
		token = next
	}
	return nil
}

// findFiles walks local folders, each once, and only those that fit.
func findFiles(ctx context.Context, pattern, fixed string, add func(string, int64, time.Time, string) error) error {
	if fixed == pattern && !strings.HasSuffix(pattern, "/") {
		info, err := os.Stat(filepath.FromSlash(pattern))
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%s: %w", pattern, ErrNotFound)
		case err != nil:
			return err
		case info.IsDir():
			return fmt.Errorf("%s is a folder: a slash at its end means all files in it", pattern)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", pattern)
		}
		return add(pattern, info.Size(), info.ModTime(), "")
	}
	deep := strings.Count(pattern, "/")
	all := strings.HasSuffix(pattern, "/")
	var walk func(dir string) error
	walk = func(dir string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.FromSlash(dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			info, err := os.Stat(filepath.FromSlash(name)) // what a link leads to
			if errors.Is(err, os.ErrNotExist) {
				continue // removed just now, or a link that leads nowhere
			}
			if err != nil {
				return err
			}
			switch {
			case info.IsDir():
				// A link to a folder above would never end.
				if all && e.Type()&os.ModeSymlink != 0 || !all && !folderFits(pattern, name, deep) {
					continue
				}
				if err := walk(name); err != nil {
					return err
				}
			case info.Mode().IsRegular() && fits(pattern, name):
				if err := add(name, info.Size(), info.ModTime(), ""); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := walk(path.Clean(fixed))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w fits", pattern, ErrNotFound)
	}
	return err
}

// folderFits reports whether a folder can hold what fits.
func folderFits(pattern, dir string, deep int) bool {
	n := strings.Count(dir, "/")
	if n >= deep {
		return false
	}
	parts := strings.SplitN(pattern, "/", n+2)
	ok, _ := path.Match(strings.Join(parts[:n+1], "/"), dir)
	return ok
}

// listedETag is the ETag of an object in a list, as far as the store tells.
func listedETag(o *blob.ListObject) string {
	var x types.Object
	if o.As(&x) && x.ETag != nil {
		return *x.ETag
	}
	return ""
}
