package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// attempt is how long one attempt at a small object may take. Larger ones have more time by their size.
const (
	attempt     = time.Minute
	slowest     = 256 << 10 // bytes per second
	uploadChunk = 5 << 20   // the least that S3 takes
	listPage    = 1000
	fileListing = 1 << 16 // a page is allocated at once, 8 bytes for each object
)

// Store is a place for results: a bucket, or a folder of one.
type Store struct {
	url    string
	bucket *blob.Bucket
	prefix string
	opt    Options
	page   int
	local  string // the folder of this machine; empty for a bucket
}

// Open opens a store: s3://bucket/folder, gs://bucket/folder, file:///folder, a path of a local folder (made if there
// is none, unless opt.Existing), mem://. Options of the store follow a question mark: region, endpoint, use_path_style, anonymous.
func Open(ctx context.Context, name string, opt Options) (*Store, error) {
	u, err := parse(name)
	if err != nil {
		return nil, err
	}
	s := &Store{url: u.String(), opt: opt.filled(), page: listPage}
	switch u.Scheme {
	case "file":
		s.local, s.page = filepath.FromSlash(u.Path), fileListing // it walks the whole folder for each page
		if err := folder(s.local, opt.Existing); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	default:
		s.prefix = strings.Trim(u.Path, "/")
		if s.prefix != "" {
			s.prefix += "/"
		}
	}
	s.bucket, err = openBucket(ctx, u)
	return s, err
}

// folder makes a local folder, or demands one.
func folder(path string, existing bool) error {
	switch info, err := os.Stat(path); {
	case err == nil && !info.IsDir():
		return errors.New("is not a folder: a store is a folder, or a bucket such as s3://bucket/folder")
	case err == nil, !existing && os.IsNotExist(err):
		return os.MkdirAll(path, 0o777)
	case os.IsNotExist(err):
		return errors.New("there is no such folder")
	default:
		return err
	}
}

// URL names the store.
func (s *Store) URL() string { return s.url }

// Close ends all that is under way.
func (s *Store) Close() error { return s.bucket.Close() }

// parse reads the URL of a store or an object. Paths become URLs.
func parse(name string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok {
		if name == "" {
			return nil, fmt.Errorf("no store is named")
		}
		p, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		p = filepath.ToSlash(p)
		if strings.HasSuffix(filepath.ToSlash(name), "/") && p != "/" {
			p += "/"
		}
		return &url.URL{Scheme: "file", Path: p}, nil
	}
	u := &url.URL{Scheme: scheme}
	switch scheme {
	case "file", "s3", "gs", "mem":
	default:
		return nil, fmt.Errorf("%s: stores are file://, s3:// and gs://, not %s://", name, scheme)
	}
	var err error
	var query string
	rest, query, _ = strings.Cut(rest, "?")
	if u.Host, u.Path, ok = strings.Cut(rest, "/"); ok {
		u.Path = "/" + u.Path
	}
	if u.Path, err = url.PathUnescape(u.Path); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if strings.ContainsAny(u.Host, "%@:\\ ") || scheme == "file" && u.Host != "" && u.Host != "localhost" {
		return nil, fmt.Errorf("%s: a local folder is written file:///folder, a bucket s3://bucket/folder", name)
	}
	if scheme == "file" {
		if u.Host = ""; !strings.HasPrefix(u.Path, "/") {
			return nil, fmt.Errorf("%s: the path is not absolute: file:///folder", name)
		}
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == ".." || part == "." {
			return nil, fmt.Errorf("%s: %q is not a folder of a store", name, part)
		}
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for k := range q {
		switch k {
		case "region", "endpoint", "use_path_style", "anonymous", "hostname_immutable", "access_id":
		default:
			return nil, fmt.Errorf("%s: option %q is not region, endpoint, use_path_style or anonymous", name, k)
		}
	}
	u.RawQuery = q.Encode()
	return u, nil
}

// openBucket opens the bucket of a URL. For file it is the folder.
func openBucket(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	b := url.URL{Scheme: u.Scheme, Host: u.Host}
	q := u.Query()
	switch u.Scheme {
	case "file":
		b.Path = u.Path
		q = url.Values{"metadata": {"skip"}, "no_tmp_dir": {"1"}}
	case "s3":
		// A server of one's own seldom has a name for each bucket.
		own := q.Has("endpoint") || os.Getenv("AWS_ENDPOINT_URL") != "" || os.Getenv("AWS_ENDPOINT_URL_S3") != ""
		if own && !q.Has("use_path_style") {
			q.Set("use_path_style", "true")
		}
		// Many such servers know no checksums of objects, and the client would print a line for each object that has none.
		if own {
			q.Set("response_checksum_validation", "when_required")
		}
	}
	b.RawQuery = q.Encode()
	bucket, err := blob.OpenBucket(ctx, b.String())
	if err != nil {
		return nil, fmt.Errorf("%s://%s: %w", u.Scheme, u.Host, err)
	}
	return bucket, nil
}

// Object is an object of a store.
type Object struct {
	Name     string // relative to the store
	Size     int64
	Modified time.Time
}

// List yields the objects whose names begin with prefix, in the order of their names. An error comes last.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return s.list(ctx, prefix, "")
}

// Folders yields the folders below a prefix that ends with a slash, as objects whose names end with one.
func (s *Store) Folders(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o, err := range s.list(ctx, prefix, "/") {
			if err == nil && !strings.HasSuffix(o.Name, "/") {
				continue
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

func (s *Store) list(ctx context.Context, prefix, delimiter string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		token := blob.FirstPageToken
		for token != nil {
			var page []*blob.ListObject
			var next []byte
			err := s.opt.try(ctx, s.url+": list of "+prefix, 2*attempt, func(ctx context.Context) (err error) {
				page, next, err = s.bucket.ListPage(ctx, token, s.page, &blob.ListOptions{Prefix: s.prefix + prefix, Delimiter: delimiter})
				return s.place(err)
			})
			if err != nil {
				yield(Object{}, err)
				return
			}
			for _, o := range page {
				if !yield(Object{Name: strings.TrimPrefix(o.Key, s.prefix), Size: o.Size, Modified: o.ModTime}, nil) {
					return
				}
			}
			token = next
		}
	}
}

// place is the error of an operation that reads no object.
func (s *Store) place(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return &placeError{err.Error(), s.local != ""}
	}
	return err
}

// ReadSmall reads a whole object of at most most bytes: ErrNotFound, SizeError.
func (s *Store) ReadSmall(ctx context.Context, name string, most int64) (b []byte, err error) {
	if s.local != "" { // opening a pipe would wait, whatever signal comes
		if info, err := os.Stat(filepath.Join(s.local, filepath.FromSlash(name))); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: %w: it is not a regular file", name, ErrNotFound)
		}
	}
	err = s.opt.try(ctx, s.url+": "+name, attempt+time.Duration(most/slowest)*time.Second, func(ctx context.Context) error {
		r, err := s.bucket.NewReader(ctx, s.prefix+name, nil)
		if err != nil {
			return err
		}
		defer r.Close()
		if r.Size() > most {
			return &SizeError{Size: r.Size(), Most: most}
		}
		b, err = io.ReadAll(io.LimitReader(r, most+1))
		if err == nil && int64(len(b)) > most {
			return &SizeError{Most: most}
		}
		return err
	})
	return b, err
}

// Exists reports whether there is an object of that name.
func (s *Store) Exists(ctx context.Context, name string) (ok bool, err error) {
	err = s.opt.try(ctx, s.url+": "+name, attempt, func(ctx context.Context) (err error) {
		ok, err = s.bucket.Exists(ctx, s.prefix+name)
		return err
	})
	return ok, err
}

// Written is what WriteWhole has written.
type Written struct {
	Size   int64
	SHA256 string // in hex
}

// WriteSmall writes an object whole or not at all, in place of one of the same name.
func (s *Store) WriteSmall(ctx context.Context, name string, b []byte) (Written, error) {
	return s.WriteWhole(ctx, name, bytes.NewReader(b))
}

// WriteWhole writes an object whole or not at all, in place of one of the same name. It reads r again from its
// beginning for each attempt. In a local folder an object that is not whole yet is a file NAME.….tmp, which List yields
// as well; whoever removes it, since a killed process may have left it behind, causes another attempt.
func (s *Store) WriteWhole(ctx context.Context, name string, r io.ReadSeeker) (w Written, err error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return w, err
	}
	err = s.opt.try(ctx, s.url+": "+name, attempt+time.Duration(size/slowest)*time.Second, func(ctx context.Context) error {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// Few buffers: several workers may share a small machine.
		out, err := s.bucket.NewWriter(ctx, s.prefix+name, &blob.WriterOptions{
			BufferSize: uploadChunk, MaxConcurrency: 1, ContentType: "application/octet-stream",
		})
		if err != nil {
			return s.place(err)
		}
		h := sha256.New()
		src := &sourceReader{r: r}
		n, err := io.Copy(out, io.TeeReader(src, h))
		if err == nil && n != size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			cancel() // nothing is written then
			out.Close()
			if src.err != nil {
				err = &sourceError{src.err}
			}
			return s.place(err)
		}
		if err := out.Close(); err != nil {
			return s.place(err)
		}
		w = Written{Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}
		return nil
	})
	return w, err
}

// sourceReader keeps the error of what is written, which no store can mend.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

// Remove removes an object. That there is none is no error.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.opt.try(ctx, s.url+": removal of "+name, attempt, func(ctx context.Context) error {
		err := s.bucket.Delete(ctx, s.prefix+name)
		if gcerrors.Code(err) == gcerrors.NotFound {
			return nil
		}
		return err
	})
}

// RemovePartial removes what killed processes have written of objects whose names begin with prefix: see WriteWhole.
// Other stores than a local folder show nothing of that.
func (s *Store) RemovePartial(ctx context.Context, prefix string) error {
	if s.local == "" {
		return nil
	}
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return err
		}
		if !strings.HasSuffix(o.Name, ".tmp") {
			continue
		}
		if err := s.Remove(ctx, o.Name); err != nil {
			return err
		}
	}
	return nil
}
