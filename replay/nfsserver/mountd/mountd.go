// Package mountd serves MOUNT version 3 (RFC 1813, appendix I), which turns the path of an
// export into an NFSv3 file handle. There is one export; any directory in it can be mounted.
//
// The list of mounts is only what clients have reported. It is kept in memory until the
// server ends.
package mountd

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Options of the program.
type Options struct {
	// Path is the path of the export, the root of the store; "" stands for "/".
	Path string
}

// maxMounts is how many entries the list of mounts has at most.
const maxMounts = 1024

type server struct {
	store store.Store
	path  string

	mu     sync.Mutex
	mounts []entry // the latest last
}

type entry struct{ host, dir string }

// New makes the program.
func New(st store.Store, opt Options) nfsserver.Program {
	s := &server{store: st, path: clean(opt.Path)}
	p := nfsserver.Program{
		Name: "mount", Number: mount.MOUNT_PROGRAM, Version: mount.MOUNT_V3,
		NewState: func() any { return new(state) },
		Procedures: []nfsserver.Procedure{
			mount.MOUNTPROC3_NULL:    {Name: "NULL", Do: nfsserver.Null, Inline: true},
			mount.MOUNTPROC3_MNT:     {Name: "MNT", Do: s.mnt},
			mount.MOUNTPROC3_DUMP:    {Name: "DUMP", Do: s.dump},
			mount.MOUNTPROC3_UMNT:    {Name: "UMNT", Do: s.umnt},
			mount.MOUNTPROC3_UMNTALL: {Name: "UMNTALL", Do: s.umntall},
			mount.MOUNTPROC3_EXPORT:  {Name: "EXPORT", Do: s.export},
		},
	}
	return p
}

type state struct {
	path   mount.DirpathMessage
	result mount.Mountres3
	fh     []byte
}

// clean is a path with one "/" in front of each name, and "/" for the root.
func clean(p string) string { return "/" + strings.Join(names(p), "/") }

func names(p string) []string {
	return slices.DeleteFunc(strings.Split(p, "/"), func(n string) bool { return n == "" || n == "." })
}

func (s *server) mnt(c *nfsserver.Call) {
	st := c.State.(*state)
	if !c.Decode(&st.path) {
		return
	}
	flavors := st.result.Mountinfo.AuthFlavors[:0]
	for _, f := range c.Server().Flavors() {
		if f != oncrpc.AuthNone { // which clients take for "no flavor is known"
			flavors = append(flavors, int32(f))
		}
	}
	st.result = mount.Mountres3{Mountinfo: mount.Mountres3Ok{AuthFlavors: flavors}}
	path := string(st.path.Dirpath)
	h, err := s.walk(path)
	if st.result.FhsStatus = status(err); err == nil {
		st.fh = s.store.Info().Handles.Append(st.fh[:0], h)
		st.result.Mountinfo.Fhandle = st.fh
		s.add(host(c), clean(path))
	}
	c.Reply(&st.result)
}

// walk finds the directory of a path. ".." is not followed, nor are links.
func (s *server) walk(path string) (store.Handle, error) {
	h := s.store.Root()
	if len(path) > mount.MNTPATHLEN || strings.IndexByte(path, 0) >= 0 {
		return h, store.ErrInval
	}
	rest := names(path)
	for _, n := range names(s.path) {
		if len(rest) == 0 || rest[0] != n {
			return h, store.ErrNoEnt
		}
		rest = rest[1:]
	}
	// As root: permissions are checked when the client uses the handle.
	a := store.Attr{Handle: h, Type: store.Directory}
	for _, n := range rest {
		if a.Type != store.Directory {
			return h, store.ErrNotDir
		}
		if err := s.store.Lookup(&store.Cred{}, a.Handle, []byte(n), &a); err != nil {
			return h, err
		}
	}
	if a.Type != store.Directory {
		return h, store.ErrNotDir
	}
	return a.Handle, nil
}

func status(err error) mount.Mountstat3 {
	switch e := store.Of(err); e {
	case 0, store.ErrPerm, store.ErrNoEnt, store.ErrIO, store.ErrAccess, store.ErrNotDir, store.ErrInval, store.ErrNameTooLong, store.ErrNotSupp:
		return mount.Mountstat3(e)
	case store.ErrStale:
		return mount.MNT3ERR_NOENT
	case store.ErrBadName:
		return mount.MNT3ERR_INVAL
	}
	return mount.MNT3ERR_SERVERFAULT
}

// host is the name under which a client is listed.
func host(c *nfsserver.Call) string {
	if a := c.Peer().Remote.Addr(); a.IsValid() {
		return a.String()
	}
	return "unknown"
}

func (s *server) add(host, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := entry{host, dir}
	if slices.Contains(s.mounts, e) {
		return
	}
	if len(s.mounts) >= maxMounts {
		s.mounts = slices.Delete(s.mounts, 0, 1)
	}
	s.mounts = append(s.mounts, e)
}

func (s *server) forget(drop func(e entry) bool) {
	s.mu.Lock()
	s.mounts = slices.DeleteFunc(s.mounts, drop)
	s.mu.Unlock()
}

func (s *server) dump(c *nfsserver.Call) {
	if !c.NoArguments() {
		return
	}
	var m mount.MountlistMessage
	s.mu.Lock()
	for _, e := range s.mounts {
		m.Mountlist = append(m.Mountlist, mount.Mountbody{MlHostname: []byte(e.host), MlDirectory: []byte(e.dir)})
	}
	s.mu.Unlock()
	c.Reply(&m)
}

func (s *server) umnt(c *nfsserver.Call) {
	st := c.State.(*state)
	if !c.Decode(&st.path) {
		return
	}
	gone := entry{host(c), clean(string(bytes.Clone(st.path.Dirpath)))}
	s.forget(func(e entry) bool { return e == gone })
	c.Send()
}

func (s *server) umntall(c *nfsserver.Call) {
	if !c.NoArguments() {
		return
	}
	h := host(c)
	s.forget(func(e entry) bool { return e.host == h })
	c.Send()
}

func (s *server) export(c *nfsserver.Call) {
	if c.NoArguments() {
		c.Reply(&mount.ExportsMessage{Exports: []mount.Exportnode{{ExDir: []byte(s.path)}}})
	}
}
