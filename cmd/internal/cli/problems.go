package cli

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/duplicates"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// maxMessages is how many malformed messages are named one by one.
const maxMessages = 20

// Problems reports on standard error what is wrong with the input of a program that decodes captures. It may
// be used by several goroutines.
type Problems struct {
	program string
	w       io.Writer

	mu       sync.Mutex
	hold     bool
	held     []string
	damaged  bool
	messages int // malformed RPC messages
}

// NewProblems returns the Problems of a program, written to w.
func NewProblems(program string, w io.Writer) *Problems { return &Problems{program: program, w: w} }

// Hold keeps lines back while a screen is shown, until Release.
func (p *Problems) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = true
}

// Release writes the lines that were held, and no longer holds any.
func (p *Problems) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = false
	for _, s := range p.held {
		fmt.Fprint(p.w, s)
	}
	p.held = nil
}

// Damage notes that the input is truncated or malformed: exit code 3.
func (p *Problems) Damage() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damaged = true
}

// Damaged reports whether the input is truncated or malformed.
func (p *Problems) Damaged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.damaged
}

// Message notes a call or reply that could not be decoded though all of it was
// captured.
func (p *Problems) Message(v *rpc.View) {
	v.Malformed(func(packet uint64, part string, err error) { p.malformed(packet, v.Tx.XID, part, err) })
}

func (p *Problems) malformed(packet uint64, xid uint32, what string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damaged = true
	p.messages++
	switch {
	case p.messages <= maxMessages:
		p.printf("packet %d: XID 0x%08x: malformed %s: %v", packet, xid, what, err)
	case p.messages == maxMessages+1:
		p.printf("more malformed messages are counted, not listed")
	}
}

// Files notes what is wrong with files and packets, once all has been read: list
// names the first of total problems.
func (p *Problems) Files(list []*capture.Problem, total int, st *decode.Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range list {
		p.printf("%v", x)
	}
	if total > len(list) {
		p.printf("%d more problems of this kind", total-len(list))
	}
	if total > 0 {
		p.damaged = true
	}
	if p.messages > maxMessages {
		p.printf("%d malformed messages in all", p.messages)
	}
	if bad := st.Undecodable - st.CutShort; bad > 0 {
		p.damaged = true
		p.printf("%s with malformed headers", units.Plural(bad, "packet"))
	}
	if n := st.OddFragments; n > 0 {
		p.damaged = true
		p.printf("%s that cannot be part of a datagram, or contradicted by others", units.Plural(n, "IP fragment"))
	}
	for _, line := range text.Streams(st) {
		p.damaged = true
		p.printf("%s", line)
	}
}

// Snapped notes packets that were captured in part only.
func (p *Problems) Snapped(packets uint64) {
	if packets > 0 {
		p.Printf("note: %s cut to the capture's snapshot length; what is missing is not decoded", units.Plural(packets, "packet"))
	}
}

// Selected notes packets that a span leaves out.
func (p *Problems) Selected(t *Selected) {
	if s := t.Note(); s != "" {
		p.Printf("note: %s", s)
	}
}

// Backwards notes places where the time of the capture goes back.
func (p *Problems) Backwards(st *decode.Stats) {
	if s := text.Backwards(&st.Backwards); s != "" {
		p.Printf("note: %s", s)
	}
}

// CapturedTwice notes capture points whose packets come more than once.
func (p *Problems) CapturedTwice(r capture.Reader) {
	d, ok := r.(*duplicates.Reader)
	if !ok {
		return
	}
	for _, f := range d.Found() {
		where := f.Tap.File
		if f.Tap.Interface > 0 {
			where = fmt.Sprintf("%s, interface %d,", where, f.Tap.Interface)
		}
		apart := units.Duration(f.Delay.Typical)
		often, points := fmt.Sprintf("twice, %s apart", apart), "a second capture point has"
		if n := f.Delay.Times; n > 2 {
			often, points = fmt.Sprintf("%d times within %s", n, apart), "other capture points have"
		}
		p.Printf("note: %s shows packets %s, as captures do that were merged, or a mirror of several ports: %s taken for what %s seen",
			where, often, units.Plural(f.Copies, "packet"), points)
	}
}

// Packets notes packets with a wrong ICRC, and a capture without packets.
func (p *Problems) Packets(st *decode.Stats, problems int) {
	if s := text.CutBefore(st); s != "" {
		p.Printf("note: %s", s)
	}
	if st.NotSplit > 0 {
		p.Printf("note: %s of several packets, as segmentation offload makes them, that could not be taken apart", units.Plural(st.NotSplit, "datagram"))
	}
	if s := text.WrongICRCs(st); s != "" {
		p.Printf("note: %s", s)
	}
	if st.BadCRC > 0 {
		p.Printf("note: %s with a wrong CRC", units.Plural(st.BadCRC, "FPDU"))
	}
	if n := st.IncompleteDatagrams; n > 0 {
		p.Printf("note: %s with fragments that are not in the capture: not decoded", units.Plural(n, "IP datagram"))
	}
	if g := &st.Sealed; g.Count > 0 {
		p.Printf("note: %s of RPC connections over TCP with TLS: %s not decoded; the first begins with packet %d", units.Plural(g.Count, "direction"), units.Plural(g.Bytes, "encrypted byte"), g.First)
	}
	if g := &st.TLSRefused; g.Count > 0 {
		p.Printf("note: TLS was refused in %s of RPC connections over TCP by an alert in plain text; the first is packet %d: %s", units.Plural(g.Count, "direction"), g.First, strings.TrimPrefix(tls.AlertError(g.Offset).Error(), "tls: "))
	}
	for _, s := range text.Attempts(st) {
		p.Printf("note: %s", s)
	}
	for _, s := range []string{text.Sequences(&st.Sequences), text.Sampled(&st.Sampled)} {
		if s != "" {
			p.Printf("note: %s", s)
		}
	}
	if st.Packets == 0 && problems == 0 {
		p.Printf("note: no packets")
	}
}

// Headers notes Sends whose RPC-over-RDMA headers cannot be decoded.
func (p *Problems) Headers(m *transaction.Malformed) {
	n := m.Total()
	if n == 0 {
		return
	}
	p.Damage()
	if f := &m.First; f.Ref.Seen() {
		p.Printf("packet %d: malformed RPC-over-RDMA header at byte %d of the Send: %v", f.Ref.Number, f.Offset, f.Fault)
	}
	p.Printf("%s in all: %s", units.Plural(n, "malformed RPC-over-RDMA header"), text.HeaderFaults(nil, m))
}

// GivenUp notes what a decoder no longer followed because of its limits. see names the flags that raise them.
func (p *Problems) GivenUp(calls uint64, st *decode.Stats, see Limits) {
	if calls > 0 {
		p.Printf("note: %s given up for lack of memory%s", units.Plural(calls, "open call"), see.Calls)
	}
	if n := st.EvictedConnections; n > 0 {
		p.Printf("note: %s no longer followed for lack of memory, and shown as evicted%s", units.Plural(n, "connection"), see.Connections)
	}
	if n := st.EvictedDatagrams; n > 0 {
		p.Printf("note: %s given up before all fragments had come", units.Plural(n, "IP datagram"))
	}
}

// Limits are what GivenUp says about flags.
type Limits struct{ Calls, Connections string }

var (
	// LimitFlags are for commands that limit calls and connections.
	LimitFlags = Limits{": see --limit-calls and --limit-memory", ": see --limit-connections and --limit-memory"}
	// MemoryFlag is for commands that limit memory only.
	MemoryFlag = Limits{": see --limit-memory", ": see --limit-memory"}
)

// Printf writes a line after the name of the program. Names of files, and text of captures, may be among args: it stays one line.
func (p *Problems) Printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printf(format, args...)
}

func (p *Problems) printf(format string, args ...any) {
	s := fitted(p.w, line(p.program, format, args...))
	if p.hold {
		p.held = append(p.held, s)
		return
	}
	fmt.Fprint(p.w, s)
}

// Tell writes a line after the name of a program, as Problems.Printf does.
func Tell(w io.Writer, program, format string, args ...any) {
	fmt.Fprint(w, fitted(w, line(program, format, args...)))
}

// fitted wraps a line at the width of the terminal that it is written to.
func fitted(w io.Writer, s string) string {
	columns, _ := Terminal(w)
	if p, ok := w.(pagedNotes); ok {
		columns = p.columns
	}
	if columns <= 0 {
		return s
	}
	return string(table.AppendFit(nil, []byte(strings.TrimSuffix(s, "\n")), columns)) + "\n"
}

func line(program, format string, args ...any) string {
	return program + ": " + printable.Line(fmt.Sprintf(format, args...)) + "\n"
}
