package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/sandbox"
	fleet "github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
	"github.com/rpcrdma/toolkit/decode/duplicates"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Orders are what an observer is told.
type Orders struct {
	Tap, Agent string
	Interfaces []string
	Files      []string
	Ports      []string // of iWARP
	RPC        bool     // also what needs no RDMA
	NoTunnels  bool
	Filter     string // of tcpdump, or of events
	Events     cli.Events
	Promisc    bool
	Speed      float64 // of files; 0 is as fast as possible
	Interval   time.Duration
	Folder     string        // for files of transactions; empty: none are written
	Every      time.Duration // a file ends after this time
	Memory     int           // bytes resident; 0 is the default
	User       string        // whom to become: sandbox.Options
	Mode       sandbox.Mode
}

// input is what is observed.
type input struct {
	capture.Reader
	drops func() (uint64, bool)
	stop  func()
	notes func() []string
}

func (o *Orders) open() (*input, error) {
	if len(o.Interfaces) == 0 {
		if err := cli.Distinct("", o.Files); err != nil {
			return nil, err
		}
		r, err := duplicates.Open(o.Files, capture.Options{})
		if err != nil {
			return nil, err
		}
		return &input{Reader: r, stop: func() {}, notes: func() []string { return nil }}, nil
	}
	t, err := cli.Traffic(o.Interfaces, o.Ports, o.RPC, o.NoTunnels)
	if err != nil {
		return nil, err
	}
	opt := live.Options{Interfaces: o.Interfaces, Promiscuous: o.Promisc, Segments: true, EventLevel: o.Events.Level}
	if slices.Contains(o.Interfaces, live.Events) {
		opt.EventFilter, err = live.ParseEventFilter(o.Filter)
	} else {
		var extra *pcapfilter.Expr
		extra, err = pcapfilter.Parse(o.Filter)
		opt.Filter = pcapfilter.And(t.Expr(), extra)
	}
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	r, err := live.Open(opt)
	if err != nil {
		return nil, err
	}
	return &input{
		Reader: r, stop: r.Stop,
		notes: func() []string { return append(r.Notes(), cli.Taken(o.Interfaces, t)) },
		drops: func() (n uint64, known bool) {
			for _, s := range r.Stats() {
				n += s.Dropped
			}
			return n, true
		},
	}, nil
}

// confine gives up privileges, files and network. What an observer of files may do is
// not taken away: its user could read them anyway.
func (o *Orders) confine() ([]string, error) {
	if len(o.Interfaces) == 0 {
		return nil, nil
	}
	opt := sandbox.Options{User: o.User, Mode: o.Mode}
	box, err := opt.Open(o.Folder != "")
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	if err := box.Drop(); err != nil {
		return nil, err
	}
	var n sandbox.Needs
	if o.Folder != "" {
		n.Files = []string{o.Folder + "/part"} // or whatever they are called
	}
	return box.Notes(), box.Confine(n)
}

// output writes records, from several goroutines.
type output struct {
	mu  sync.Mutex
	enc *json.Encoder
	err error
}

func (w *output) put(r Record) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = w.enc.Encode(r)
	}
	return w.err == nil
}

func (w *output) note(format string, args ...any) {
	w.put(Record{Note: fmt.Sprintf(format, args...)})
}

func (w *output) summary(s *fleet.Summary) bool {
	b, err := s.Encode()
	if err != nil {
		w.note("%v", err)
		return true
	}
	return w.put(Record{Summary: b})
}

// Observe captures and decodes until the input or the context ends, and writes Records.
func Observe(ctx context.Context, o *Orders, to io.Writer) error {
	w := &output{enc: json.NewEncoder(to)}
	in, err := o.open()
	if err != nil {
		return err
	}
	defer in.Close()
	notes, err := o.confine()
	if err != nil {
		return err
	}
	for _, n := range append(notes, in.notes()...) {
		w.note("%s", n)
	}
	problems := cli.NewProblems("observer", noteWriter{w})
	var parts *Parts
	opt := monitor.Options{Interval: o.Interval, History: 2, Message: problems.Message}
	opt.Decode.Live = true
	if o.Memory > 0 {
		m := cli.MemoryOf(o.Memory)
		opt.Decode.Memory, opt.Names = m.Decoder(), m.Names()
	}
	if o.Folder != "" {
		parts = &Parts{Dir: o.Folder, Tap: o.Tap, Agent: o.Agent, Every: o.Every, Ended: func(p Part) { w.put(Record{Part: &p}) }}
		opt.Message = func(v *rpc.View) {
			problems.Message(v)
			parts.Add(v)
		}
	}
	m := monitor.New(opt)
	if in.drops != nil {
		m.Drops(in.drops)
	}
	x := &observation{Observer: fleet.Observer{Tap: o.Tap, Agent: o.Agent}, w: w, parts: parts}
	feed := monitor.Start(m, in, monitor.FeedOptions{
		Speed: o.Speed, Live: len(o.Interfaces) > 0, Refresh: o.Interval, Interval: x.interval,
	})
	x.until(ctx, feed.Done(), o)
	if ctx.Err() != nil {
		in.stop()
		feed.Stop()
	}
	err = feed.Wait()
	end := feed.Ending()
	x.end(end.Snapshot)
	if end.Snapshot != nil {
		list, total := end.Reader.Problems()
		problems.Files(list, total, &end.Snapshot.Decoder)
		problems.Headers(&end.Snapshot.Orphans.Malformed)
		problems.CapturedTwice(in.Reader)
		problems.Backwards(&end.Snapshot.Decoder)
		problems.Packets(&end.Snapshot.Decoder, total)
	}
	if problems.Damaged() {
		w.put(Record{Damaged: true})
	}
	if w.err != nil {
		return w.err
	}
	if parts != nil && err == nil {
		if n, why := parts.Lost(); n > 0 {
			return fmt.Errorf("%s could not be written: %w", units.Plural(n, "transaction"), why)
		}
	}
	return err
}

// observation is what has been sent of a model.
type observation struct {
	fleet.Observer
	w     *output
	parts *Parts
	rest  bool // the last interval, which the end has cut, was not sent yet
	lost  uint64

	mu    sync.Mutex // of what follows, and of Observer until begun
	begun bool       // there was a packet: the time of packets, and of what the Model says, goes on from there
}

// until waits for the end. An agent that has not seen any packet says so each interval: who looks knows that it lives.
func (x *observation) until(ctx context.Context, done <-chan struct{}, o *Orders) {
	var each <-chan time.Time
	if len(o.Interfaces) > 0 {
		t := time.NewTicker(o.Interval)
		defer t.Stop()
		each = t.C
	}
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case now := <-each:
			x.mu.Lock()
			if x.begun {
				each = nil
			} else {
				x.w.summary(x.Nothing(now.Add(-o.Interval).UnixNano(), o.Interval))
			}
			x.mu.Unlock()
		}
	}
}

func (x *observation) interval(s *monitor.Snapshot) bool {
	x.mu.Lock()
	x.begun = true
	x.mu.Unlock()
	if s.Ended {
		x.rest = true // end sends it
		return true
	}
	ok := x.w.summary(x.Interval(s))
	if x.parts != nil {
		x.parts.Tick(s.Time)
		x.tell()
	}
	return ok
}

// tell says that transactions are not written.
func (x *observation) tell() {
	if n, err := x.parts.Lost(); n > x.lost {
		x.w.note("%s could not be written to a file: %v", units.Plural(n-x.lost, "transaction"), err)
		x.lost = n
	}
}

// end sends what has not filled an interval, and that this is all.
func (x *observation) end(s *monitor.Snapshot) {
	if x.parts != nil {
		_ = x.parts.Close() // counted
		x.tell()
	}
	if s == nil {
		return
	}
	var last *fleet.Summary
	if x.rest {
		last = x.Interval(s)
	} else {
		last = x.Nothing(s.Time, 1)
	}
	last.End = true
	x.w.summary(last)
}

// noteWriter makes lines notes.
type noteWriter struct{ w *output }

func (n noteWriter) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" {
			n.w.put(Record{Note: line})
		}
	}
	return len(b), nil
}
