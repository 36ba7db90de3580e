package truth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Options say how the transactions came about.
type Options struct {
	// Taps is the number of places where the packets were captured. With
	// two, each RPC may be there once or twice. Zero means one.
	Taps int
}

// Compare checks transactions against the truth. Every difference is either a
// mismatch or, if one of the package's rules explains it, listed with the
// reason.
func Compare(t *Truth, txs []*Transaction, opt Options) *Report {
	c := &comparison{
		t: t, taps: max(opt.Taps, 1), rep: &Report{Name: t.Name, Transactions: len(txs)},
		matched: make(map[*Send]*Transaction), toTruth: make(map[int]int), toOurs: make(map[int]int),
	}
	c.calls(txs)
	c.schema(txs)
	c.callbacks(txs)
	c.others(txs)
	for _, m := range t.Mounts {
		c.mount(m)
	}
	c.nfsd()
	c.rtt()
	return c.rep
}

type comparison struct {
	t       *Truth
	taps    int
	rep     *Report
	matched map[*Send]*Transaction
	toTruth map[int]int // connections: the decoder's number to the kernel's
	toOurs  map[int]int
}

// subject is what a finding is about; rules look at it.
type subject struct {
	kind string
	what string
	call *Call
	send *Send
	tx   *Transaction
}

func (s subject) xid() string {
	switch {
	case s.call != nil:
		return s.call.XID.String()
	case s.tx != nil:
		return XID(s.tx.XID).String()
	}
	return ""
}

// differ records a difference, explained or not.
func (c *comparison) differ(s subject, want, got string) {
	f := Finding{Kind: s.kind, XID: s.xid(), What: s.what, Want: want, Got: got}
	for _, r := range rules {
		if (r.kind == "" || r.kind == s.kind) && r.applies(c, s, want, got) {
			f.Reason = r.reason
			c.rep.Explained = append(c.rep.Explained, f)
			return
		}
	}
	c.rep.Mismatches = append(c.rep.Mismatches, f)
}

// check compares one value.
func check[T comparable](c *comparison, s subject, kind, what string, want, got T) {
	c.rep.Checks++
	if want != got {
		s.kind, s.what = kind, what
		c.differ(s, fmt.Sprint(want), cmp.Or(fmt.Sprint(got), `""`))
	}
}

// phases are the parts of the latency that add up to the total.
var phases = []string{"call_transfer", "argument_pull", "server", "result_push", "reply_transfer"}

// schema checks what every line must obey, whatever the kernel says.
func (c *comparison) schema(txs []*Transaction) {
	paired := make(map[*Transaction]bool)
	for _, tx := range c.matched {
		paired[tx] = true
	}
	for _, tx := range txs {
		s := subject{tx: tx}
		line := " of line " + strconv.Itoa(tx.Line)
		check(c, s, KindSchema, "schema"+line, TransactionSchema, tx.Schema)
		check(c, s, KindSchema, "missing keys"+line, "none", cmp.Or(strings.Join(tx.Missing, " "), "none"))
		switch tx.Direction {
		case "forward", "backward":
		default:
			check(c, s, KindSchema, "direction"+line, "forward or backward", tx.Direction)
		}
		switch tx.State {
		case "complete", "no_reply", "no_call", "incomplete":
		default:
			check(c, s, KindSchema, "state"+line, "a known state", tx.State)
		}
		if tx.State != "complete" {
			continue
		}
		var sum int64
		for _, p := range phases {
			v, ok := tx.LatencyNS[p]
			if !ok || v < 0 {
				check(c, s, KindLatency, "phase "+p, "0 or more", fmt.Sprint(v))
			}
			sum += v
		}
		check(c, s, KindLatency, "sum of phases and total", sum, tx.LatencyNS["total"])
		if !paired[tx] {
			check(c, s, KindMoved, "rdma_write_bytes and lengths in the reply", written(tx), tx.RDMAWriteBytes)
		}
	}
}

// written adds up the lengths that a reply's lists state.
func written(tx *Transaction) (n uint64) {
	for _, chunk := range tx.WrittenChunks {
		n += length(chunk)
	}
	return n + length(tx.WrittenReplyChunk)
}

func length(chunk []SegmentJSON) (n uint64) {
	for _, s := range chunk {
		n += uint64(s.Length)
	}
	return n
}

// calls pairs the forward transactions over RDMA with the kernel's sends and
// checks each pair.
func (c *comparison) calls(txs []*Transaction) {
	byXID := make(map[XID][]*Transaction)
	known := make(map[XID]bool)
	for _, call := range c.t.Calls {
		known[call.XID] = true
	}
	for _, tx := range txs {
		if !tx.OverRDMA() || tx.Direction == "backward" {
			continue
		}
		if !known[XID(tx.XID)] {
			c.differ(subject{kind: KindExtra, what: "transaction", tx: tx}, "no RPC with this XID", describe(tx))
			continue
		}
		byXID[XID(tx.XID)] = append(byXID[XID(tx.XID)], tx)
	}
	for _, list := range byXID {
		slices.SortStableFunc(list, func(a, b *Transaction) int { return a.Time.Compare(b.Time) })
	}
	for _, call := range c.t.Calls {
		c.call(call, byXID[call.XID])
	}
}

func describe(tx *Transaction) string {
	return fmt.Sprintf("%s v%d %s, %s, line %d", tx.Program, tx.Version, tx.Procedure, tx.State, tx.Line)
}

// call pairs the sends of one XID with its transactions: first those whose
// chunks are the same, then the rest in order.
func (c *comparison) call(call *Call, txs []*Transaction) {
	used := make(map[*Send]int)
	rest := txs[:0:0]
	pair := func(s *Send, tx *Transaction) {
		used[s]++
		if c.matched[s] == nil {
			c.matched[s] = tx
		}
		c.pair(call, s, tx)
	}
	for _, tx := range txs {
		i := slices.IndexFunc(call.Sends, func(s *Send) bool { return used[s] < c.taps && s.Decoded() && sameChunks(s, tx) })
		if i < 0 {
			rest = append(rest, tx)
			continue
		}
		pair(call.Sends[i], tx)
	}
	for _, tx := range rest {
		i := slices.IndexFunc(call.Sends, func(s *Send) bool { return used[s] == 0 && s.Decoded() })
		if i < 0 {
			// What the client marshalled may have been sent and lost.
			i = slices.IndexFunc(call.Sends, func(s *Send) bool { return used[s] == 0 })
		}
		if i < 0 {
			c.differ(subject{kind: KindExtra, what: "transaction", call: call, tx: tx},
				fmt.Sprintf("%d RPCs with this XID", len(call.Sends)), describe(tx))
			continue
		}
		pair(call.Sends[i], tx)
	}
	for _, s := range call.Sends {
		if s.Decoded() {
			c.rep.RPCs++
			c.rep.Checks++
		}
		if used[s] > 0 {
			if s.Decoded() {
				c.rep.Matched++
			}
			continue
		}
		c.differ(subject{kind: KindMissing, what: "RPC", call: call, send: s},
			fmt.Sprintf("%s v%d %s", call.Program, call.Version, call.Procedure), "no transaction")
	}
}

func sameChunks(s *Send, tx *Transaction) bool {
	return readText(tx.ReadChunks) == text(s.Read) && offered(tx) == text(slices.Concat(s.Write, s.Reply))
}

// offered is the Write list and the Reply chunk of the call, in this order.
func offered(tx *Transaction) string {
	return segmentsText(slices.Concat(append(slices.Clone(tx.WriteChunks), tx.ReplyChunk)...))
}

func text[T fmt.Stringer](list []T) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = s.String()
	}
	return cmp.Or(strings.Join(parts, " "), "none")
}

func segmentsText(list []SegmentJSON) string {
	segs := make([]Segment, len(list))
	for i, s := range list {
		segs[i] = Segment(s)
	}
	return text(segs)
}

func readText(chunks []ReadChunk) string {
	var segs []ReadSegment
	for _, ch := range chunks {
		for _, s := range ch.Segments {
			segs = append(segs, ReadSegment{ch.Position, Segment(s)})
		}
	}
	return text(segs)
}

// pair checks one transaction against the send that it is.
func (c *comparison) pair(call *Call, s *Send, tx *Transaction) {
	sub := subject{call: call, send: s, tx: tx}
	haveCall := call.Outside != OutsideCall && call.Outside != OutsideBoth
	haveReply := call.Outside != OutsideReply && call.Outside != OutsideBoth
	c.endpoints(sub)
	switch {
	case haveCall && haveReply && s.Decoded() && s.Answered():
		check(c, sub, KindState, "state", "complete", tx.State)
	case haveCall && !haveReply:
		check(c, sub, KindState, "state", "no_reply", tx.State)
	case !haveCall && haveReply:
		check(c, sub, KindState, "state", "no_call", tx.State)
	}
	if haveCall {
		c.pairCall(sub)
	}
	if haveReply && s.Answered() {
		c.pairReply(sub)
	}
}

func (c *comparison) pairCall(sub subject) {
	call, s, tx := sub.call, sub.send, sub.tx
	check(c, sub, KindProcedure, "program", fmt.Sprintf("%s v%d", call.Program, call.Version), fmt.Sprintf("%s v%d", tx.Program, tx.Version))
	want := call.Procedure
	if call.Program == "nfs" && call.Version == 4 && want != "NULL" {
		want = "COMPOUND"
	}
	if call.Served != "" {
		want = call.Served
	}
	if want != "" {
		check(c, sub, KindProcedure, "procedure", want, tx.Procedure)
	}
	if want == "COMPOUND" {
		c.compound(sub)
	}
	wantType := "RDMA_MSG"
	if s.NoMsg {
		wantType = "RDMA_NOMSG"
	}
	check(c, sub, KindType, "call_type", wantType, tx.CallType)
	check(c, sub, KindChunks, "read_chunks", text(s.Read), readText(tx.ReadChunks))
	if s.Marshalled() {
		check(c, sub, KindChunks, "write_chunks", text(s.Write), segmentsText(slices.Concat(tx.WriteChunks...)))
		check(c, sub, KindChunks, "reply_chunk", text(s.Reply), segmentsText(tx.ReplyChunk))
		check(c, sub, KindChunks, "number of Write chunks", min(len(s.Write), 1), len(tx.WriteChunks))
		check(c, sub, KindCallBytes, "call_bytes", s.CallBytes(), tx.CallBytes)
	} else {
		check(c, sub, KindChunks, "write_chunks and reply_chunk", text(s.Write), offered(tx))
	}
	check(c, sub, KindHeader, "size of the header", s.Header, headerSize(tx))
	if s.Decoded() {
		check(c, sub, KindCredits, "credits_requested", s.Requested, tx.CreditsRequested)
		var n uint64
		for _, r := range s.Read {
			n += uint64(r.Length)
		}
		check(c, sub, KindMoved, "rdma_read_bytes", n, tx.RDMAReadBytes)
	}
}

func (c *comparison) pairReply(sub subject) {
	s, tx := sub.send, sub.tx
	check(c, sub, KindCredits, "credits_granted", s.Granted, tx.CreditsGranted)
	var sum uint64
	for _, n := range s.Written {
		sum += uint64(n)
	}
	wantType := "RDMA_MSG"
	if len(s.Reply) > 0 && sum > 0 {
		wantType = "RDMA_NOMSG"
	}
	if s.Marshalled() {
		check(c, sub, KindType, "reply_type", wantType, tx.ReplyType)
	}
	if !s.Decoded() {
		return
	}
	if s.Written != nil {
		want := slices.Concat(s.Write, s.Reply)
		for i := range want {
			if i < len(s.Written) {
				want[i].Length = s.Written[i]
			}
		}
		got := slices.Concat(append(slices.Clone(tx.WrittenChunks), tx.WrittenReplyChunk)...)
		check(c, sub, KindWritten, "written_chunks and written_reply_chunk", text(want), segmentsText(got))
		if len(s.Reply) > 0 {
			check(c, sub, KindWritten, "number of written_chunks", 0, len(tx.WrittenChunks))
		}
	}
	check(c, sub, KindMoved, "rdma_write_bytes", sum, tx.RDMAWriteBytes)
	if wantType == "RDMA_NOMSG" && s.Marshalled() {
		check(c, sub, KindReplyBytes, "reply_bytes", sum, tx.ReplyBytes)
	}
}

// headerSize is the size in bytes of the call's RPC-over-RDMA header as its
// lists make it (RFC 8166, section 4).
func headerSize(tx *Transaction) uint32 {
	n := 28
	for _, ch := range tx.ReadChunks {
		n += 24 * len(ch.Segments)
	}
	for _, ch := range tx.WriteChunks {
		n += 8 + 16*len(ch)
	}
	if tx.ReplyChunk != nil {
		n += 4 + 16*len(tx.ReplyChunk)
	}
	return uint32(n)
}

// minor is the minor version of the mount.
func (c *comparison) minor() (uint32, bool) {
	_, m, ok := strings.Cut(c.t.Scenario["VERS"], ".")
	n, err := strconv.ParseUint(m, 10, 32)
	return uint32(n), ok && err == nil
}

func (c *comparison) compound(sub subject) {
	tx := sub.tx
	minor, ok := c.minor()
	switch {
	case ok && tx.MinorVersion == nil:
		check(c, sub, KindProcedure, "minor_version", fmt.Sprint(minor), "absent")
	case ok:
		check(c, sub, KindProcedure, "minor_version", minor, *tx.MinorVersion)
	case tx.MinorVersion != nil:
		minor = *tx.MinorVersion
	}
	if n := len(tx.Operations); n > 0 && tx.Operations[n-1].Status != "" {
		check(c, sub, KindOperations, "status, by the last operation", tx.Operations[n-1].Status, tx.Status)
	}
	if sub.call.Procedure == "" {
		return
	}
	c.rep.Checks++
	if !compoundMatches(sub.call.Procedure, minor, tx.Operations) {
		sub.kind, sub.what = KindOperations, "operations"
		names := make([]string, len(tx.Operations))
		for i, op := range tx.Operations {
			names[i] = op.Op + "=" + op.Status
		}
		c.differ(sub, sub.call.Procedure, cmp.Or(strings.Join(names, " "), "none"))
	}
}

// fabrics maps the scenario's driver to the fabric.
var fabrics = map[string]string{"rxe": "rocev2", "siw": "iwarp"}

// endpoints checks addresses and that connections are neither merged nor
// split.
func (c *comparison) endpoints(sub subject) {
	s, tx := sub.send, sub.tx
	if want := fabrics[c.t.Scenario["DRIVER"]]; want != "" {
		check(c, sub, KindConnection, "fabric", want, tx.Fabric)
	}
	if s.Connection < 1 || s.Connection > len(c.t.Connections) {
		return
	}
	k := c.t.Connections[s.Connection-1]
	check(c, sub, KindConnection, "client", k.Client, tx.Client)
	check(c, sub, KindConnection, "server", k.Server, tx.Server)
	if tx.Fabric == "iwarp" {
		check(c, sub, KindConnection, "client_endpoint", uint64(k.ClientPort), tx.ClientEndpoint)
		check(c, sub, KindConnection, "server_endpoint", uint64(k.ServerPort), tx.ServerEndpoint)
	}
	if n, ok := c.toTruth[tx.Connection]; ok {
		check(c, sub, KindConnection, "connection "+strconv.Itoa(tx.Connection)+" is the kernel's", s.Connection, n)
	} else {
		c.toTruth[tx.Connection] = s.Connection
	}
	if n, ok := c.toOurs[s.Connection]; ok && c.taps == 1 {
		check(c, sub, KindConnection, "the kernel's connection "+strconv.Itoa(s.Connection)+" is connection", n, tx.Connection)
	} else {
		c.toOurs[s.Connection] = tx.Connection
	}
}

// callbacks compares backchannel calls: those of the client's trace with the
// backward transactions.
func (c *comparison) callbacks(txs []*Transaction) {
	byXID := make(map[XID][]*Transaction)
	for _, tx := range txs {
		if tx.OverRDMA() && tx.Direction == "backward" {
			byXID[XID(tx.XID)] = append(byXID[XID(tx.XID)], tx)
		}
	}
	for _, cb := range c.t.Callbacks {
		sub := subject{kind: KindCallback, what: "callback " + cb.XID.String()}
		list := byXID[cb.XID]
		if len(list) == 0 {
			c.rep.Checks++
			c.differ(sub, "on the backchannel", "no backward transaction")
			continue
		}
		tx := list[0]
		byXID[cb.XID] = list[min(len(list), c.taps):]
		sub.tx = tx
		check(c, sub, KindCallback, "program", "nfs_cb", tx.Program)
		if cb.Replied {
			check(c, sub, KindCallback, "state", "complete", tx.State)
		}
		if cb.Connection >= 1 && cb.Connection <= len(c.t.Connections) {
			k := c.t.Connections[cb.Connection-1]
			check(c, sub, KindCallback, "client (the requester)", k.Server, tx.Client)
			check(c, sub, KindCallback, "server (the responder)", k.Client, tx.Server)
		}
	}
	for _, tx := range txs {
		if list := byXID[XID(tx.XID)]; slices.Contains(list, tx) {
			c.differ(subject{kind: KindCallback, what: "backward transaction", tx: tx}, "no callback with this XID", describe(tx))
		}
	}
}

// others compares what the client sent over TCP and UDP. Local services, such
// as the registration at its own rpcbind, are in the trace but not on the wire.
func (c *comparison) others(txs []*Transaction) {
	byXID := make(map[XID]*Transaction)
	for _, tx := range txs {
		if !tx.OverRDMA() {
			byXID[XID(tx.XID)] = tx
		}
	}
	for _, o := range c.t.Others {
		tx := byXID[o.XID]
		sub := subject{tx: tx, call: &Call{XID: o.XID, Program: o.Program, Version: o.Version, Procedure: o.Procedure}}
		if tx == nil {
			if o.Program == "mount" || o.Program == "nlm" {
				c.rep.Checks++
				sub.kind, sub.what = KindMissing, "RPC over TCP or UDP"
				c.differ(sub, fmt.Sprintf("%s v%d %s", o.Program, o.Version, o.Procedure), "no transaction")
			}
			continue
		}
		if o.Program == "nfs" && o.Version == 4 && o.Procedure != "NULL" && tx.Procedure == "COMPOUND" {
			// The client's trace has its own name for the COMPOUND.
			c.compound(sub)
			continue
		}
		if !sameProgram(o.Program, tx.Program) || tx.Version != o.Version || !sameProcedure(o.Program, o.Procedure, tx.Procedure) {
			sub.kind, sub.what = KindProcedure, "program"
			c.differ(sub, fmt.Sprintf("%s v%d %s", o.Program, o.Version, o.Procedure),
				fmt.Sprintf("%s v%d %s", tx.Program, tx.Version, tx.Procedure))
		}
		c.rep.Checks++
	}
}

// rtt compares durations. On the wire a transaction cannot take longer than
// for the client, which measures from after the Send was posted to the reply's
// arrival, by more than the clocks of two machines differ; a copy of the reply
// that came too late may have been taken for the reply.
func (c *comparison) rtt() {
	var wire, client, ratios []float64
	for _, call := range c.t.Calls {
		if call.RTT == 0 || len(call.Sends) != 1 {
			continue
		}
		tx := c.matched[call.Sends[0]]
		if tx == nil || tx.State != "complete" {
			continue
		}
		w, k := float64(tx.LatencyNS["total"]), float64(call.RTT)*1000
		wire, client, ratios = append(wire, w), append(client, k), append(ratios, w/k)
		if w > k {
			c.rep.RTT.Longer++
			c.rep.Notes = append(c.rep.Notes, fmt.Sprintf(
				"xid=%s %s took %.3f ms on the wire (call frame %s, reply frame %s), but the client had its reply after %.3f ms",
				call.XID, call.Procedure, w/1e6, frameText(tx.CallFrame), frameText(tx.ReplyFrame), k/1e6))
		}
	}
	c.rep.RTT.Pairs = len(wire)
	if len(wire) == 0 {
		return
	}
	slices.Sort(ratios)
	c.rep.RTT.MedianRatio = ratios[len(ratios)/2]
	c.rep.RTT.Correlation = correlation(wire, client)
}

func frameText(n *uint64) string {
	if n == nil {
		return "none"
	}
	return strconv.FormatUint(*n, 10)
}

func correlation(a, b []float64) float64 {
	var ma, mb float64
	for i := range a {
		ma += a[i] / float64(len(a))
		mb += b[i] / float64(len(b))
	}
	var ab, aa, bb float64
	for i := range a {
		ab += (a[i] - ma) * (b[i] - mb)
		aa += (a[i] - ma) * (a[i] - ma)
		bb += (b[i] - mb) * (b[i] - mb)
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}
