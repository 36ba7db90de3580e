// Package clitest holds what the tests of all programs have in common.
package clitest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Role is what a flag names.
type Role uint8

// Roles of flags.
const (
	Neither Role = iota + 1 // no file of this machine, or nothing at all
	Input                   // a file, or several, that are read
	Output                  // a file that is written
)

// Case is a command line on which an output is the same file as an input. IN is
// the input, a capture; OUT is the output, which is made to be the same file as
// IN in several ways; OTHER is another capture.
type Case struct {
	Flag string // that names OUT, for example "rpcrdma-dump annotate --write"
	Args []string
	// In and Out are the names of IN and OUT where they matter; "in.pcap" and
	// "out" otherwise. A directory in Out is made.
	In, Out string
	// Data says what IN holds; nil is the sample.
	Data func(t *testing.T, sample string) []byte
	// Only restricts the ways in which OUT becomes the same file.
	Only []string
}

// Program is a program under test.
type Program struct {
	Root *cobra.Command
	// Run runs a command line in the working directory.
	Run func(args []string, stdin io.Reader, stdout, stderr io.Writer) int
	// Roles has all flags whose value is a string, by command: "rpcrdma-dump
	// report --html". A key "--read" without a command is for all commands that
	// have no key of their own.
	Roles map[string]Role
	// Cases has at least one for each flag that is an Output.
	Cases  []Case
	Sample string // a capture
}

// values are the types of flags whose value cannot be the name of a file.
var values = []string{
	"bool", "count", "int", "uint16", "uint32", "uint64", "float64", "duration", "intSlice",
	"size", "seconds", "factor", "format", "level",
}

// CheckRoles walks all flags of all commands and fails for one without a role.
func (p *Program) CheckRoles(t *testing.T) {
	seen := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		cmd.InitDefaultVersionFlag()
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if slices.Contains(values, f.Value.Type()) {
				return
			}
			own, all := cmd.CommandPath()+" --"+f.Name, "--"+f.Name
			role := p.Roles[own]
			seen[own] = true
			if role == 0 {
				role = p.Roles[all]
				seen[all] = true
			}
			switch role {
			case Neither, Input:
			case Output:
				if !slices.ContainsFunc(p.Cases, func(c Case) bool { return c.Flag == own }) {
					t.Errorf("%s is an output: it needs a case in which it is the same file as an input", own)
				}
			default:
				t.Errorf("%s (%s) has no role: does it name a file that is read, one that is written, or none?", own, f.Value.Type())
			}
		})
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(p.Root)
	for name := range p.Roles {
		if !seen[name] {
			t.Errorf("the table has %s, which no command has", name)
		}
	}
}

// ways are how an output can be the same file as an input. Each makes it so and
// returns the name of the output for the command line.
var ways = []struct {
	name string
	make func(t *testing.T, in, out string) string
}{
	{"same name", func(_ *testing.T, in, _ string) string { return in }},
	{"other spelling", func(_ *testing.T, in, _ string) string {
		return filepath.Dir(in) + "/." + "/sub/../" + filepath.Base(in)
	}},
	{"symbolic link", func(t *testing.T, in, out string) string {
		must(t, os.Symlink(in, out))
		return out
	}},
	{"two relative symbolic links", func(t *testing.T, in, out string) string {
		rel, err := filepath.Rel(filepath.Dir(out), in)
		must(t, err)
		must(t, os.Symlink(rel, out+".1"))
		must(t, os.Symlink(filepath.Base(out)+".1", out))
		return out
	}},
	{"hard link", func(t *testing.T, in, out string) string {
		must(t, os.Link(in, out))
		return out
	}},
	{"through a linked directory", func(t *testing.T, in, out string) string {
		must(t, os.Symlink(filepath.Dir(in), out+".dir"))
		return out + ".dir/" + filepath.Base(in)
	}},
	{"standard input", func(t *testing.T, in, out string) string {
		must(t, os.Link(in, out))
		return out
	}},
}

// CheckRefused runs all cases in all ways: each must be a mistake of the caller,
// with the inputs as they were, and nothing left behind.
func (p *Program) CheckRefused(t *testing.T) {
	sample, err := os.ReadFile(p.Sample)
	must(t, err)
	for _, c := range p.Cases {
		for _, way := range ways {
			if c.Only != nil && !slices.Contains(c.Only, way.name) {
				continue
			}
			t.Run(strings.ReplaceAll(c.Flag, " ", "_")+"/"+strings.ReplaceAll(way.name, " ", "_"), func(t *testing.T) {
				p.refused(t, &c, way.name, way.make, sample)
			})
		}
	}
}

func (p *Program) refused(t *testing.T, c *Case, way string, same func(t *testing.T, in, out string) string, sample []byte) {
	dir := t.TempDir()
	in, out, other := filepath.Join(dir, "in.pcap"), filepath.Join(dir, "out"), filepath.Join(dir, "other.pcap")
	if c.In != "" {
		in = filepath.Join(dir, c.In)
	}
	if c.Out != "" {
		out = filepath.Join(dir, c.Out)
	}
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	must(t, os.MkdirAll(filepath.Dir(out), 0o755))
	data := sample
	if c.Data != nil {
		must(t, os.WriteFile(other, sample, 0o644))
		data = c.Data(t, other)
	}
	must(t, os.WriteFile(in, data, 0o644))
	must(t, os.WriteFile(other, sample, 0o644))
	name := same(t, in, out)
	before := listing(t, dir)
	var stdin io.Reader = strings.NewReader("")
	var args []string
	for _, a := range c.Args {
		switch {
		case a == "IN" && way == "standard input":
			f, err := os.Open(in)
			must(t, err)
			defer f.Close()
			stdin, a = f, "-"
		case a == "IN":
			a = in
		case a == "OUT" && c.Out != "":
			a = out
		case a == "OUT":
			a = name
		}
		a = strings.NewReplacer("DIR/", dir+"/", "OTHER", other).Replace(a)
		args = append(args, a)
	}
	var stdout, stderr bytes.Buffer
	if code := p.Run(args, stdin, &stdout, &stderr); code != 2 {
		t.Errorf("%q: exit status %d, not 2: %s", args, code, stderr.String())
	}
	for _, f := range []struct {
		name string
		want []byte
	}{{in, data}, {other, sample}} {
		if got, err := os.ReadFile(f.name); err != nil || !bytes.Equal(got, f.want) {
			t.Errorf("%q: %s has changed: %d bytes, %v", args, f.name, len(got), err)
		}
	}
	if after := listing(t, dir); !slices.Equal(before, after) {
		t.Errorf("%q: files before: %q, after: %q", args, before, after)
	}
}

// listing is all that is below a directory.
func listing(t *testing.T, dir string) []string {
	var out []string
	must(t, filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		out = append(out, name)
		return err
	}))
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
