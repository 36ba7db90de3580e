package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// pair is a client and a server.
type pair struct {
	tenant         uint64
	client, server netip.Addr
}

// maxHostPairs is how many are distinguished.
const maxHostPairs = 1024

// Kinds of chunks that a call may have.
const (
	withRead = iota
	withWrite
	withReply
	chunkKinds
)

var chunkNames = [chunkKinds]string{"Read chunk", "Write chunk", "Reply chunk"}

// forms is what became of calls over all connections of a pair.
type forms struct {
	answered uint64 // all calls
	kinds    [chunkKinds]formCount
}

// formCount is what became of the calls with one kind of chunk.
type formCount struct {
	answered, unanswered, proven uint64 // proven: nothing is missing from the capture, and the connection ended
	last                         uint64 // each the last call before the end of its connection
	unread                       uint64 // no part of the Read list was read
	connections                  int
	connection                   int // of the newest
	f                            *Finding
}

// formRules judge which kinds of chunks get no reply between two hosts.
type formRules struct {
	*verdicts
	pairs map[pair]*forms
}

// form is the entry of a pair; nil beyond the limit.
func (c *formRules) form(p pair) *forms {
	x := c.pairs[p]
	if x == nil {
		if len(c.pairs) >= maxHostPairs {
			return nil
		}
		x = new(forms)
		c.pairs[p] = x
	}
	return x
}

// countForm notes whether a call was answered, by the chunks that it has.
func (t *txCheck) countForm() {
	tx, c := t.tx, t.c
	if c.on[ruleOneForm] == Off || tx.Backward || t.call == nil || t.k.many {
		return
	}
	x := t.k.forms[tx.From]
	if x == nil {
		if x = c.forms.form(pair{tx.Connection.Tenant, tx.Client().Addr, tx.Server().Addr}); x == nil {
			return
		}
		t.k.forms[tx.From] = x
	}
	if tx.Reply.Seen() {
		x.answered++
	}
	h := t.call
	for kind, has := range [chunkKinds]bool{len(h.Reads) > 0, len(h.Writes) > 0, h.HasReply} {
		if !has {
			continue
		}
		n := &x.kinds[kind]
		if tx.Reply.Seen() {
			n.answered++
			continue
		}
		n.unanswered++
		if t.ended() && t.k.misses() == [2]uint64{} {
			n.proven++
		}
		if len(h.Reads) > 0 && tx.Reads == 0 {
			n.unread++
		}
		if slices.ContainsFunc(tx.Notes, func(n transaction.Note) bool { return n.Kind == transaction.LastCall }) {
			n.last++
		}
		if id := tx.Connection.Resolve().ID; id != n.connection {
			n.connection = id
			n.connections++
		}
		if n.f == nil {
			n.f = t.finding(ruleOneForm, aboutCall, "", func() (string, string) { return "replies, as to other calls", "" })
			n.f.By, n.f.From, n.f.To = Responder, n.f.To, n.f.From
			t.faults--
		}
	}
}

// oneForm reports the kinds of chunks with which no call was answered.
func (c *formRules) oneForm() {
	var list []*Finding
	for _, x := range c.pairs {
		for kind := range x.kinds {
			n := &x.kinds[kind]
			if n.unanswered < 2 || n.proven == 0 || n.answered > 0 || x.answered == 0 {
				continue
			}
			facts := []string{fmt.Sprintf("no reply to %d of %d calls with a %s, on %s", n.unanswered, n.unanswered, chunkNames[kind], units.Plural(n.connections, "connection"))}
			if n.last > 0 {
				facts = append(facts, fmt.Sprintf("%d the last before its connection ended", n.last))
			}
			if n.unread > 0 {
				facts = append(facts, fmt.Sprintf("the Read list of %d was never read", n.unread))
			}
			facts = append(facts, fmt.Sprintf("%s without one answered", units.Plural(int(x.answered), "call")))
			n.f.Seen, n.f.Reaction = strings.Join(facts, "; "), ""
			list = append(list, n.f)
		}
	}
	c.reportAll(list)
	clear(c.pairs)
}

// unansweredFacts is what is known of a call without a reply.
func (t *txCheck) unansweredFacts() string {
	facts := "none"
	switch t.tx.CallDelivery() {
	case transaction.Acknowledged:
		facts += "; the call was acknowledged"
	case transaction.Refused:
		facts += "; the call was refused"
	case transaction.NotAcknowledged:
		facts += "; the call was never acknowledged"
	}
	if n := t.tx.Reads; n > 0 {
		facts += "; its Read list was read by " + units.Plural(n, "Read")
		if again := t.tx.Retransmits; again > 0 {
			facts += fmt.Sprintf(", with %s sent again", units.Plural(again, "packet"))
		}
	}
	for _, n := range t.tx.Notes {
		switch n.Kind {
		case transaction.NotPulled:
			facts += "; its Read list was never read"
		case transaction.LastCall:
			facts += "; the last call before the connection ended"
		}
	}
	return facts
}
