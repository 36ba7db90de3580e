package readback

import (
	"bytes"
	"errors"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// names looks up all names that are known to be there, or not to be, and lists their
// directories.
func (r *reader) names() error {
	list, open := r.expected.Names()
	for range open {
		r.left("a name that several calls changed together, or a call without a reply", nil)
	}
	for len(list) > 0 {
		dir, n := list[0].Dir, 1
		for n < len(list) && list[n].Dir == dir {
			n++
		}
		if err := r.directory(dir, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// directory compares the names of one directory.
func (r *reader) directory(dir int, list []expected.Entry) error {
	if _, gone := r.expected.Object(dir); gone {
		return nil // removed, and that is compared in the directory above
	}
	if !r.load.Below(dir) {
		return nil
	}
	if r.load.Twofold(dir) {
		for range list {
			r.left(perhapsTwice, nil) // what is known of the one may be in the other
		}
		return nil
	}
	h := r.w.Objects[dir].Handle
	if h == nil {
		for range list {
			r.left("a name in a directory whose handle is not known", nil)
		}
		return nil
	}
	for i := range list {
		if err := r.name(h, &list[i]); err != nil {
			return err
		}
	}
	return r.listing(dir, h, list)
}

// name looks one name up.
func (r *reader) name(dir []byte, e *expected.Entry) error {
	path := strings.TrimSuffix(r.path(e.Dir), "/") + "/" + e.Name.Name
	h, a, err := r.fs.Lookup(r.ctx, dir, e.Name.Name)
	if end := r.fatal(err); end != nil {
		return end
	}
	switch {
	case client.IsStatus(err, uint32(nfs3.NFS3ERR_NOENT)):
		r.out.Names++
		if e.Presence == expected.Present {
			r.wrong(path, verdict.Reason{Code: verdict.NameLost})
		}
		return nil
	case err != nil:
		r.left("a name", err)
		return nil
	}
	r.out.Names++
	if e.Presence == expected.Absent {
		r.wrong(path, verdict.Reason{Code: verdict.NameLeft})
		return nil
	}
	var had [][]byte
	if !r.w.Apart() { // what NFSv3 has listed would be no handle here
		had = append(had, e.Listed)
	}
	if e.Object > 0 {
		had = append(had, r.w.Objects[e.Object].Handle)
	}
	for _, had := range had {
		if had == nil || bytes.Equal(had, h) {
			continue
		}
		// Two handles may be those of one file (RFC 1813, section 2.6).
		same, err := r.isFile(had, a.Fileid)
		if err != nil {
			return err
		}
		if !same && r.load.Twofold(e.Object) {
			r.left(perhapsTwice, nil)
			return nil
		}
		if !same {
			r.wrong(path, verdict.Reason{Code: verdict.OtherObject})
			return nil
		}
	}
	if e.Object == 0 {
		return nil
	}
	r.found[e.Object] = at{h, path}
	return nil
}

// isFile reports whether a handle belongs to a file; one that the server refuses is not.
func (r *reader) isFile(handle []byte, fileid uint64) (bool, error) {
	a, err := r.fs.Getattr(r.ctx, handle)
	if end := r.fatal(err); end != nil {
		return false, end
	}
	return err == nil && a.Fileid == fileid, nil
}

// maxListed is how many names of a directory are listed: a server that lists for ever must not
// keep the run from its end.
const maxListed = 1 << 22

// listing lists a directory.
func (r *reader) listing(dir int, h []byte, list []expected.Entry) error {
	path := r.path(dir)
	known := make(map[string]expected.Presence, len(list))
	for i := range list {
		known[list[i].Name.Name] = list[i].Presence
	}
	seen := make(map[string]bool, len(list))
	listed := 0
	err := r.fs.Readdir(r.ctx, h, func(e client.Entry) bool {
		if listed++; listed > maxListed {
			return false
		}
		p, ok := known[e.Name]
		if !ok {
			return true
		}
		if seen[e.Name] {
			r.wrong(path, verdict.Reason{Code: verdict.NameTwice, Detail: e.Name})
			return false
		}
		seen[e.Name] = true
		if p == expected.Absent {
			r.wrong(path, verdict.Reason{Code: verdict.NamesAdded, N: 1, Detail: e.Name})
		}
		return true
	})
	switch {
	case errors.Is(err, client.ErrListing) || listed > maxListed:
		r.field(path, "eof", "false", "true")
		return nil
	case err != nil:
		if end := r.fatal(err); end != nil {
			return end
		}
		r.left("the listing of a directory", err)
		return nil
	}
	for i := range list {
		if n := list[i].Name.Name; list[i].Presence == expected.Present && !seen[n] {
			r.wrong(path, verdict.Reason{Code: verdict.NamesMissing, N: 1, Detail: n})
		}
	}
	return nil
}
