package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// quick are Options that do not wait long.
func quick() Options {
	return Options{Patience: 3 * time.Minute, first: time.Millisecond, longest: 5 * time.Millisecond}
}

func TestNames(t *testing.T) {
	cases := []struct{ name, want string }{
		{"/a/b", "file:///a/b"},
		{"file:///a/b/", "file:///a/b/"},
		{"s3://bucket", "s3://bucket"},
		{"s3://bucket/a%20b/*.pcap?region=x", "s3://bucket/a%20b/%2A.pcap?region=x"},
		{"gs://bucket/x", "gs://bucket/x"},
		{"", ""},
		{"file://host/x", ""},
		{"file:x", ""},
		{"s3://user:pass@bucket/x", ""},
		{"s3://bucket/../x", ""},
		{"s3://bucket/a/%2e%2e/x", ""},
		{"s3://bucket/x?profile=admin", ""},
		{"http://host/x", ""},
	}
	for _, c := range cases {
		u, err := parse(c.name)
		got := ""
		if err == nil {
			got = strings.Replace(u.String(), "/*", "/%2A", 1)
		}
		if c.name == "file:x" { // a file of that name
			if err != nil || u.Scheme != "file" {
				t.Error(c.name, got, err)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s: %q (%v), not %q", c.name, got, err, c.want)
		}
	}
}

// server is a server of S3, as far as these tests need it. fail, if it returns a status, is what it answers.
type server struct {
	objects map[string]string
	fail    func(r *http.Request) int
	cut     func(r *http.Request) int // bytes of a body after which the connection is closed; 0: never
	calls   atomic.Int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	if s.fail != nil {
		if code := s.fail(r); code != 0 {
			w.WriteHeader(code)
			return
		}
	}
	key := strings.TrimPrefix(r.URL.Path, "/caps/")
	switch r.Method {
	case http.MethodPut:
		b, _ := io.ReadAll(r.Body)
		s.objects[key] = string(b)
		w.Header().Set("ETag", `"x"`)
	case http.MethodGet:
		x, ok := s.objects[key]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", `"`+x[:1]+`"`)
		at := time.Unix(1e9, 0)
		if n := s.cut; n != nil {
			if most := n(r); most > 0 {
				w = &cutting{w, most}
			}
		}
		http.ServeContent(w, r, "", at, strings.NewReader(x))
	}
}

type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) > c.left {
		c.ResponseWriter.Write(p[:c.left]) //nolint:errcheck // it is cut anyway
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// serve starts a server. The URL of its bucket follows from a name.
func serve(t *testing.T, s *server) func(string) string {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_MAX_ATTEMPTS": "1", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
	} {
		t.Setenv(k, v)
	}
	return func(name string) string { return "s3://caps/" + name + "?endpoint=" + h.URL }
}

// TestReadAgain reads an object from a server that is away, and that cuts connections.
func TestReadAgain(t *testing.T) {
	const size = 300 << 10
	body := strings.Repeat("0123456789abcdef", size/16)
	n := 0
	s := &server{objects: map[string]string{"a.pcap": body}}
	s.fail = func(*http.Request) int {
		if n++; n%3 == 1 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	s.cut = func(*http.Request) int { return 100_000 }
	url := serve(t, s)
	in := NewInputs(quick())
	defer in.Close()
	f := layout.File{URL: url("a.pcap"), Size: size, ETag: `"0"`}
	r, err := in.Open(t.Context(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || string(got) != body {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if s.calls.Load() < 5 {
		t.Errorf("%d requests: nothing was tried again", s.calls.Load())
	}
	// Another object of the same size takes its place while it is read.
	s.cut = func(*http.Request) int {
		s.objects["a.pcap"] = "X" + body[1:]
		return 50_000
	}
	r2, err := in.Open(t.Context(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r2.Close()
	if _, err := io.ReadAll(r2); !errors.Is(err, ErrChanged) {
		t.Errorf("a changed object: %v", err)
	}
	if _, err := in.Open(t.Context(), layout.File{URL: url("b.pcap"), Size: 1}, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("a removed object: %v", err)
	}
}

// TestWriteAgain writes while the server is away, and gives up after a while.
func TestWriteAgain(t *testing.T) {
	s := &server{objects: map[string]string{}}
	n := 0
	s.fail = func(*http.Request) int {
		if n++; n < 5 {
			return http.StatusInternalServerError
		}
		return 0
	}
	url := serve(t, s)
	out, err := Open(t.Context(), url("results"), quick())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := out.WriteSmall(t.Context(), "x", []byte("abc")); err != nil || s.objects["results/x"] != "abc" {
		t.Errorf("%q, %v", s.objects, err)
	}
	s.fail = func(*http.Request) int { return http.StatusServiceUnavailable }
	short := quick()
	short.Patience = 30 * time.Millisecond
	out2, err := Open(t.Context(), url("results"), short)
	if err != nil {
		t.Fatal(err)
	}
	defer out2.Close()
	if _, err := out2.WriteSmall(t.Context(), "y", []byte("abc")); err == nil {
		t.Error("a server that is away for good is no error")
	}
	s.fail = func(*http.Request) int { return http.StatusForbidden }
	calls := s.calls.Load()
	if _, err := out.WriteSmall(t.Context(), "y", []byte("abc")); err == nil || s.calls.Load() != calls+1 {
		t.Errorf("what is forbidden was tried %d times: %v", s.calls.Load()-calls, err)
	}
}

func TestLocal(t *testing.T) {
	dir := t.TempDir()
	out, err := Open(t.Context(), dir, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx := t.Context()
	if _, err := out.ReadSmall(ctx, "a/b", 10); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	w, err := out.WriteWhole(ctx, "a/b", strings.NewReader("abc"))
	if err != nil || w.Size != 3 || w.SHA256 != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error(w, err)
	}
	if b, err := out.ReadSmall(ctx, "a/b", 3); err != nil || string(b) != "abc" {
		t.Error(b, err)
	}
	if _, err := out.ReadSmall(ctx, "a/b", 2); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	// What fails halfway leaves nothing, and what was there stays.
	if _, err := out.WriteWhole(ctx, "a/b", &failing{bytes.NewReader(make([]byte, 1<<20))}); err == nil {
		t.Error("no error")
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := out.WriteWhole(gone, "a/b", strings.NewReader("abcd")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var names []string
	for o, err := range out.List(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, o.Name)
	}
	if !slices.Equal(names, []string{"a/b"}) {
		t.Error(names)
	}
	for range 2 {
		if err := out.Remove(ctx, "a/b"); err != nil {
			t.Error(err)
		}
	}
	if ok, err := out.Exists(ctx, "a/b"); ok || err != nil {
		t.Error(ok, err)
	}
	// A pipe that nobody writes to.
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a"), 0o777), syscall.Mkfifo(filepath.Join(dir, "a", "b"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := out.ReadSmall(ctx, "a/b", 10); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

type failing struct{ *bytes.Reader }

func (f *failing) Read(p []byte) (int, error) {
	if f.Len() < 1<<19 {
		return 0, errors.New("a broken disk")
	}
	return f.Reader.Read(p)
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nfs-7/a-1.pcap", "nfs-7/a-10.pcap.zst", "nfs-7/a-2.pcap", "nfs-8/x y%20\x01.pcap", "nfs-8/deep/b.pcap", "note.txt"} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(name), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "nfs-8", "loop")); err != nil {
		t.Fatal(err)
	}
	in := NewInputs(quick())
	defer in.Close()
	cases := []struct {
		pattern string
		want    []string // taps, and their files
	}{
		{"/*/*.pcap*", []string{"nfs-7: a-1.pcap a-2.pcap a-10.pcap.zst", "nfs-8: x y%20\x01.pcap"}},
		{"/nfs-7/*", []string{"nfs-7: a-1.pcap a-2.pcap a-10.pcap.zst"}},
		{"/*/", nil},
		{"/nfs-8/", []string{"deep: b.pcap", "nfs-8: x y%20\x01.pcap"}},
		{"/nfs-7/a-2.pcap", []string{"nfs-7: a-2.pcap"}},
		{"/nfs-[8]/*/b.pcap", []string{"nfs-8/deep: b.pcap"}},
		{"/none/*", nil},
		{"/nfs-7/a-3.pcap", nil},
		{"/nfs-7", nil},
		{"/nfs-7/[", nil},
	}
	for _, c := range cases {
		list, err := in.Find(t.Context(), dir+c.pattern)
		if (err != nil) != (c.want == nil) {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		taps, files := layout.Group(list, "")
		var got []string
		for _, tap := range taps {
			line := tap + ":"
			for _, f := range files[tap] {
				line += " " + filepath.Base(f.Path())
				if b, err := in.Head(t.Context(), f, 1000); err != nil || string(b) != f.Path() {
					t.Errorf("%s: %q, %v", f.URL, b, err)
				}
			}
			got = append(got, line)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, and not\n%q", c.pattern, got, c.want)
		}
	}
}

// TestChanged reads local files that are changed, cut or removed after they were submitted.
func TestChanged(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.pcap")
	in := NewInputs(quick())
	defer in.Close()
	make := func() layout.File {
		t.Helper()
		if err := os.WriteFile(name, []byte("0123456789"), 0o666); err != nil {
			t.Fatal(err)
		}
		list, err := in.Find(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return list[0].File
	}
	f := make()
	if err := os.Chtimes(name, time.Time{}, f.Modified.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Open(t.Context(), f, 0); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	f = make()
	r, err := in.Open(t.Context(), f, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 8); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); !errors.Is(err, ErrChanged) {
		t.Errorf("%q, %v", b, err)
	}
	r.Close()
	if _, err := r.Read(nil); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	f = make()
	if r, err = in.Open(t.Context(), f, 0); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	os.Remove(name)
	if _, err := io.ReadAll(r); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := os.Mkdir(name, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Open(t.Context(), f, 0); err == nil {
		t.Error("a folder was opened")
	}
}

// TestReach: a store that has never answered is given up soon, and that nothing comes is said meanwhile. One that has answered is
// waited for.
func TestReach(t *testing.T) {
	var mu sync.Mutex
	var said []string
	opt := Options{Patience: time.Minute, Reach: 100 * time.Millisecond, first: time.Millisecond, longest: 5 * time.Millisecond, silent: time.Millisecond,
		Log: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, fmt.Sprintf(format, args...))
		}}.filled()
	refused := errors.New("connection refused")
	n := 0
	err := opt.try(t.Context(), "s3://b: x", time.Hour, func(ctx context.Context) error {
		if n++; n == 1 {
			return refused
		}
		<-ctx.Done() // as a library that tries again by itself
		return ctx.Err()
	})
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), "s3://b: x: no answer within 0s: is the address right") {
		t.Error(err)
	}
	mu.Lock()
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "no answer yet") }) {
		t.Errorf("%q", said)
	}
	mu.Unlock()
	if err := opt.try(t.Context(), "s3://b: y", time.Hour, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	began := time.Now()
	if err := opt.try(t.Context(), "s3://b: z", time.Hour, func(context.Context) error {
		if time.Since(began) < 3*opt.Reach {
			return refused
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
