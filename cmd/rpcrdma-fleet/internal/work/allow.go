package work

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Allow are the stores and folders that a worker touches. What it is to read and write is said by messages and by
// objects of the store, which others have written; a worker must not become their hand in places that they cannot
// reach themselves.
//
// The zero value allows all buckets of s3:// and gs:// that the worker's credentials open, at the servers that its
// environment names. Local folders, and servers named by a URL, are to be allowed one by one.
type Allow struct{ list []*url.URL }

// NewAllow makes an Allow of URLs: of folders, with all below them.
func NewAllow(prefixes []string) (Allow, error) {
	var a Allow
	for _, p := range prefixes {
		u, err := parse(p)
		if err != nil {
			return Allow{}, fmt.Errorf("%s: %w", p, err)
		}
		a.list = append(a.list, u)
	}
	return a, nil
}

func parse(s string) (*url.URL, error) {
	if !strings.Contains(s, "://") {
		return nil, fmt.Errorf("a store is named by its URL, a local folder is file:///folder")
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("it is not a URL")
	}
	if u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return nil, fmt.Errorf("it is not a URL of a store")
	}
	if slices.Contains(strings.Split(u.Path, "/"), "..") {
		return nil, fmt.Errorf("it leads elsewhere")
	}
	return u, nil
}

// Check says why a URL is not allowed.
func (a Allow) Check(s string) error {
	u, err := parse(s)
	if err != nil {
		return fmt.Errorf("%.200q: %w", s, err)
	}
	if len(a.list) == 0 {
		if (u.Scheme == "s3" || u.Scheme == "gs") && !u.Query().Has("endpoint") {
			return nil
		}
		return fmt.Errorf("%.200q is to be allowed with --allow: only buckets of s3:// and gs:// without a server in the URL need not be", s)
	}
	for _, p := range a.list {
		if p.Scheme == u.Scheme && p.Host == u.Host && p.Query().Get("endpoint") == u.Query().Get("endpoint") && below(p.Path, u.Path) {
			return nil
		}
	}
	return fmt.Errorf("%.200q is not below what --allow names", s)
}

// below reports whether a path is a folder, or in it.
func below(folder, name string) bool {
	folder, name = path.Clean("/"+folder), path.Clean("/"+name)
	return folder == "/" || name == folder || strings.HasPrefix(name, folder+"/")
}
