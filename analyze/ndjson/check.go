package ndjson

import (
	"net/netip"
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/digits"
)

// Schemas of what a check finds; docs/schema.md describes them.
const (
	FindingSchema = "rpcrdma.finding/1"
	SummarySchema = "rpcrdma.check_summary/1"
	RuleSchema    = "rpcrdma.rule/1"
)

// AppendFinding appends the object of a finding, without a newline.
func (e *Encoder) AppendFinding(b []byte, f *check.Finding) []byte {
	b = append(b, `{"schema":"`+FindingSchema+`","rule":`...)
	b = Quote(b, f.Rule.ID)
	b = str(b, `,"number":`, f.Rule.Number)
	b = str(b, `,"severity":`, f.Severity.String())
	b = str(b, `,"title":`, f.Rule.Title)
	b = str(b, `,"source":`, f.Rule.Source)
	if f.Known != "" {
		b = str(b, `,"known":`, f.Known)
	}
	b = append(b, `,"time":"`...)
	b = e.Time(b, f.Ref.Time)
	b = append(b, '"')
	b = num(b, `,"frame":`, f.Ref.Number)
	if f.Tap != "" {
		b = str(b, `,"tap":`, f.Tap)
	}
	if f.Capture != "" {
		b = str(b, `,"capture":`, f.Capture)
		b = num(b, `,"capture_frame":`, f.Packet)
	}
	b = num(b, `,"connection":`, uint64(f.Connection))
	if f.Key != "" {
		b = str(b, `,"connection_key":`, f.Key)
	}
	b = str(b, `,"fabric":`, f.Fabric.String())
	if f.HasXID {
		b = num(b, `,"xid":`, uint64(f.XID))
		b = append(digits.Hex32(append(b, `,"xid_hex":"0x`...), f.XID), '"')
		direction := "forward"
		if f.Backward {
			direction = "backward"
		}
		b = str(b, `,"direction":`, direction)
	}
	if f.Program != "" || f.Operation != "" {
		b = str(b, `,"program":`, f.Program)
		b = str(b, `,"operation":`, f.Operation)
	}
	if f.CallFrame != 0 {
		b = num(b, `,"call_frame":`, f.CallFrame)
	}
	if f.ReplyFrame != 0 {
		b = num(b, `,"reply_frame":`, f.ReplyFrame)
	}
	b = str(b, `,"by":`, f.By.String())
	b = end(b, `,"by_address":`, `,"by_endpoint":`, f.From)
	b = end(b, `,"peer_address":`, `,"peer_endpoint":`, f.To)
	b = str(b, `,"expected":`, f.Expected)
	b = str(b, `,"seen":`, f.Seen)
	if f.Reaction != "" {
		b = str(b, `,"reaction":`, f.Reaction)
	}
	if f.CallKey != "" {
		b = str(b, `,"call_encoding_key":`, f.CallKey)
	}
	if f.ReplyKey != "" {
		b = str(b, `,"reply_encoding_key":`, f.ReplyKey)
	}
	return append(b, '}')
}

// AppendCheckSummary appends the object with how often each rule was broken, and how often it could not be
// judged.
func AppendCheckSummary(b []byte, c *check.Checker) []byte {
	t := c.Totals()
	b = append(b, `{"schema":"`+SummarySchema+`"`...)
	b = str(b, `,"profile":`, c.Profile().String())
	b = num(b, `,"errors":`, t[check.Error])
	b = num(b, `,"warnings":`, t[check.Warning])
	b = num(b, `,"notes":`, t[check.Note])
	b = append(b, `,"rules":[`...)
	first := true
	for _, r := range check.Rules() {
		if !c.Enabled(r) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		n := c.Count(r)
		b = append(b, `{"rule":`...)
		b = Quote(b, r.ID)
		b = str(b, `,"number":`, r.Number)
		b = str(b, `,"severity":`, c.Severity(r).String())
		b = num(b, `,"judged":`, n.Judged)
		b = num(b, `,"findings":`, n.Found)
		b = num(b, `,"known":`, n.Known)
		b = num(b, `,"by_requester":`, n.By[check.Requester])
		b = num(b, `,"by_responder":`, n.By[check.Responder])
		if n.First.Seen() {
			b = num(b, `,"first_frame":`, n.First.Number)
		}
		b = append(b, `,"not_judged":{`...)
		sep := false
		for why, k := range n.NotJudged {
			if k == 0 {
				continue
			}
			if sep {
				b = append(b, ',')
			}
			sep = true
			b = Quote(b, check.Reason(why).String())
			b = append(b, ':')
			b = strconv.AppendUint(b, k, 10)
		}
		b = append(b, "}}"...)
	}
	return append(b, "]}"...)
}

// AppendRule appends the object of a rule.
func AppendRule(b []byte, r *check.Rule) []byte {
	b = append(b, `{"schema":"`+RuleSchema+`","rule":`...)
	b = Quote(b, r.ID)
	b = str(b, `,"number":`, r.Number)
	b = str(b, `,"title":`, r.Title)
	b = str(b, `,"source":`, r.Source)
	b = append(b, `,"severity":{`...)
	for i, p := range check.Profiles {
		if i > 0 {
			b = append(b, ',')
		}
		b = Quote(b, p)
		b = append(b, ':')
		b = Quote(b, r.Severity[i].String())
	}
	b = append(b, `},"needs":[`...)
	for i, n := range r.Needs.List() {
		if i > 0 {
			b = append(b, ',')
		}
		b = Quote(b, n)
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
		b = str(b, `,"known":`, r.Known)
	}
	b = str(b, `,"text":`, r.Text)
	return append(b, '}')
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
