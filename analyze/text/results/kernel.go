package results

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/kernel"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Kernel writes what transactions and the kernels' records have in common, and
// how they differ, as tables.
func Kernel(w io.Writer, r *kernel.Result) {
	w = printable.TextWriter(w) // names of operations, mounts and servers come from files
	for i := range r.Files {
		f := &r.Files[i]
		fmt.Fprintf(w, "%-11s %s: ", f.Kind, safe(filepath.Base(f.Name)))
		if f.Kind == "mountstats" {
			fmt.Fprintf(w, "%s of NFS", units.Plural(f.Mounts, "mount"))
		} else {
			fmt.Fprintf(w, "%s; %s of a client, %s to a server", units.Plural(f.Events, "event"), units.Plural(f.Calls, "call"), units.Plural(f.Requests, "request"))
		}
		if f.Lost > 0 {
			fmt.Fprintf(w, "; %s lost by the ring buffer", units.Plural(f.Lost, "event"))
		}
		if f.Unread > 0 {
			fmt.Fprintf(w, "; %s not understood", units.Plural(f.Unread, "line"))
		}
		fmt.Fprintln(w)
	}
	for _, c := range r.Clocks {
		printClock(w, c)
	}
	if r.Clients != nil {
		printRecords(w, "client", r.Clients)
	}
	if r.Servers != nil {
		printRecords(w, "server", r.Servers)
	}
	c := &r.Counts
	for _, x := range []struct {
		n    uint64
		what string
	}{
		{c.Backward, "calls of servers (callbacks) are not joined"}, {c.CallsBeyond, "calls of traces are left out: limit"},
		{c.RequestsBeyond, "requests of traces are left out: limit"}, {c.TransactionsBeyond, "transactions are left out of the join: limit"},
		{c.SumsBeyond, "transactions are left out of the sums: limit"},
	} {
		if x.n > 0 {
			fmt.Fprintf(w, "note        %d %s\n", x.n, x.what)
		}
	}
	printClientOps(w, r)
	printServerOps(w, r)
	for _, m := range r.Mounts {
		printMount(w, m)
	}
}

func printClock(w io.Writer, c *kernel.Clock) {
	fmt.Fprintf(w, "%-11s %s (%s): ", "clock", safe(filepath.Base(c.File)), c.Side)
	switch {
	case !c.Known:
		fmt.Fprintf(w, "not known: %s limit it from one side only\n", units.Plural(c.Calls, "call"))
	case c.Uncertainty < 0:
		fmt.Fprintf(w, "capture is ahead by %s, but %s contradict each other by %s: a clock was set\n",
			units.Seconds(c.Offset), units.Plural(c.Calls, "call"), units.Duration(-2*c.Uncertainty))
	default:
		drift := ""
		if c.Drift != 0 {
			drift = fmt.Sprintf(" and %.3g ppm of the time since", c.Drift)
		}
		fmt.Fprintf(w, "capture is ahead by %s%s ± %s, from %s\n", units.Seconds(c.Offset), drift, units.Duration(c.Uncertainty), units.Plural(c.Calls, "call"))
	}
}

func printRecords(w io.Writer, side string, n *kernel.Records) {
	fmt.Fprintf(w, "%-11s %d of %d are in the capture", side, n.Joined, n.Records)
	if n.Several > 0 {
		fmt.Fprintf(w, "; %d of them more than once", n.Several)
	}
	if n.Unfinished > 0 {
		fmt.Fprintf(w, "; %d did not end in the trace", n.Unfinished)
	}
	if n.Callbacks > 0 {
		fmt.Fprintf(w, "; %d are replies to callbacks", n.Callbacks)
	}
	if n.NotAwaited > 0 {
		fmt.Fprintf(w, "; %d did not wait for a reply", n.NotAwaited)
	}
	if n.Ambiguous > 0 {
		fmt.Fprintf(w, "; %d XIDs came too often", n.Ambiguous)
	}
	fmt.Fprintln(w)
	if n.Absent > 0 {
		var list []string
		for i, a := range n.AbsentOf {
			if i == 4 {
				list = append(list, "…")
				break
			}
			list = append(list, fmt.Sprintf("%s %d", a.Operation, a.Calls))
		}
		fmt.Fprintf(w, "%-11s %d are not: %s\n", "", n.Absent, strings.Join(list, ", "))
	}
}

func printClientOps(w io.Writer, r *kernel.Result) {
	if len(r.Client) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCLIENT: medians, and OUTSIDE = RTT - WIRE")
	header := []string{"OPERATION", "CALLS", "QUEUE", "RTT", "WIRE", "SHARE", "OUT MIN", "MEDIAN", "MAX", "SEND", "REPLY", "AFTER"}
	right := []bool{false, true, true, true, true, true, true, true, true, true, true, true}
	var rows [][]string
	for _, o := range r.Client {
		rows = append(rows, []string{
			fmt.Sprintf("%s%d %s", o.Program, o.Version, o.Operation), strconv.Itoa(o.Calls), median(o.Queue), median(o.RTT), median(o.Wire),
			units.WholePercent(o.Explained), units.Duration(o.Outside.Min), units.Duration(o.Outside.Median), units.Duration(o.Outside.Max), median(o.SendSide), median(o.ReplySide), median(o.After),
		})
	}
	_ = table.Print(w, header, right, rows)
	printSet(w, r.Clocks, "client", "SEND and REPLY")
	printOrder(w, r.ClientOrder, "wire", "RTT", "total on the wire", "the client's round trip")
}

func printServerOps(w io.Writer, r *kernel.Result) {
	if len(r.Server) == 0 {
		return
	}
	fmt.Fprintln(w, "\nSERVER: medians, and REST = PHASE - EXEC")
	header := []string{"OPERATION", "CALLS", "PHASE", "EXEC", "SHARE", "REST MIN", "MEDIAN", "MAX", "BEFORE", "BEHIND"}
	right := []bool{false, true, true, true, true, true, true, true, true, true}
	var rows [][]string
	for _, o := range r.Server {
		rows = append(rows, []string{
			fmt.Sprintf("%s%d %s", o.Program, o.Version, o.Operation), strconv.Itoa(o.Calls), median(o.Phase), median(o.Execute),
			units.WholePercent(o.Explained), units.Duration(o.Rest.Min), units.Duration(o.Rest.Median), units.Duration(o.Rest.Max), median(o.Before), median(o.Behind),
		})
	}
	_ = table.Print(w, header, right, rows)
	printSet(w, r.Clocks, "server", "BEFORE and BEHIND")
	printOrder(w, r.ServerOrder, "execution", "phase", "the server's execution", "the phase on the wire")
}

// printSet says which columns lack the calls of traces whose clock was set during the capture.
func printSet(w io.Writer, clocks []*kernel.Clock, side, columns string) {
	for _, c := range clocks {
		if c.Side == side && c.Known && c.Uncertainty < 0 {
			fmt.Fprintf(w, "%s of the calls in %s are not known: a clock was set\n", columns, safe(filepath.Base(c.File)))
		}
	}
}

func printOrder(w io.Writer, o *kernel.Order, a, b, part, whole string) {
	fmt.Fprintf(w, "%s", units.Plural(o.Pairs, "pair"))
	if o.Correlation != nil {
		fmt.Fprintf(w, ": rank correlation of %s and %s %.4f", a, b, *o.Correlation)
	}
	fmt.Fprintf(w, "; %s longer than %s: %d\n", part, whole, o.Violations)
	for i := range o.List {
		v := &o.List[i]
		fmt.Fprintf(w, "  0x%08x %s: wire %s, kernel %s", v.XID, v.Operation, units.Duration(v.Wire), units.Duration(v.Kernel))
		if v.Transactions > 1 || v.Sends > 1 {
			fmt.Fprintf(w, " (%s, put together %s)", units.Plural(v.Transactions, "transaction"), units.Plural(v.Sends, "time"))
		}
		if v.Again > 0 {
			fmt.Fprintf(w, " (%s of it seen again)", units.Plural(v.Again, "packet"))
		}
		fmt.Fprintln(w)
	}
	if n := o.Violations - len(o.List); n > 0 {
		fmt.Fprintf(w, "  and %d more\n", n)
	}
}

func printMount(w io.Writer, m *kernel.MountResult) {
	fmt.Fprintf(w, "\nMOUNT %s on %s, NFS %s", strings.Join(m.Devices, ", "), strings.Join(m.Points, ", "), m.Version)
	if m.Server != "" {
		fmt.Fprintf(w, ", server %s", m.Server)
	}
	if m.Basis == "calls" {
		fmt.Fprintln(w, ": the calls that it counted, as a trace shows them")
	} else {
		fmt.Fprintln(w, ": all transactions of this server and version")
	}
	if m.Reason != "" {
		fmt.Fprintf(w, "not compared: %s\n", m.Reason)
		return
	}
	header := []string{"OPERATION", "CALLS", "SENT", "TIMEOUTS", "ERRORS", "BYTES SENT", "RECEIVED", "QUEUE", "RTT", "WIRE", "DISTANCE"}
	right := []bool{false, true, true, true, true, true, true, true, true, true, true}
	var rows [][]string
	incomplete, unread := uint64(0), uint64(0)
	var unlisted []string
	for _, o := range m.Ops {
		unlisted = append(unlisted, o.Unlisted...)
		k, x := &o.Kernel, &o.Wire
		incomplete += x.Incomplete
		unread += x.Unread
		errs := "-"
		if k.Errors != nil {
			errs = both(*k.Errors, x.Errors)
			if x.Unread > 0 {
				errs = fmt.Sprintf("%d/%d?", *k.Errors, x.Errors)
			}
		}
		row := []string{
			shorten(strings.Join(o.Names, "+")), both(k.Calls, x.Calls), both(k.Sent, x.Sent), units.Number(k.Timeouts), errs,
			both(k.SentBytes, x.SentBytes), both(k.RecvBytes, x.RecvBytes), "-", "-", "-", "-",
		}
		if len(o.Unlisted) == len(o.Names) {
			for i, n := range map[int]uint64{1: x.Calls, 2: x.Sent, 5: x.SentBytes, 6: x.RecvBytes} {
				row[i] = fmt.Sprintf("?/%d", n)
			}
			row[3] = "?"
		}
		if k.Calls > 0 {
			row[7] = units.Duration(int64(float64(k.Queue) * 1e6 / float64(k.Calls)))
			row[8] = units.Duration(o.RTT)
		}
		if x.Whole > 0 {
			row[9] = units.Duration(x.Mean)
		}
		if k.Calls > 0 && x.Whole > 0 {
			row[10] = units.Duration(o.Distance)
		}
		rows = append(rows, row)
	}
	_ = table.Print(w, header, right, rows)
	fmt.Fprintln(w, "kernel/wire where they differ; QUEUE and RTT are means of milliseconds: exact to 1 ms / CALLS")
	if len(unlisted) > 0 {
		fmt.Fprintf(w, "the file has no line for %s: it may be cut\n", abridged(unlisted))
	}
	if m.Unnamed > 0 {
		fmt.Fprintf(w, "%s of the capture with this server not counted: it does not show their program\n", units.Plural(m.Unnamed, "transaction"))
	}
	if unread > 0 {
		fmt.Fprintf(w, "%s on the wire whose outcome cannot be read, since it is encrypted or cut: ERRORS has a ? there\n", units.Plural(unread, "call"))
	}
	if incomplete > 0 {
		fmt.Fprintf(w, "%s of the capture incomplete: bytes and errors on the wire are counted as far as they were captured\n", units.Plural(incomplete, "transaction"))
	}
}

// abridged lists the first few names.
func abridged(names []string) string {
	const most = 4
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

// shorten keeps names that stand together within their column.
func shorten(s string) string {
	const most = 28
	if len(s) <= most {
		return s
	}
	n := strings.Count(s, "+") + 1
	for strings.Contains(s, "+") {
		s = s[:strings.LastIndexByte(s, '+')]
		if t := fmt.Sprintf("%s+%d more", s, n-strings.Count(s, "+")-1); len(t) <= most {
			return t
		}
	}
	return s[:min(len(s), most)]
}

func both(kernel, wire uint64) string {
	if kernel == wire {
		return strconv.FormatUint(kernel, 10)
	}
	return fmt.Sprintf("%d/%d", kernel, wire)
}

func median(s kernel.Spread) string {
	if s.Count == 0 {
		return "-"
	}
	return units.Duration(s.Median)
}
