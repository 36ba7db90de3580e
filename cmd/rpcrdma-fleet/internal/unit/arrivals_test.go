package unit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// TestArrivals: each step is what a look finds, a file as TAP/NAME:SIZE@MODIFIED, and which files are finished then.
func TestArrivals(t *testing.T) {
	for name, steps := range map[string][][2]string{
		"the last one waits for another":      {{"a/1:5@1", ""}, {"a/1:9@2", ""}, {"a/1:9@2 a/2:1@3", "a/1"}, {"a/1:9@2 a/2:4@4 a/3:1@5", ""}, {"a/1:9@2 a/2:4@4 a/3:1@5", "a/2"}},
		"the last one of a tap that ended":    {{"a/1:5@1", ""}, {"a/1:5@1", ""}, {"a/1:5@1", ""}, {"a/1:5@1", ""}, {"a/1:5@1", "a/1"}, {"a/1:5@1", ""}},
		"taps do not wait for each other":     {{"a/1:5@1 b/1:5@9", ""}, {"a/1:5@1 b/1:5@9", ""}},
		"an object of a store is whole":       {{"a/1:5@1=x", "a/1"}, {"a/1:5@1=x a/2:5@2=y", "a/2"}},
		"a ring uses a name again":            {{"a/1:5@1 a/2:1@2", ""}, {"a/1:5@1 a/2:1@2", "a/1"}, {"a/1:3@4 a/2:2@3", ""}, {"a/1:3@4 a/2:2@3", "a/2"}, {"a/1:4@5 a/2:3@6", ""}, {"a/1:4@5 a/2:3@6", "a/1"}},
		"deleted before it was finished":      {{"a/1:5@1 a/2:1@2", ""}, {"a/2:1@2", "-a/1"}},
		"deleted after it was taken":          {{"a/1:5@1 a/2:1@2", ""}, {"a/1:5@1 a/2:1@2", "a/1"}, {"a/2:1@2", ""}},
		"not taken: the store was away (try)": {{"a/1:5@1=x", "a/1?"}, {"a/1:5@1=x", "a/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var a Arrivals
			for i, step := range steps {
				var list []layout.Found
				for _, s := range strings.Fields(step[0]) {
					var size, at int64
					name, rest, _ := strings.Cut(s, ":")
					tap, _, _ := strings.Cut(name, "/")
					rest, etag, _ := strings.Cut(rest, "=")
					if _, err := fmt.Sscanf(rest, "%d@%d", &size, &at); err != nil {
						t.Fatal(err)
					}
					list = append(list, layout.Found{File: layout.File{URL: name, Size: size, ETag: etag, Modified: time.Unix(at, 0)}, Folder: tap})
				}
				var got []string
				u := &layout.Unit{}
				for _, f := range a.look(list, "", func(url string) { got = append(got, "-"+url) }) {
					got = append(got, f.URL)
					u.Files = append(u.Files, f.File)
				}
				want, failed := strings.CutSuffix(step[1], "?")
				if !failed {
					a.Take([]*layout.Unit{u})
				}
				if !slices.Equal(got, strings.Fields(want)) {
					t.Errorf("look %d finds %q, want %q", i+1, got, want)
				}
			}
		})
	}
}
