package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

// stateBytes is how many bytes of one unit of a saved state a command reads at most.
const stateBytes = state.DefaultUnitBytes

// stateOption is the flag --save-state.
type stateOption struct {
	save string
}

func (o *stateOption) register(f *pflag.FlagSet) {
	f.StringVar(&o.save, "save-state", "", "also save what the result was made from to this `file`; the command reads such files in place of captures, and merges several")
}

// areStates reports whether the inputs are saved states. A mixture of states and captures is an error.
func areStates(names []string) (bool, error) {
	var states, others []string
	for _, n := range names {
		if isState(n) {
			states = append(states, n)
		} else {
			others = append(others, n)
		}
	}
	if len(states) > 0 && len(others) > 0 {
		for _, n := range others {
			if _, err := os.Stat(n); n != "-" && err != nil {
				return false, err
			}
		}
		return false, cli.Usagef("%s is a saved state and %s is not: save the state of the captures first", states[0], others[0])
	}
	return len(states) > 0, nil
}

// isState reports whether a regular file is a saved state.
func isState(name string) bool {
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(state.Magic))
	_, err = io.ReadFull(f, head)
	return err == nil && state.Is(head)
}

// readStates finds the units in saved states.
func readStates(names []string, limit int64) (*state.Index, error) {
	all := &state.Index{UnitBytes: limit}
	for _, n := range names {
		err := all.Add(n)
		if errors.Is(err, state.ErrSize) {
			return nil, fmt.Errorf("%s: %w: see --limit-memory", n, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
	}
	return all, nil
}

// onlyWith checks that all flags that were given are among those that go with saved states.
func onlyWith(cmd *cobra.Command, allowed ...string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(allowed, f.Name) {
			err = cli.Usagef("--%s goes with captures: with a saved state it was decided when the state was saved (possible: --%s)", f.Name, strings.Join(allowed, ", --"))
		}
	})
	return err
}

// createState creates the file of --save-state; nil if there is none.
func (o *stateOption) create(files *outfile.Files) (*cli.Output, error) {
	switch o.save {
	case "":
		return nil, nil
	case "-":
		return nil, cli.Usagef("--save-state writes to a file, not to standard output")
	}
	return cli.Create(files, o.save, nil)
}

// commitState writes the file of --save-state. ended is the error that the command ends with: a damaged input is saved
// as such, any other error leaves no file.
func (j *job) commitState(out *cli.Output, name string, ended error, sections ...state.Section) error {
	damaged := errors.Is(ended, cli.ErrDamaged)
	if out != nil && errors.Is(ended, cli.ErrInterrupted) {
		return fmt.Errorf("%w; %s was not written", ended, name)
	}
	if out == nil || ended != nil && !damaged {
		return ended
	}
	if err := j.whole(name); err != nil {
		return err
	}
	in := state.Input{Damaged: damaged}
	f := &state.File{}
	f.Add(state.NewUnit(append(sections, in.Section())...))
	if err := writeState(out, f); err != nil {
		return err
	}
	return ended
}

func writeState(out *cli.Output, f interface{ Write(io.Writer) error }) error {
	if out == nil {
		return nil
	}
	if err := f.Write(out); err != nil {
		return err
	}
	return out.Commit()
}

// damagedStates says how many units are of damaged inputs, which is an error.
func damagedStates(s *cli.Streams, all *state.Index) error {
	n := all.Damaged()
	if n == 0 {
		return nil
	}
	cli.NewProblems("rpcrdma-dump", s.Err).Printf("%d of %d states are of input that was truncated or malformed", n, all.Len())
	return cli.ErrDamaged
}
