package check

import (
	"net/netip"
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Schemas of the objects that Append writes; docs/schema.md describes them.
const (
	FindingSchema = "rpcrdma.finding/1"
	SummarySchema = "rpcrdma.check_summary/1"
	RuleSchema    = "rpcrdma.rule/1"
)

// Append appends the finding as a JSON object.
func (f *Finding) Append(b []byte, e *ndjson.Encoder) []byte {
	b = append(b, `{"schema":"`+FindingSchema+`","rule":`...)
	b = ndjson.Quote(b, f.Rule.ID)
	b = str(b, "number", f.Rule.Number)
	b = str(b, "severity", f.Severity.String())
	b = str(b, "title", f.Rule.Title)
	b = str(b, "source", f.Rule.Source)
	if f.Known != "" {
		b = str(b, "known", f.Known)
	}
	b = append(b, `,"time":"`...)
	b = e.Time(b, f.Ref.Time)
	b = append(b, '"')
	b = num(b, "frame", f.Ref.Number)
	b = num(b, "connection", uint64(f.Connection))
	b = str(b, "fabric", f.Fabric.String())
	if f.HasXID {
		b = num(b, "xid", uint64(f.XID))
		direction := "forward"
		if f.Backward {
			direction = "backward"
		}
		b = str(b, "direction", direction)
	}
	if f.Program != "" || f.Operation != "" {
		b = str(b, "program", f.Program)
		b = str(b, "operation", f.Operation)
	}
	if f.CallFrame != 0 {
		b = num(b, "call_frame", f.CallFrame)
	}
	if f.ReplyFrame != 0 {
		b = num(b, "reply_frame", f.ReplyFrame)
	}
	b = str(b, "by", f.By.String())
	b = end(b, "by_address", "by_endpoint", f.From)
	b = end(b, "peer_address", "peer_endpoint", f.To)
	b = str(b, "expected", f.Expected)
	b = str(b, "seen", f.Seen)
	if f.Reaction != "" {
		b = str(b, "reaction", f.Reaction)
	}
	if f.CallKey != "" {
		b = str(b, "call_encoding_key", f.CallKey)
	}
	if f.ReplyKey != "" {
		b = str(b, "reply_encoding_key", f.ReplyKey)
	}
	return append(b, '}')
}

// AppendSummary appends what became of all rules as a JSON object.
func (c *Checker) AppendSummary(b []byte) []byte {
	b = append(b, `{"schema":"`+SummarySchema+`"`...)
	b = str(b, "profile", c.opt.Profile.String())
	b = num(b, "errors", c.total[Error])
	b = num(b, "warnings", c.total[Warning])
	b = num(b, "notes", c.total[Note])
	b = append(b, `,"rules":[`...)
	first := true
	for i := range rules {
		if c.on[i] == Off {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		n := &c.stats[i]
		b = append(b, `{"rule":`...)
		b = ndjson.Quote(b, rules[i].ID)
		b = str(b, "number", rules[i].Number)
		b = str(b, "severity", c.on[i].String())
		b = num(b, "judged", n.Judged)
		b = num(b, "findings", n.Found)
		b = num(b, "known", n.Known)
		b = num(b, "by_requester", n.By[Requester])
		b = num(b, "by_responder", n.By[Responder])
		if n.First.Seen() {
			b = num(b, "first_frame", n.First.Number)
		}
		b = append(b, `,"not_judged":{`...)
		sep := false
		for r, k := range n.NotJudged {
			if k == 0 {
				continue
			}
			if sep {
				b = append(b, ',')
			}
			sep = true
			b = ndjson.Quote(b, Reason(r).String())
			b = append(b, ':')
			b = strconv.AppendUint(b, k, 10)
		}
		b = append(b, "}}"...)
	}
	return append(b, "]}"...)
}

// Append appends the rule as a JSON object.
func (r *Rule) Append(b []byte) []byte {
	b = append(b, `{"schema":"`+RuleSchema+`","rule":`...)
	b = ndjson.Quote(b, r.ID)
	b = str(b, "number", r.Number)
	b = str(b, "title", r.Title)
	b = str(b, "source", r.Source)
	b = append(b, `,"severity":{`...)
	for i, p := range Profiles {
		if i > 0 {
			b = append(b, ',')
		}
		b = ndjson.Quote(b, p)
		b = append(b, ':')
		b = ndjson.Quote(b, r.Severity[i].String())
	}
	b = append(b, `},"needs":[`...)
	for i, n := range r.Needs.List() {
		if i > 0 {
			b = append(b, ',')
		}
		b = ndjson.Quote(b, n)
	}
	b = append(b, `],"bindings":[`...)
	for i, n := range r.Bindings {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"', 'B')
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, '"')
	}
	b = append(b, ']')
	if r.Known != "" {
		b = str(b, "known", r.Known)
	}
	b = str(b, "text", r.Text)
	return append(b, '}')
}

func str(b []byte, key, v string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	b = append(b, '"', ':')
	return ndjson.Quote(b, v)
}

func num(b []byte, key string, v uint64) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	b = append(b, '"', ':')
	return strconv.AppendUint(b, v, 10)
}

func end(b []byte, address, endpoint string, e rdma.End) []byte {
	a := ""
	if e.Addr != (netip.Addr{}) {
		a = link.AddrString(e.Addr)
	}
	b = str(b, address, a)
	n := e.QPN
	if n == 0 {
		n = uint32(e.Port)
	}
	return num(b, endpoint, uint64(n))
}
