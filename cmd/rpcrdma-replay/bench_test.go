package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/replay/bench"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/providers"
)

// benchServer is a client of a server in memory, and the address of the server.
func benchServer(t *testing.T, size uint64) (client.FS, string) {
	t.Helper()
	server, clients, at, err := providers.Pair(providers.Options{Name: "tcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := providers.NewServer(memory.New(memory.Options{Size: size}), providers.ServerOptions{})
	l, err := server.Listen(t.Context(), at, s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := clients.Dial(t.Context(), l.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), clients.Close(), server.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return client.NewV3(client.RPC{Requester: r, Cred: client.Sys("test", 0, 0)}), l.Addr().String()
}

// TestFailedBench: a measurement that failed is a failure of the command, and leaves nothing on the server.
func TestFailedBench(t *testing.T) {
	fs, at := benchServer(t, 300<<10)
	var out, said bytes.Buffer
	status := execute([]string{"bench", at, "--write", "--provider", "tcp", "--job", "write,read", "--size", "4K", "--outstanding", "1", "--file-size", "64M", "--time", "50ms"},
		&cli.Streams{In: strings.NewReader(""), Out: &out, Err: &said})
	if status != 1 || !strings.Contains(said.String(), "NFS3ERR_NOSPC; 1 more were not measured") || !strings.Contains(out.String(), "NFS3ERR_NOSPC") {
		t.Errorf("status %d: %s%s", status, &out, &said)
	}
	top, err := fs.Root(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := fs.Readdir(t.Context(), top, func(e client.Entry) bool { t.Errorf("left: %s", e.Name); return true }); err != nil {
		t.Error(err)
	}
}

// TestTidy: what a measurement has made is removed from the server, also after an interrupt, and nothing beside it.
func TestTidy(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fs, _ := benchServer(t, 0)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file := func(dir []byte, name string) {
		t.Helper()
		f, err := fs.Create(ctx, dir, name, client.Mode(0o644), true)
		must(err)
		must(fs.Close(ctx, f))
	}
	top, err := fs.Root(ctx, "/")
	must(err)
	file(top, "other")
	dir, err := fs.Mkdir(ctx, top, "made", client.Mode(0o755))
	must(err)
	below, err := fs.Mkdir(ctx, dir, "below", client.Mode(0o755))
	must(err)
	for i := range wipedAtOnce + 10 { // more than one listing
		file(below, fmt.Sprint(i))
	}
	interrupted, stop := context.WithCancel(ctx)
	stop()
	var said bytes.Buffer
	o := &benchFlags{dir: "/"}
	o.tidy(interrupted, &cli.Streams{Err: &said}, fs, &bench.Meter{FS: fs, Dir: dir}, top, "made")
	var left []string
	must(fs.Readdir(ctx, top, func(e client.Entry) bool { left = append(left, e.Name); return true }))
	if strings.Join(left, " ") != "other" || said.Len() > 0 {
		t.Errorf("left: %q; said: %s", left, &said)
	}
}

// lister is a server that always lists the same names, whatever was removed.
type lister struct {
	client.FS
	names   int
	refuses error
	removed int
}

func (l *lister) Readdir(_ context.Context, _ []byte, f func(client.Entry) bool) error {
	for i := range l.names {
		if !f(client.Entry{Name: fmt.Sprint(i)}) {
			break
		}
	}
	return nil
}

func (l *lister) Lookup(context.Context, []byte, string) ([]byte, client.Attr, error) {
	return []byte("h"), client.Attr{Type: client.Regular}, nil
}

func (l *lister) Remove(context.Context, []byte, string) error { l.removed++; return l.refuses }

func (l *lister) Rmdir(context.Context, []byte, string) error { return nil }

// TestWipe: a server that lists for ever does not keep the command from its end, and what is left is said.
func TestWipe(t *testing.T) {
	for _, c := range []struct {
		name    string
		fs      *lister
		left    int
		removed int
		err     error
	}{
		{"few names", &lister{names: 7}, 7, 7, nil},
		{"more than may be", &lister{names: 7}, 6, 6, client.ErrListing},
		{"for ever", &lister{names: wipedAtOnce}, 3 * wipedAtOnce, 3 * wipedAtOnce, client.ErrListing},
		{"refused", &lister{names: 7, refuses: context.DeadlineExceeded}, 7, 1, context.DeadlineExceeded},
	} {
		if err := wipe(t.Context(), c.fs, nil, nil, "made", 0, &c.left); !errors.Is(err, c.err) || c.fs.removed != c.removed {
			t.Errorf("%s: %v after %d names", c.name, err, c.fs.removed)
		}
	}
	var said bytes.Buffer
	fs := &lister{names: 1, refuses: errors.New("no")}
	(&benchFlags{dir: "/x"}).tidy(t.Context(), &cli.Streams{Err: &said}, fs, &bench.Meter{FS: fs}, nil, "made")
	if got := said.String(); got != "rpcrdma-replay: /x/made was not removed from the server: no\n" {
		t.Errorf("said: %s", got)
	}
}
