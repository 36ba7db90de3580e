package run

import (
	"fmt"
	"path"
	"strings"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// CleanDirectory checks the path of a directory on the target.
func CleanDirectory(p string) (string, error) {
	switch {
	case p == "":
		return "", fmt.Errorf("no directory on the target is given")
	case !strings.HasPrefix(p, "/"):
		return "", fmt.Errorf("the directory %q does not begin with /", p)
	case strings.ContainsRune(p, 0):
		return "", fmt.Errorf("the directory %q has a NUL", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return "", fmt.Errorf("the directory %q has .. in it", p)
		}
	}
	return path.Clean(p), nil
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

// below reports whether an object of the plan is the base or below it. One
// without a known parent counts: its handle can only come from a reply about
// something below the base.
func (w *Workload) below(id int) bool {
	for steps := 0; id > 0 && steps <= len(w.Tables.Objects); steps++ {
		o := &w.Tables.Objects[id-1]
		if o.Origin == plan.Above {
			return false
		}
		if o.Base || o.Parent == 0 {
			return true
		}
		id = o.Parent
	}
	return false
}
