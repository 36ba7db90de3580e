package prepare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/client"
)

// Statuses that have the same numbers in all versions.
const (
	statusNoEnt  = uint32(nfs3.NFS3ERR_NOENT)
	statusExist  = uint32(nfs3.NFS3ERR_EXIST)
	statusAccess = uint32(nfs3.NFS3ERR_ACCES)
	statusPerm   = uint32(nfs3.NFS3ERR_PERM)
)

// found is a directory on the target, with what is above it.
type found struct {
	handle []byte
	chain  [][]byte // handles of the directories above that the server shows, nearest last
}

// find walks to a directory, from as near to the root as the server lets it. It follows
// no symbolic link. With create the last component is made if it is not there; allow is
// called first, so that the guard lets it pass.
func find(ctx context.Context, fs client.FS, dir string, create bool, allow func(parent []byte, name string)) (*found, error) {
	names := components(dir)
	var root []byte
	var err, refusal error
	start := 0
	for ; start <= len(names); start++ {
		root, err = fs.Root(ctx, "/"+strings.Join(names[:start], "/"))
		// A server need not show the directories above an export.
		if err == nil || !errors.As(err, new(*client.StatusError)) && !errors.As(err, new(*client.DeniedError)) {
			break
		}
		if !client.IsStatus(err, statusNoEnt) {
			refusal = err // of the export, below which there is nothing that could be mounted
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the directory %s on the target: %w", dir, cmp.Or(refusal, err))
	}
	f := &found{handle: root}
	for i := start; i < len(names); i++ {
		f.chain = append(f.chain, f.handle)
		h, a, err := fs.Lookup(ctx, f.handle, names[i])
		switch {
		case client.IsStatus(err, statusNoEnt) && create && i == len(names)-1:
			allow(f.handle, names[i])
			if h, err = fs.Mkdir(ctx, f.handle, names[i], client.Mode(0o755)); err != nil {
				return nil, fmt.Errorf("the directory %s on the target cannot be made: %w", dir, err)
			}
		case err != nil:
			return nil, fmt.Errorf("the directory %s on the target: %s: %w", dir, names[i], err)
		case a.Type == client.Symlink:
			return nil, fmt.Errorf("the directory %s on the target: %s is a symbolic link", dir, names[i])
		case a.Type != client.Directory:
			return nil, fmt.Errorf("the directory %s on the target: %s is not a directory", dir, names[i])
		}
		f.handle = h
	}
	return f, nil
}

// components are the names of a clean path.
func components(p string) []string {
	var out []string
	for part := range strings.SplitSeq(p, "/") {
		if part != "" {
			out = append(out, part)
		}
	}
	return out
}

// empty makes sure that the directory is empty.
func empty(ctx context.Context, fs client.FS, dir []byte, name string) error {
	first := ""
	if err := fs.Readdir(ctx, dir, func(e client.Entry) bool { first = e.Name; return false }); err != nil {
		return fmt.Errorf("listing the directory %s on the target: %w", name, err)
	}
	if first != "" {
		return fmt.Errorf("the directory %s on the target is not empty (%q)", name, first)
	}
	return nil
}
