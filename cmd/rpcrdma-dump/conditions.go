package main

import (
	"fmt"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// conditions are the rules that end a capture, nil if there are none.
func (o *captureOptions) conditions() (*stopper, error) {
	var rules []stopRule
	blamed := false
	if limit := o.latency; limit > 0 {
		rules = append(rules, func(v *rpc.View) string {
			if s := v.Tx.State; s == transaction.NoReply || s == transaction.NoCall {
				return ""
			}
			if p, ok := v.Tx.Phases(); ok && p.Total > limit {
				return fmt.Sprintf("took %v", p.Total)
			}
			return ""
		})
	}
	if o.match != "" {
		match, err := cli.Filter(o.match)
		if err != nil {
			return nil, err
		}
		blamed = match.Blame()
		rules = append(rules, func(v *rpc.View) string {
			if match.Match(v) {
				return "matches " + o.match
			}
			return ""
		})
	}
	var findings *check.Selection
	if o.broken != "" {
		s, err := check.Select(o.broken)
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		findings = &s
	}
	if len(rules) == 0 && findings == nil {
		return nil, nil
	}
	return newStopper(rules, findings, blamed, &o.memory), nil
}
