package onepass

import (
	"cmp"
	"time"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/connections"
	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Options of a Pass.
type Options struct {
	// Decode has limits, the clock and the like. A Pass sets all functions in it.
	Decode decode.Options
	Report latency.Options
	Check  check.Options // Apart and Match are set by the Pass
	// Filter, if set, limits rows, the report, and findings to transactions; Expression is its text.
	Filter     *filter.Filter
	Expression string
	// Names is how many bytes of names of files are remembered, Fabric how many bytes what time was lost to takes,
	// Sessions how many sessions do; 0 is session.DefaultMemory.
	// Why is the memory of the diagnosis in bytes, 16 MiB by default.
	Names, Fabric, Sessions, Why int
	// Row, if set, is called for each transaction. After an error it is not called again.
	Row func(*rpc.View) error
	// Malformed, if set, is called for each transaction with a message that cannot be decoded, though all of it
	// was captured: see rpc.View.Malformed.
	Malformed func(*rpc.View)
}

// Pass is a run over the captures of one tap. It is for one goroutine.
type Pass struct {
	opt      Options
	d        *decode.Decoder
	report   *latency.Collector
	check    *check.Checker
	conns    *connections.Recorder
	sessions *session.Recorder
	why      *diagnosis.Recorder
	view     rpc.View
	parts    []decode.StatePart
	err      error
}

// New makes a Pass.
func New(opt Options) *Pass {
	p := &Pass{opt: opt, report: latency.NewCollector(opt.Report), conns: &connections.Recorder{}, sessions: session.New(nil)}
	opt.Check.Apart = true
	if opt.Filter != nil {
		opt.Check.Match = opt.Filter.Match
	}
	p.check = check.New(opt.Check, func(*check.Finding) {})
	p.view.Names = &rpc.Names{Limit: opt.Names}
	dec := opt.Decode
	dec.Concurrent = false // check wants one goroutine
	dec.Observe(p.report.Observer())
	if opt.Sessions > 0 {
		p.sessions.Limit(opt.Sessions)
	}
	p.why = diagnosis.New(diagnosis.Limited(cmp.Or(opt.Why, 16<<20)))
	p.why.Attach(&dec, opt.Fabric, p.sessions)
	p.parts = []decode.StatePart{p.why.Fabric(), p.sessions, p.why}
	dec.Observe(p.check.Observer())
	dec.Observe(decode.Observer{Closed: p.conns.Closed})
	dec.Observe(decode.Observer{Closed: p.why.Closed})
	p.d = decode.New(dec, p.transaction)
	return p
}

func (p *Pass) transaction(tx *transaction.Transaction) {
	v := &p.view
	v.Set(tx)
	if p.opt.Malformed != nil && v.Undecoded() {
		p.opt.Malformed(v)
	}
	p.check.Transaction(v)
	p.conns.Transaction(tx)
	p.why.Transaction(v) // all calls, also with a filter
	if p.opt.Filter == nil || p.opt.Filter.Match(v) {
		p.report.Add(v)
		if p.opt.Row != nil && p.err == nil {
			if p.err = p.opt.Row(v); p.err != nil {
				p.d.Stop()
			}
		}
	}
	v.Learn()
	p.sessions.Transaction(v) // all calls, also with a filter: slots are counted as they pass
}

// Feed decodes captures that follow those before it. An error of Options.Row ends it.
func (p *Pass) Feed(r capture.Reader) error {
	err := p.d.Feed(r)
	if p.err != nil {
		return p.err
	}
	return err
}

// Flush ends everything that is still open, after the last Feed.
func (p *Pass) Flush() error {
	p.d.Flush()
	p.check.Finish()
	return p.err
}

// Decoder is the decoder, to be asked and to be saved.
func (p *Pass) Decoder() *decode.Decoder { return p.d }

// Sections is what was found, after Flush; inputs are the names of the files. The Pass must not be used afterwards.
func (p *Pass) Sections(inputs []string) ([]state.Section, error) {
	st := p.d.Stats()
	account := p.d.Account()
	s := p.report.State(latency.Source{
		Account: &account, Inputs: inputs, Filter: p.opt.Expression, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last, Backwards: st.Backwards,
	})
	list := []state.Section{s.Section(), p.check.Section(p.opt.Expression), p.conns.Section(inputs, &account)}
	why, err := p.why.Report().Section(inputs)
	if err != nil {
		return nil, err
	}
	list = append(list, why)
	if x, ok := p.why.Calls(); ok {
		list = append(list, x)
	}
	rep := p.sessions.Report(inputs)
	if rep.Empty() {
		return list, nil
	}
	x, err := rep.Section()
	if err != nil {
		return nil, err
	}
	return append(list, x), nil
}

// followed is how many connections may have ended before the diagnosis forgets them: until then, the calls of several taps can be joined.
const followed = 512

// stragglers is for how long packets of a connection may come after its end.
const stragglers = int64(10 * time.Minute)

// Ended takes out what was found of connections that have ended, after a Feed: nothing more of them will be found. What is found of
// the others is to be completed with it: see Join. There are no sections if no connection has ended.
func (p *Pass) Ended() []state.Section {
	before := p.d.Stats().Last
	before.Number++
	before.Time -= stragglers
	if n, ok := p.d.Oldest(); ok {
		before.Number = n
	}
	p.why.Forget(followed)
	report, a := p.report.Ended(before, p.opt.Expression)
	checks, b := p.check.Ended(before, p.opt.Expression)
	conns, c := p.conns.Ended(before)
	if !a && !b && !c {
		return nil
	}
	return []state.Section{report, checks, conns}
}

// Join completes a unit with what Ended had taken out before it. The result has the bytes of a unit from which nothing was taken out.
func Join(u *state.Unit, ended []*state.Unit) (*state.Unit, error) {
	if len(ended) == 0 {
		return u, nil
	}
	sections := u.Sections()
	for i := range sections {
		var err error
		switch s := &sections[i]; s.Kind {
		case latency.SectionKind:
			*s, err = latency.Join(u, ended)
		case check.SectionKind:
			*s, err = check.Join(u, ended)
		case connections.SectionKind:
			*s, err = connections.Join(u, ended)
		}
		if err != nil {
			return nil, err
		}
	}
	return state.NewUnit(sections...), nil
}

// Findings is how many findings there are, after Sections.
func (p *Pass) Findings() (n uint64) {
	p.check.Sum()
	for _, k := range p.check.Totals() {
		n += k
	}
	return n
}
