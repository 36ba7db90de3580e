package truth

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Kinds of findings.
const (
	KindSchema     = "schema"      // a line is not as the schema wants it
	KindMissing    = "missing"     // an RPC of the kernel's trace is no transaction
	KindExtra      = "extra"       // a transaction is not an RPC of the kernel's trace
	KindProcedure  = "procedure"   // program, version, procedure, minor version
	KindOperations = "operations"  // operations of a COMPOUND
	KindType       = "type"        // RDMA_MSG, RDMA_NOMSG
	KindChunks     = "chunks"      // chunk lists of the call
	KindWritten    = "written"     // lengths in the reply
	KindCredits    = "credits"     //
	KindHeader     = "header"      // size of the RPC-over-RDMA header
	KindCallBytes  = "call-bytes"  //
	KindReplyBytes = "reply-bytes" //
	KindMoved      = "moved"       // bytes moved by RDMA Read and Write
	KindLatency    = "latency"     // phases do not add up
	KindState      = "state"       //
	KindConnection = "connection"  // connection, endpoints, fabric
	KindCallback   = "callback"    //
	KindMountstats = "mountstats"  //
	KindNfsd       = "nfsd"        // the server's counters
	KindMD5        = "md5"         // contents of files
)

// Finding is one difference between the kernel and the decoder.
type Finding struct {
	Kind   string
	XID    string // empty if the finding is about no single RPC
	What   string
	Want   string // the kernel's value
	Got    string // the decoder's value
	Reason string // why it is no mistake; empty for a mismatch
}

func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-11s", f.Kind)
	if f.XID != "" {
		fmt.Fprintf(&b, " xid=%s", f.XID)
	}
	fmt.Fprintf(&b, " %s: kernel %s, decoder %s", f.What, f.Want, f.Got)
	if f.Reason != "" {
		fmt.Fprintf(&b, " (%s)", f.Reason)
	}
	return b.String()
}

// Report is the outcome of a comparison.
type Report struct {
	Name         string
	Transactions int // lines of ndjson
	RPCs         int // messages that the server decoded, over RDMA
	Matched      int // of these, found among the transactions
	Checks       int // values that were compared
	Files        int // files whose contents were compared and agree
	Mismatches   []Finding
	Explained    []Finding // differences that a rule explains
	RTT          RTT
	Notes        []string // worth a look, but no mismatch
}

// RTT compares total latency with what the client measured. It is for
// information only: the clocks differ, and the client's time includes the
// wake-up of its own threads.
type RTT struct {
	Pairs       int
	Longer      int     // transactions that took longer on the wire than for the client
	MedianRatio float64 // wire ÷ client
	Correlation float64 // Pearson, -1 to 1
}

// Kinds counts the mismatches of each kind.
func (r *Report) Kinds() map[string]int {
	m := make(map[string]int)
	for _, f := range r.Mismatches {
		m[f.Kind]++
	}
	return m
}

// Summary gives the counts of Kinds as text, "-" if there are none.
func (r *Report) Summary() string {
	k := r.Kinds()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(k)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, k[name]))
	}
	return cmp.Or(strings.Join(parts, " "), "-")
}

// Print writes each mismatch on a line, and with verbose also what was
// explained.
func (r *Report) Print(w io.Writer, verbose bool) {
	fmt.Fprintf(w, "%s: %d RPCs over RDMA, %d matched, %d transactions, %d values compared, %d files, %d mismatches, %d explained\n",
		r.Name, r.RPCs, r.Matched, r.Transactions, r.Checks, r.Files, len(r.Mismatches), len(r.Explained))
	if r.RTT.Pairs > 0 {
		fmt.Fprintf(w, "  latency on the wire / client's round trip: median %.3f, correlation %.4f, longer in %d of %d\n",
			r.RTT.MedianRatio, r.RTT.Correlation, r.RTT.Longer, r.RTT.Pairs)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
	for _, f := range r.Mismatches {
		fmt.Fprintf(w, "  %s\n", f)
	}
	if verbose {
		for _, f := range r.Explained {
			fmt.Fprintf(w, "  explained: %s\n", f)
		}
		return
	}
	reasons := make(map[string]int)
	for _, f := range r.Explained {
		reasons[f.Kind+": "+f.Reason]++
	}
	for _, k := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(w, "  explained: %d × %s\n", reasons[k], k)
	}
}
