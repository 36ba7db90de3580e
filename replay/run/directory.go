package run

import (
	"fmt"
	"path"
	"strings"
)

// CleanDirectory checks the path of a directory on the target, which is absolute and
// has no ".." in it, and returns it in its shortest form.
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
