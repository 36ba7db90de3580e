package check

import "github.com/rpcrdma/toolkit/decode/rdma"

// wording says what was expected, and what was seen.
type wording func() (expected, seen string)

// audience is what is known of those who read findings. Most captures have some rule that thousands of transactions break, and of these only
// the first few are shown: the others are counted, and nothing is put into words.
type audience struct {
	gone   [ruleCount]uint8             // severities of which nobody reads any more, one bit each
	unread [ruleCount][Error + 1]uint64 // findings that nobody was told of
	blanks []*Finding                   // for findings without words
}

// wordless returns a Finding with what is counted.
func (a *audience) wordless(k *rdma.Connection, r id, deviation string, ref rdma.Ref, by Party) *Finding {
	var f *Finding
	if n := len(a.blanks); n > 0 {
		f, a.blanks = a.blanks[n-1], a.blanks[:n-1]
		*f = Finding{}
	} else {
		f = new(Finding)
	}
	f.Rule, f.Known, f.Connection, f.Ref, f.By = &rules[r], deviation, k.Resolve().ID, ref, by
	return f
}

// maxBlanks is how many Findings without words are ready for use: findings that have to wait for the packet at hand, and one more.
const maxBlanks = 16

// counted takes a finding that nobody reads.
func (a *audience) counted(f *Finding) {
	a.unread[f.Rule.id][f.Severity]++
	if len(a.blanks) < maxBlanks {
		a.blanks = append(a.blanks, f)
	}
}

// wanted reports whether somebody reads another finding of a rule. If it is false once, it stays so: what was not put into words
// when it was found is not missed when it is reported.
func (c *verdicts) wanted(r id, s Severity) bool {
	a := &c.audience
	if a.gone[r]>>s&1 != 0 {
		return false
	}
	if c.opt.Wanted == nil || c.apart.keeps(s) {
		return true
	}
	if c.opt.Wanted(&rules[r], s) {
		return true
	}
	a.gone[r] |= 1 << s
	return false
}

// Names reports whether findings may name files, for which the View of transactions needs Names.
func (c *Checker) Names() bool {
	s := c.on[ruleRecalled]
	return s != Off && (c.opt.Apart || c.opt.Wanted == nil || c.opt.Wanted(&rules[ruleRecalled], s))
}

// Unread is how many findings of a rule with a severity are counted, and were not reported, because nobody wanted them. It is complete after Finish.
func (c *Checker) Unread(r *Rule, s Severity) uint64 { return c.audience.unread[r.id][s] }
