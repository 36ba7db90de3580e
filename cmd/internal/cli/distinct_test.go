package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDistinct(t *testing.T) {
	dir := t.TempDir()
	a, b, link, hard := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "link"), filepath.Join(dir, "hard")
	for _, name := range []string{a, b} {
		if err := os.WriteFile(name, []byte("equal"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("a", link), os.Link(a, hard)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		names []string
		want  string // the end of the message
	}{
		{nil, ""},
		{[]string{a, b}, ""}, // equal contents are two files
		{[]string{a, "-", link + "2"}, ""},
		{[]string{os.DevNull, os.DevNull}, ""},
		{[]string{"-", a, "-"}, "standard input (-) is named more than once"},
		{[]string{a, b, a}, "/a is named more than once"},
		{[]string{a, link}, "/link are the same file: name it once"},
		{[]string{hard, b, a}, "/a are the same file: name it once"},
		{[]string{a, dir + "/./a"}, "/./a are the same file: name it once"},
	} {
		err := Distinct("", test.names)
		if err == nil {
			if test.want != "" {
				t.Errorf("%q: no error, want %q", test.names, test.want)
			}
			continue
		}
		if _, usage := errors.AsType[*UsageError](err); !usage || test.want == "" || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.names, err, test.want)
		}
	}
	if err := Distinct("--ftrace", []string{a, link}); err == nil || err.Error() != "--ftrace "+a+" and --ftrace "+link+" are the same file: name it once" {
		t.Errorf("%v", err)
	}
}
