package sandbox

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Mode says what happens where something cannot be given up.
type Mode uint8

// The modes of --sandbox.
const (
	Auto    Mode = iota // as much as the kernel can; what it cannot is noted
	Require             // all of it, or an error
	Off                 // nothing, except for the change to a user that was named
)

var modes = [...]string{Auto: "auto", Require: "require", Off: "off"}

// Type implements pflag.Value.
func (m *Mode) Type() string { return "mode" }

// String implements pflag.Value.
func (m *Mode) String() string { return modes[*m] }

// Set implements pflag.Value.
func (m *Mode) Set(v string) error {
	for i, s := range modes {
		if v == s {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not auto, require or off", v)
}

// Options are the flags of a program.
type Options struct {
	User string // name or number; empty: see Open
	Mode Mode
}

// Flags registers -Z and --sandbox.
func (o *Options) Flags(f *pflag.FlagSet) {
	f.StringVarP(&o.User, "user", "Z", "", "with -i, as root: become this `user` once the capture is open (default: who called sudo,\nor nobody where no file is written)")
	f.Var(&o.Mode, "sandbox", "with -i: give up privileges, files and network once the capture is open:\nauto (as far as the kernel can), require (or fail) or off")
	f.Lookup("sandbox").DefValue = "" // the text says it
}

// Given reports whether one of the flags was used.
func (o *Options) Given() bool { return o.User != "" || o.Mode != Auto }

// Needs is what a program still does when it is confined. All else is
// forbidden, reading any file included.
type Needs struct {
	// Series are directories below which files are created, written and
	// removed, but not read.
	Series []string
	// Files are made or replaced: others beside them may be written, read and
	// renamed.
	Files []string
	// Trees are directories below which folders are made as well. They are
	// made if they do not exist.
	Trees []string
	// Names of hosts are looked up in /etc/hosts and by DNS.
	Names bool
	// Datagrams are written to a socket that is connected already. Nothing is
	// sent to another address through it, so Names is not possible beside it.
	Datagrams bool
}

// Writes reports whether files are made.
func (n *Needs) Writes() bool { return len(n.Series)+len(n.Files)+len(n.Trees) > 0 }

// Error says what could not be given up.
type Error struct {
	What string // "user alice", "capabilities", …
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Err) }
func (e *Error) Unwrap() error { return e.Err }
