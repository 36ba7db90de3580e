package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/internal/nearest"
)

// flagMistake is the UsageError for a mistake in the flags of a command. The
// command itself comes first: the flags of a misspelt command are unknown to the
// one that was found instead.
func flagMistake(cmd *cobra.Command, err error) error {
	if e := CommandOrFile(cmd, cmd.Flags().Args()); e != nil {
		return e
	}
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &missing):
		return Usagef("%s needs a value", bothNames(missing.GetFlag()))
	case errors.As(err, &invalid):
		return invalidValue(invalid)
	}
	return &UsageError{err}
}

// Habits says what stands for flags of other tools that a command does not have: by letter or name, the end of "unknown flag -w: …".
func Habits(cmd *cobra.Command, says map[string]string) {
	if cmd.Annotations == nil {
		cmd.Annotations = make(map[string]string)
	}
	for letter, s := range says {
		cmd.Annotations[habit+letter] = s
	}
}

const habit = "habit -"

func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	flags := cmd.Flags()
	name, group := e.GetSpecifiedName(), e.GetSpecifiedShortnames()
	if group == "" {
		if says := cmd.Annotations[habit+name]; says != "" {
			return Usagef("unknown flag --%s: %s", name, says)
		}
		if f := flags.Lookup("format"); f != nil && name == "json" && strings.Contains(f.Usage, name) {
			return Usagef("unknown flag --json: -T json writes it")
		}
		if hint := didYouMean("--"+name, longNames(flags)); hint != "" {
			return Usagef("unknown flag --%s%s", name, hint)
		}
		return Usagef("unknown flag --%s%s", name, elsewhere(cmd, func(f *pflag.FlagSet) *pflag.Flag { return f.Lookup(name) }))
	}
	where := ""
	if group != name {
		where = " in -" + group
	}
	switch {
	case flags.Lookup(group) != nil:
		return Usagef("unknown flag -%s%s; did you mean --%s?", name, where, group)
	case name == "v": // means verbose wherever there is something to add
		return Usagef("unknown flag -v%s: nothing is more verbose here; -V shows the version", where)
	}
	if says := cmd.Annotations[habit+name]; says != "" {
		return Usagef("unknown flag -%s%s: %s", name, where, says)
	}
	for _, other := range []string{strings.ToUpper(name), strings.ToLower(name)} {
		if f := flags.ShorthandLookup(other); f != nil && other != name {
			return Usagef("unknown flag -%s%s; did you mean %s?", name, where, bothNames(f))
		}
	}
	return Usagef("unknown flag -%s%s%s", name, where, elsewhere(cmd, func(f *pflag.FlagSet) *pflag.Flag { return f.ShorthandLookup(name) }))
}

// elsewhere says which other commands of the program have a flag that this one does not have: the program without a
// command, or else the first ones.
func elsewhere(cmd *cobra.Command, find func(*pflag.FlagSet) *pflag.Flag) string {
	var names []string
	var flag *pflag.Flag
	for _, c := range append([]*cobra.Command{cmd.Root()}, cmd.Root().Commands()...) {
		f := find(c.Flags())
		if f == nil || f.Hidden || c.Hidden || c == cmd || flag != nil && f.Name != flag.Name {
			continue
		}
		flag, names = f, append(names, "'"+c.CommandPath()+"'")
		if c == cmd.Root() || len(names) == 2 {
			break
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(": %s has %s, '%s' does not", names[0], bothNames(flag), cmd.CommandPath())
	}
	return fmt.Sprintf(": %s have %s, '%s' does not", strings.Join(names, " and "), bothNames(flag), cmd.CommandPath())
}

// longNames returns the long names of the flags that the help shows.
func longNames(flags *pflag.FlagSet) []string {
	var out []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			out = append(out, "--"+f.Name)
		}
	})
	return out
}

func didYouMean(name string, candidates []string) string {
	found := slices.DeleteFunc(slices.Clone(candidates), func(c string) bool { return !strings.HasPrefix(c, name+"-") })
	if len(found) == 0 {
		found = nearest.Names(name, candidates)
	}
	if len(found) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(found, " or ") + "?"
}

func bothNames(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand + ", --" + f.Name
	}
	return "--" + f.Name
}

// invalidValue says why the value of a flag is not accepted, in the words of
// this program and not in those of package strconv.
func invalidValue(e *pflag.InvalidValueError) error {
	f, value := e.GetFlag(), e.GetValue()
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	cause := errors.Unwrap(e)
	var number *strconv.NumError
	if !errors.As(cause, &number) {
		if says := cause.Error(); strings.Contains(says, strconv.Quote(value)) {
			return Usagef("%s: %s", name, says)
		}
		return Usagef("%s %s: %w", name, shown(value), cause)
	}
	return Usagef("%s %s: %s", name, shown(value), notNumber(f.Value.Type(), value, number))
}

// notNumber says why a value is not one for a flag of some type.
func notNumber(kind, value string, e *strconv.NumError) string {
	_, err := strconv.ParseFloat(value, 64)
	switch number := err == nil; {
	case kind == "bool":
		return "neither true nor false"
	case number && strings.HasPrefix(value, "-") && strings.HasPrefix(kind, "uint"):
		return "negative"
	case errors.Is(e.Err, strconv.ErrRange):
		return "out of range"
	case number:
		return "not a whole number"
	}
	return "not a number"
}

// shown quotes a value that does not stand out as one.
func shown(value string) string {
	if value == "" || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return strconv.Quote(value)
	}
	return value
}

// CommandOrFile checks the arguments of a command that takes files and has
// commands below it. A first argument that is no file is a UsageError if it looks
// like a command that does not exist, and any argument that is no file is one if it
// is the name of a command.
func CommandOrFile(cmd *cobra.Command, args []string) error {
	for i, arg := range args {
		if i > 0 && !slices.Contains(commands(cmd), arg) {
			continue
		}
		if err := commandMistake(cmd, arg); err != nil {
			return err
		}
	}
	return nil
}

// CommandOnly checks the arguments of a command that only has commands below it.
func CommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return noCommand(cmd, args[0], "there is no command "+strconv.Quote(args[0]))
}

// commandMistake is the error for an argument that was meant to be a command of
// cmd: no file has this name, and a command has one like it, or it is a word
// such as commands have. Otherwise it is nil.
func commandMistake(cmd *cobra.Command, arg string) error {
	if !cmd.HasAvailableSubCommands() || arg == "-" {
		return nil
	}
	if _, err := os.Lstat(arg); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if strings.ContainsAny(arg, "./") || !word(arg) && len(nearCommands(cmd, arg)) == 0 {
		return nil
	}
	if slices.Contains(commands(cmd), arg) { // behind a file, or behind --
		return Usagef("%s is a command: write it first, as in '%s %s ...'", strconv.Quote(arg), cmd.CommandPath(), arg)
	}
	what := "there is no command and no file " + strconv.Quote(arg)
	if f := cmd.Flags().ShorthandLookup("Y"); f != nil && slices.Contains(captureFilter, arg) {
		return Usagef("%s; a filter goes with %s", what, bothNames(f))
	}
	return noCommand(cmd, arg, what)
}

// captureFilter are words that filters of tcpdump begin with, which are arguments there.
var captureFilter = []string{"dst", "ether", "host", "icmp", "ip", "net", "not", "port", "portrange", "proto", "src", "tcp", "udp", "vlan"}

func noCommand(cmd *cobra.Command, arg, what string) error {
	if arg == "version" {
		return Usagef("%s; did you mean --version?", what)
	}
	near := nearCommands(cmd, arg)
	if len(near) == 0 {
		return Usagef("%s; the commands are %s", what, strings.Join(commands(cmd), ", "))
	}
	for i, n := range near {
		near[i] = "'" + n + "'"
	}
	return Usagef("%s; did you mean %s?", what, strings.Join(near, " or "))
}

// nearCommands are the commands below cmd that may have been meant: those of which
// arg is the beginning, or else those that are spelt like it.
func nearCommands(cmd *cobra.Command, arg string) []string {
	names := commands(cmd)
	var begun []string
	for _, n := range names {
		if len(arg) > 1 && strings.HasPrefix(n, strings.ToLower(arg)) {
			begun = append(begun, n)
		}
	}
	if len(begun) > 0 {
		return begun
	}
	return nearest.Names(arg, names)
}

// commands are the names of the commands below cmd that the help shows.
func commands(cmd *cobra.Command) []string {
	var out []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			out = append(out, c.Name())
		}
	}
	return out
}

// word reports whether something looks like the name of a command, not like that
// of a file: letters and hyphens only.
func word(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r)) })
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments, but %s was given", cmd.Name(), strconv.Quote(args[0]))
	}
	return nil
}

// checkHelp makes the commands help and completion, which are not ours, fail for
// names that do not exist.
func checkHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				at := root
				for _, a := range args {
					next, _, err := at.Find([]string{a})
					if err != nil || next == at {
						return noCommand(at, a, "there is no command "+strconv.Quote(a))
					}
					at = next
				}
				return nil
			}
		case "completion":
			c.Args = CommandOnly
			c.RunE = func(*cobra.Command, []string) error { return Usagef("name a shell: bash, fish, powershell or zsh") }
		}
	}
}
