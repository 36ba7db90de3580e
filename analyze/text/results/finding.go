package results

import (
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Findings writes findings of checks: a line with the rule and the place, and
// indented ones with who broke it, what was expected, what was seen, and what the
// peer did then.
type Findings struct {
	Clock text.Clock
	Color bool
	Name  func(netip.Addr) string // nil: addresses as they are
}

var severityColors = [...]string{"", text.ColorCyan, text.ColorYellow, text.ColorRed}

// Append appends a finding.
func (t *Findings) Append(b []byte, f *check.Finding) []byte {
	b = text.Paint(b, t.Color && f.Severity > 0, severityColors[f.Severity], fmt.Sprintf("%-7s", f.Severity))
	b = append(b, ' ')
	b = text.Paint(b, t.Color, text.ColorBold, f.Rule.ID)
	b = append(b, "  "...)
	b = append(b, f.Rule.Number...)
	b = append(b, " frame "...)
	b = strconv.AppendUint(b, f.Ref.Number, 10)
	b = append(b, ' ')
	at := len(b)
	if b = t.Clock.Append(b, f.Ref.Time); len(b) > at {
		for b[len(b)-1] == ' ' {
			b = b[:len(b)-1]
		}
		b = append(b, ' ')
	}
	switch name := f.Fabric.String(); {
	case f.Connection != 0:
		b = append(b, "conn "...)
		b = strconv.AppendInt(b, int64(f.Connection), 10)
	case name != "":
		b = append(b, name...)
	default: // it concerns no connection
		b = b[:len(b)-1]
	}
	if f.Tap != "" {
		b = append(b, " at "...)
		b = append(b, f.Tap...)
		if f.Capture != "" {
			b = fmt.Appendf(b, " (frame %d of %s)", f.Packet, path.Base(f.Capture))
		}
	}
	if f.HasXID {
		b = fmt.Appendf(b, " xid %08x", f.XID)
	}
	if f.Program != "" {
		b = append(b, ' ')
		b = append(b, f.Program...)
		if f.Operation != "" {
			b = append(b, ' ')
			b = append(b, f.Operation...)
		}
	}
	if f.Backward {
		b = append(b, " backward"...)
	}
	b = append(b, "\n        "...)
	if f.By != check.Unknown {
		b = append(b, f.By.String()...)
		b = append(b, ' ')
	}
	at = len(b)
	if b = t.end(b, f.From); len(b) > at {
		b = append(b, ": "...)
	}
	b = append(b, f.Rule.Title...)
	b = t.line(b, "expected", f.Expected)
	b = t.line(b, "seen", f.Seen)
	b = t.line(b, "then", f.Reaction)
	b = t.line(b, "known", f.Known)
	if f.Known == "" && (chunks(f.CallKey) || chunks(f.ReplyKey)) {
		b = t.line(b, "call", short(f.CallKey))
		b = t.line(b, "reply", short(f.ReplyKey))
	}
	return append(b, '\n')
}

// chunks reports whether an encoding key has any.
func chunks(key string) bool { return strings.ContainsAny(key, "1HL") }

const maxShown = 90

// short shortens an encoding key to a line.
func short(key string) string {
	if len(key) > maxShown {
		return key[:maxShown-len(" …")] + " …"
	}
	return key
}

func (t *Findings) line(b []byte, name, v string) []byte {
	if v == "" {
		return b
	}
	b = append(b, "\n        "...)
	b = text.Paint(b, t.Color, text.ColorDim, fmt.Sprintf("%-8s", name))
	b = append(b, ' ')
	return append(b, v...)
}

func (t *Findings) end(b []byte, e rdma.End) []byte {
	if e.Addr.IsValid() {
		if t.Name != nil {
			b = append(b, t.Name(e.Addr)...)
		} else {
			b = append(b, link.AddrString(e.Addr)...)
		}
	}
	switch {
	case e.QPN != 0:
		b = fmt.Appendf(b, " QP 0x%x", e.QPN)
	case e.Port != 0:
		b = fmt.Appendf(b, " port %d", e.Port)
	}
	return b
}
