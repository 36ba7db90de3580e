package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode/duplicates"
	"github.com/rpcrdma/toolkit/internal/units"
)

// source is where packets come from.
type source struct {
	capture.Reader
	name string
	live bool // packets come as they are captured
	// drops returns how many packets the system failed to deliver, and whether that is known.
	drops func() (uint64, bool)
	calls func() []live.Calls            // of the kernel's events; nil otherwise
	again func() (capture.Reader, error) // opens it once more; nil if that cannot be
	stop  func()                         // ends a live capture; nil otherwise
	notes func() []string                // what the user should know about it
	span  *cli.Selected                  // packets outside of it are left out
	cut   atomic.Uint64                  // packets of which the capture holds only the beginning
}

// Read implements capture.Reader.
func (s *source) Read(b *capture.Batch) error {
	err := s.span.Read(b, s.Reader.Read)
	n := uint64(0)
	for i := range b.Packets {
		if p := &b.Packets[i]; uint64(len(p.Data)) < uint64(p.Length) {
			n++
		}
	}
	if n > 0 {
		s.cut.Add(n)
	}
	return err
}

// openSource opens what the flags name.
func openSource(o *options, stdin io.Reader) (*source, error) {
	if len(o.interfaces) > 0 {
		return openLive(o)
	}
	if err := cli.Distinct("", o.read); err != nil {
		return nil, err
	}
	opt := capture.Options{BatchSize: o.memory.Batch()}
	span, err := o.span.Open(o.read, opt)
	if err != nil {
		return nil, err
	}
	opt.Stdin = stdin
	r, err := duplicates.Open(o.read, opt)
	if err != nil {
		return nil, err
	}
	name := o.read[0]
	if name == "-" {
		name = "standard input"
	}
	if n := len(o.read); n > 1 {
		name += " and " + units.Plural(n-1, "more file")
	}
	return &source{Reader: r, name: name, span: span, again: o.reopen(span)}, nil
}

// reopen opens the same files once more; it is nil if one of them is a pipe, of
// which nothing can be read twice.
func (o *options) reopen(span *cli.Selected) func() (capture.Reader, error) {
	for _, n := range o.read {
		if st, err := os.Stat(n); n == "-" || err != nil || !st.Mode().IsRegular() {
			return nil
		}
	}
	return func() (capture.Reader, error) {
		r, err := duplicates.Open(o.read, capture.Options{BatchSize: o.memory.Batch()})
		if err != nil {
			return nil, err
		}
		return span.Again().Reader(r), nil
	}
}

// openLive captures on network interfaces.
func openLive(o *options) (*source, error) {
	var names []string
	for _, s := range o.interfaces {
		for name := range strings.SplitSeq(s, ",") {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	t, err := cli.Traffic(names, o.ports, o.rpc, o.direct)
	if err != nil {
		return nil, err
	}
	if err := o.events.Check(names); err != nil {
		return nil, err
	}
	r, err := live.Open(live.Options{Interfaces: names, Filter: t.Expr(), Promiscuous: o.promisc, Segments: true, EventLevel: o.events.Level})
	if err != nil {
		return nil, err
	}
	return &source{
		Reader: r, name: strings.Join(names, ", "), live: true, stop: r.Stop,
		notes: func() []string { return append(r.Notes(), cli.Taken(names, t)) },
		drops: func() (n uint64, known bool) {
			for _, s := range r.Stats() {
				n += s.Dropped
			}
			return n, true
		},
		calls: func() (list []live.Calls) {
			for _, s := range r.Stats() {
				list = append(list, s.Calls...)
			}
			return list
		},
	}, nil
}

// end ends a live capture.
func (s *source) end() {
	if s.stop != nil {
		s.stop()
	}
}

// counters tells what the kernel could not deliver.
func (s *source) counters(w io.Writer) {
	n, _ := s.drops()
	fmt.Fprintf(w, "rpcrdma-top: %s: %s dropped for lack of room\n", s.name, units.Plural(n, "packet"))
	for _, c := range s.calls() {
		fmt.Fprintf(w, "rpcrdma-top: %s: %s\n", s.name, cli.Completeness(c))
	}
}
