package main

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

const whyLong = `Say why a mount is slow: which side, what, how much time, how certain, on what
evidence, and what to do or to ask next. The most important cause comes first.

The time of a cause is what would be gone without it: of all calls together as
the client's application saw them, or of the time that passed ("wall time") for
what keeps calls from being sent. Causes that overlap do not add up.

  certain   packets prove it
  likely    the capture shows no other explanation
  possible  worth a question

If nothing is slow, the command says so in a sentence. Give the captures of
several points together, or states that report saved of them.`

// whyWidth is how wide the text is.
const whyWidth = 80

type whyOptions struct {
	inputOptions
	format string
}

func newWhyCommand(s *cli.Streams) *cobra.Command {
	o := &whyOptions{}
	cmd := &cobra.Command{
		Use:     "why [flags] FILE...",
		Short:   "Say why a mount is slow: network, server or client, with evidence",
		Long:    whyLong,
		Example: "  rpcrdma-dump why trace.pcap\n  rpcrdma-dump why -T json trace.pcap",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text or json")
	o.inputOptions.flags(f)
	o.scrubFlag(f)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *whyOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if o.format != "text" && o.format != "json" {
		return cli.Usagef("-T is text or json, not %q", o.format)
	}
	if saved, err := areStates(append(slices.Clone(o.read), args...)); err != nil {
		return err
	} else if saved {
		return o.runStates(cmd, s, args)
	}
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	o.memory.Reserve(j.diagnosisMemory())
	r := diagnosis.New(whyOf(j))
	sessions := session.New(j.keys.Peek())
	sessions.Limit(o.memory.Scale(session.DefaultMemory / 2))
	sessions.Live()
	sessions.SlotsOnly()
	dec := o.decoder()
	dec.Concurrent = true
	dec.Observe(decode.Observer{Closed: r.Closed})
	r.Attach(&dec, o.memory.Scale(fabric.DefaultMemory), sessions)
	j.eachPoint(r, &o.inputOptions)
	v := rpc.View{Names: &rpc.Names{Limit: o.memory.Names()}, Unwrap: j.keys.Contexts}
	j.d = decode.New(dec, func(tx *transaction.Transaction) {
		v.Set(tx)
		if v.Undecoded() {
			j.notes.Message(&v)
		}
		r.Transaction(&v)
	})
	_, tty := cli.Terminal(s.Err)
	err = j.run(tty)
	rep := r.Report()
	if n := r.Beyond(); n > 0 {
		j.notes.Printf("note: %s left out, of connections or hosts beyond the limit", units.Plural(n, "call"))
	}
	return j.finish(err, o.print(s, rep))
}

// print writes a Report.
func (o *whyOptions) print(s *cli.Streams, rep *diagnosis.Report) error {
	out := newOutput(s, false, false)
	if o.format == "json" {
		return errors.Join(printable.Indented(out, rep), out.close())
	}
	results.Diagnosis(printable.TextWriter(out), rep, whyWidth, true)
	return out.close()
}

// runStates answers from saved states.
func (o *whyOptions) runStates(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if err := onlyWith(cmd, "read", "format", "width", "limit-memory"); err != nil {
		return err
	}
	all, err := readStates(append(slices.Clone(o.read), args...), int64(o.memory.Scale(stateBytes)))
	if err != nil {
		return err
	}
	rep, err := diagnosis.Merger{}.Report(all)
	switch {
	case err != nil:
		return err
	case rep == nil:
		return errors.New("the states say nothing of why it is slow: they were saved by another command than report")
	}
	return errors.Join(o.print(s, rep), damagedStates(s, all))
}

// diagnosisMemory is what calls that are looked at together take, and the decoders of several capture points.
func (j *job) diagnosisMemory() int {
	if len(j.in.names) > 1 {
		return 80 << 20
	}
	return 16 << 20
}

// eachPoint has a diagnosis join what several capture points show.
func (j *job) eachPoint(r *diagnosis.Recorder, o *inputOptions) {
	if !j.in.live && j.resume == nil {
		j.in.shown = r.Points(o.decoder(), o.memory.Scale(fabric.DefaultMemory), len(j.in.names), j.taps())
	}
}

// whyOf are the options for the input of a job.
func whyOf(j *job) (opt diagnosis.Options) {
	if len(j.in.names) == 1 {
		opt.File = filepath.Base(j.in.names[0])
	}
	return opt
}
