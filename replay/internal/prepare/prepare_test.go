package prepare_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/prepare"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// target is a client of an empty server. All that it changes passes a guard.
func target(t *testing.T) (client.FS, *guard.Guard) {
	t.Helper()
	server, clients, at, err := providers.Pair(providers.Options{Name: "tcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := providers.NewServer(memory.New(memory.Options{}), providers.ServerOptions{})
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
	g := guard.New(guard.Options{Write: true})
	return client.NewV3(client.RPC{Requester: g.Requester(r), Cred: client.Sys("test", 0, 0)}), g
}

// refuser refuses an export, and does not know what is below it.
type refuser struct{ client.FS }

func (refuser) Root(_ context.Context, path string) ([]byte, error) {
	if path == "/export" {
		return nil, &client.StatusError{Operation: "MNT", Code: 13, Symbol: "MNT3ERR_ACCES"}
	}
	return nil, &client.StatusError{Operation: "MNT", Code: 2, Symbol: "MNT3ERR_NOENT"}
}

// TestRefusal: the reason is why the export is refused, and not that a directory below it cannot be mounted.
func TestRefusal(t *testing.T) {
	_, err := prepare.Run(t.Context(), refuser{}, &workload.Workload{}, nil, prepare.Options{Directory: "/export/new", Guard: guard.New(guard.Options{})})
	if err == nil || !strings.Contains(err.Error(), "MNT3ERR_ACCES") {
		t.Error(err)
	}
}

// TestRun makes files, finds them again, and touches nothing else.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	load := &workload.Workload{Data: bytes.NewReader([]byte("captured"))}
	load.Tables.Header.Payload = plan.Captured
	load.Tables.Objects = []plan.Object{
		{ID: 1, Type: "dir", Origin: plan.Before, Base: true},
		{ID: 2, Type: "file", Origin: plan.Before, Parent: 3, Name: "f", Size: 20, Content: []plan.Extent{{Offset: 4, Length: 8}}},
		{ID: 3, Type: "dir", Origin: plan.Before, Parent: 1, Name: "d"},
		{ID: 4, Type: "file", Origin: plan.Before, Parent: 3, Name: "../out"},
		{ID: 5, Type: "file", Origin: plan.Above, Name: "above"},
		{ID: 6, Type: "symlink", Origin: plan.Before, Parent: 1, Target: "d/f"}, // its name is not known
	}
	fs, g := target(t)
	var notes []string
	o := prepare.Options{Directory: "/replay", Make: true, Guard: g, Note: func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }}
	w := bindings.New(load, 2, "test")
	done, err := prepare.Run(ctx, fs, load, w, o)
	if err != nil {
		t.Fatal(err)
	}
	if done.Directories != 2 || done.Files != 2 || done.Others != 2 || done.Bytes != 40 || done.Failed != 2 || len(notes) != 2 {
		t.Errorf("%+v %q", done, notes)
	}
	for _, w := range w {
		b, err := fs.Alloc(64)
		if err != nil {
			t.Fatal(err)
		}
		n, _, err := fs.Read(ctx, &client.File{Handle: w.Objects[2].Handle}, 0, b)
		if err != nil || n != 20 || string(b[4:12]) != "captured" {
			t.Errorf("clone %d: %q, %v", w.Number, b[:n], err)
		}
		fs.Free(b)
		if w.Objects[4].Handle != nil || w.Objects[5].Handle != nil || w.Objects[6].Handle == nil {
			t.Errorf("clone %d: %+v", w.Number, w.Objects)
		}
	}
	if bytes.Equal(w[0].Objects[2].Handle, w[1].Objects[2].Handle) {
		t.Error("two clones have one file")
	}
	if _, err := prepare.Run(ctx, fs, load, bindings.New(load, 2, "again"), o); err == nil {
		t.Error("a directory that is not empty was taken")
	}
	o.Make, notes = false, nil
	again := bindings.New(load, 2, "again")
	if _, err := prepare.Run(ctx, fs, load, again, o); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again[1].Objects[2].Handle, w[1].Objects[2].Handle) || len(notes) != 1+1 {
		t.Errorf("%x, made as %x; %q", again[1].Objects[2].Handle, w[1].Objects[2].Handle, notes)
	}
}

// TestOwners: an owner of NFSv4 is a number as text, which is set, or a name, which is not.
func TestOwners(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	load := &workload.Workload{}
	load.Tables.Objects = []plan.Object{{ID: 1, Type: "dir", Origin: plan.Before, Base: true}}
	want := map[string][2]int64{"numbers": {1000, 7}, "names": {0, 0}, "one of them": {0, 7}, "too large": {0, 0}, "both": {5, 7}}
	five := uint32(5)
	for _, o := range []plan.Object{
		{Name: "numbers", Owner: "1000", Group: "7"}, {Name: "names", Owner: "root@example.org", Group: "users"}, {Name: "one of them", Owner: "-1", Group: "7"},
		{Name: "too large", Owner: "4294967296", Group: "+7"}, {Name: "both", UID: &five, Owner: "1000", Group: "7"},
	} {
		o.ID, o.Type, o.Origin, o.Parent = len(load.Tables.Objects)+1, "file", plan.Before, 1
		load.Tables.Objects = append(load.Tables.Objects, o)
	}
	fs, g := target(t)
	w := bindings.New(load, 1, "t")
	if _, err := prepare.Run(ctx, fs, load, w, prepare.Options{Guard: g, Directory: "/", Make: true, Note: t.Logf}); err != nil {
		t.Fatal(err)
	}
	for i := range load.Tables.Objects[1:] {
		o := &load.Tables.Objects[i+1]
		a, err := fs.Getattr(ctx, w[0].Objects[o.ID].Handle)
		if err != nil || [2]int64{a.UID, a.GID} != want[o.Name] {
			t.Errorf("%s: %d, %d, %v; want %v", o.Name, a.UID, a.GID, err, want[o.Name])
		}
	}
}

// TestFatal: what one object cannot get is noted, and the rest goes on. What no object will get ends the preparation.
func TestFatal(t *testing.T) {
	status := &client.StatusError{Operation: "CREATE", Code: 10008}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{status, false},
		{&guard.Refused{}, false},
		{errors.New("lost"), true},
		{fmt.Errorf("%w: %w", status, client.ErrPutOff), true},
	} {
		if got := prepare.Fatal(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
