package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/merge"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const mergedLong = `

STORE is the store that results were written to. The first line, and the key
"units" of JSON, tell how many units are done, missing, failed and set aside.
Units that are not done, and such whose results are malformed, are named on
standard error.

Exit status 3 says that units are not done, or that input was truncated or
malformed.`

// mergedOptions are the flags of the commands that show a result of all units of a job.
type mergedOptions struct {
	jobs    []string
	format  string
	formats []string
}

func (o *mergedOptions) register(cmd *cobra.Command, formats ...string) *pflag.FlagSet {
	o.formats = formats
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.jobs, "job", nil, "only the units of the job with this `ID`, and those before them; may be repeated (default: all of each tap)")
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	cmd.Args = cobra.ArbitraryArgs
	return f
}

// merged is a command under way.
type merged struct {
	set   *merge.Set
	notes *cli.Problems
	out   *bufio.Writer
	text  io.Writer // escapes what states say
}

// run finds the units, makes the first pass over their states, and lets show do the rest.
func (o *mergedOptions) run(cmd *cobra.Command, s *cli.Streams, args []string, show func(*merged) error, to ...state.Surveyor) error {
	switch {
	case !slices.Contains(o.formats, o.format):
		return cli.Usagef("-T is %s, not %q", strings.Join(o.formats, " or "), o.format)
	case len(args) != 1:
		return cli.Usagef("name one store")
	}
	for _, id := range o.jobs {
		if !layout.IsID(id) {
			return cli.Usagef("--job: %q is not an ID of a job", id)
		}
	}
	ctx, stop := cli.Context(cmd.Context())
	defer stop()
	m := &merged{notes: cli.NewProblems("rpcrdma-fleet", s.Err), out: bufio.NewWriterSize(s.Out, 64<<10)}
	m.text = printable.TextWriter(m.out)
	st, err := existingStore(ctx, args[0], m.notes)
	if err != nil {
		return err
	}
	defer st.Close()
	if m.set, err = merge.Open(ctx, st, o.jobs, to...); err != nil {
		return interrupted(ctx, err)
	}
	for _, p := range m.set.Units.Problems() {
		m.notes.Printf("%s", p)
	}
	if o.format == "text" {
		fmt.Fprintln(m.out, m.set.Units.Line())
	}
	if m.set.Units.Done > 0 {
		err = show(m)
	} else if o.format != "text" {
		err = printable.Indented(m.out, unitsOnly{&m.set.Units})
	}
	if err = errors.Join(err, m.out.Flush()); err != nil && !errors.Is(err, errFindings) {
		return interrupted(ctx, err)
	}
	// What is not complete must not be taken for a result, whatever it says.
	if !m.set.Units.Complete() {
		return cli.ErrDamaged
	}
	if err == nil && m.set.Units.Damaged > 0 {
		return cli.ErrDamaged
	}
	return err
}

func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	return err
}

// unitsOnly is a result that nothing is known for.
type unitsOnly struct {
	Units *merge.Units `json:"units"`
}
