package main

import (
	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/kernel"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/onepass"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// recorder is a latency.Recorder or a latency.Collector.
type recorder interface {
	Observer() decode.Observer
	State(latency.Source) *latency.State
}

// analyse decodes the input of a job and finds out what its report is made of; apart tells connections apart, so that
// it can be merged. Transactions that pass the filter also go to join, if there is one. All of them go to why, if there is one.
func analyse(
	j *job, s *cli.Streams, in *inputOptions, opt latency.Options, match *filter.Filter, expression string, join *kernel.Join, sessions *session.Recorder, why *diagnosis.Recorder, apart bool,
) (*latency.State, error) {
	in.memory.Reserve(8 << 20) // connections that have ended, sessions, what stalled
	if why != nil {
		in.memory.Reserve(j.diagnosisMemory())
	}
	opt.Memory = in.memory.Scale(latency.DefaultMemory)
	a := &analysis{
		view:  rpc.View{Names: &rpc.Names{Limit: in.memory.Names()}, Unwrap: j.keys.Contexts},
		notes: j.notes, match: match, join: join, sessions: sessions, why: why,
	}
	var r recorder
	if apart {
		a.apart = latency.NewCollector(opt)
		r = a.apart
	} else {
		a.recorder = latency.New(opt)
		r = a.recorder
	}
	a.plain = a.match == nil && a.join == nil && a.recorder != nil && a.sessions != nil
	dec := in.decoder()
	dec.Concurrent = true
	dec.Observe(r.Observer())
	switch {
	case why != nil:
		dec.Observe(decode.Observer{Closed: why.Closed})
		why.Attach(&dec, in.memory.Scale(fabric.DefaultMemory), sessions)
		j.eachPoint(why, in)
	case sessions != nil: // they find out about slots, too
		onepass.AttributeWith(&dec, in.memory.Scale(fabric.DefaultMemory), sessions)
	default:
		in.blame(&dec)
	}
	if opt.Draw != nil && opt.Top > 0 {
		dec.Transactions.Packets = drawnPackets
	}
	j.d = decode.New(dec, func(tx *transaction.Transaction) {
		v := &a.view
		v.Set(tx)
		if a.plain && v.Clean() { // as nearly all are
			a.recorder.Add(v)
			v.Learn()
			a.sessions.Transaction(v)
			if a.why != nil {
				a.why.Transaction(v)
			}
			return
		}
		a.other(v)
	})
	_, tty := cli.Terminal(s.Err)
	err := j.run(tty)
	st := j.d.Stats()
	account := j.d.Account()
	return r.State(latency.Source{
		Account: &account,
		Inputs:  j.in.bases(), Filter: expression, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last, Backwards: st.Backwards,
	}), err
}

// analysis takes the transactions of a report.
type analysis struct {
	view  rpc.View
	notes *cli.Problems
	match *filter.Filter // nil: all
	join  *kernel.Join   // nil: none

	why      *diagnosis.Recorder // nil: none
	sessions *session.Recorder   // nil: none
	recorder *latency.Recorder   // or apart
	apart    *latency.Collector
	plain    bool // there is no filter and no join, but a recorder and sessions
}

// other takes a transaction of which not everything is usual.
func (a *analysis) other(v *rpc.View) {
	if v.Undecoded() {
		a.notes.Message(v)
	}
	if a.match == nil || a.match.Match(v) {
		if a.recorder != nil {
			a.recorder.Add(v)
		} else {
			a.apart.Add(v)
		}
		if a.join != nil {
			a.join.Add(v)
		}
	}
	v.Learn()
	if a.why != nil {
		a.why.Transaction(v)
	}
	if a.sessions != nil { // all calls, also with a filter: slots are counted as they pass
		a.sessions.Transaction(v)
	}
}
