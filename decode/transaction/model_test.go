package transaction_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// result is a transaction with everything reported about it, kept beyond emit.
type result struct {
	conn                  *rdma.Connection
	id                    int
	client, server        rdma.End
	xid                   uint32
	backward, named       bool
	program, procedure    uint32
	state                 transaction.State
	notes                 []transaction.Note
	call, reply           message
	times                 transaction.Timeline
	reads, writes         int
	readBytes, writeBytes uint64
	retransmits           int
	byRequester           int
	done                  rdma.Ref
	operations            []transaction.Operation
	lost                  int
	phases                transaction.Phases
	phased                bool
	read                  []byte
	written               [][]byte
	delivered             [2]transaction.Delivery // call, reply
}

type message struct {
	seen, transport, cut  bool
	first, last           rdma.Ref
	packets, send         int
	payload, raw          []byte
	length                int
	bytes                 uint64
	inv                   bool
	handle                uint32
	reads, writes, header string
}

func keepMessage(m *transaction.Message) message {
	k := message{
		seen: m.Seen(), transport: m.Transport, cut: m.Cut, first: m.First, last: m.Last, packets: m.Packets, send: m.SendBytes,
		payload: bytes.Clone(m.Payload), raw: bytes.Clone(m.Raw()), length: m.PayloadLength, bytes: m.Bytes,
		inv: m.Invalidates, handle: m.Handle,
	}
	if m.Transport {
		h := &m.Header
		k.header = fmt.Sprint(h.XID, h.Version, h.Credits, h.Type, h.Length, h.HasReply, h.Reply, h.Error)
		k.reads, k.writes = fmt.Sprint(h.Reads), fmt.Sprint(h.Writes)
	}
	return k
}

func keep(tx *transaction.Transaction) *result {
	r := &result{
		conn: tx.Connection, id: tx.Connection.ID, client: tx.Client(), server: tx.Server(),
		xid: tx.XID, backward: tx.Backward, named: tx.Named,
		program: tx.Program, procedure: tx.Procedure, state: tx.State, notes: slices.Clone(tx.Notes),
		call: keepMessage(&tx.Call), reply: keepMessage(&tx.Reply), times: tx.Times,
		reads: tx.Reads, writes: tx.Writes, readBytes: tx.ReadBytes, writeBytes: tx.WriteBytes,
		retransmits: tx.Retransmits, byRequester: tx.ReadsByRequester, done: tx.Done,
		operations: slices.Clone(tx.Operations), lost: tx.OperationsLost,
		read:      bytes.Clone(tx.CallData(0)),
		delivered: [2]transaction.Delivery{tx.CallDelivery(), tx.ReplyDelivery()},
	}
	r.phases, r.phased = tx.Phases()
	for i := range tx.Reply.Header.Writes {
		r.written = append(r.written, bytes.Clone(tx.Data(transaction.WriteList, i)))
	}
	return r
}

// String is everything, in short.
func (r *result) String() string {
	c := *r
	c.conn = nil
	c.call.payload, c.call.raw, c.reply.payload, c.reply.raw = nil, nil, nil, nil
	c.read, c.written = nil, nil
	s := fmt.Sprintf("%+v", c)
	for _, b := range append([][]byte{r.call.payload, r.call.raw, r.reply.payload, r.reply.raw, r.read}, r.written...) {
		s += fmt.Sprintf(" %d:%08x", len(b), crc32.ChecksumIEEE(b))
	}
	return s
}

// track runs a capture through the trackers.
func track(records []rocetest.Record, opt transaction.Options, limits roce.Limits) []*result {
	var out []*result
	tx := transaction.NewTracker(opt, func(t *transaction.Transaction) { out = append(out, keep(t)) })
	f := rocetest.Feeder{Tracker: roce.NewTracker(tx, tx.Hooks(), new(rdma.Numbers), limits)}
	f.All(records)
	tx.Flush()
	return out
}

// key names a transaction of the model in what the trackers say.
type key struct {
	client, server rdma.End
	xid            uint32
	backward       bool
}

// keyOf names a transaction of the model. Queue pair numbers belong to a
// connection both directions of which are known.
func keyOf(t *rocetest.Traffic, tx *rocetest.Transaction) key {
	c := &t.Config
	ends := [2]rdma.End{}
	for s := range 2 {
		ends[s] = rdma.End{Addr: c.Addr[s], QPN: c.QPN[s] + uint32(tx.Connection)}
		if c.LocalHost && s == 1 {
			ends[s].QPN += 0x1000
		}
	}
	if tx.Backward {
		ends[0], ends[1] = ends[1], ends[0]
	}
	return key{ends[0], ends[1], tx.XID, tx.Backward}
}

func (r *result) key() key {
	k := key{r.client, r.server, r.xid, r.backward}
	k.client.Port, k.server.Port = 0, 0
	return k
}

// index finds results by name; each name must be there once.
func index(t *testing.T, results []*result) map[key]*result {
	t.Helper()
	m := make(map[key]*result)
	for _, r := range results {
		if old := m[r.key()]; old != nil {
			t.Errorf("twice:\n %v\n %v", old, r)
		}
		m[r.key()] = r
	}
	return m
}

// first and last packet of a role in a capture.
type seen struct{ first, last rdma.Ref }

type roleOf struct {
	tx   *rocetest.Transaction
	role rocetest.Role
}

// sightings tells which packets of a capture served what.
func sightings(records []rocetest.Record) map[roleOf]seen {
	m := make(map[roleOf]seen)
	for i := range records {
		r := &records[i]
		if r.Tx == nil {
			continue
		}
		ref := rdma.Ref{Time: r.Time, Number: uint64(i + 1)}
		s := m[roleOf{r.Tx, r.Role}]
		if !s.first.Seen() {
			s.first = ref
		}
		s.last = ref
		m[roleOf{r.Tx, r.Role}] = s
	}
	return m
}

// check compares a result with the truth. exact wants the packets of the
// messages, too: there were no losses and no copies.
func check(t *testing.T, tx *rocetest.Transaction, r *result, at map[roleOf]seen, exact bool) {
	t.Helper()
	var bad []string
	want := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			bad = append(bad, fmt.Sprintf("%s is %v, want %v", what, got, want))
		}
	}
	want("state", r.state, transaction.Complete)
	if tx.Kind != rocetest.Unused && tx.Kind != rocetest.Refused {
		want("notes", r.notes, []transaction.Note{})
	}
	want("named", r.named, true)
	want("procedure", r.procedure, tx.Procedure)
	want("reads", r.reads, tx.Reads)
	want("writes", r.writes, tx.Writes)
	want("read bytes", r.readBytes, tx.ReadBytes)
	want("write bytes", r.writeBytes, tx.WriteBytes)
	want("call bytes", r.call.bytes, tx.CallBytes)
	want("reply bytes", r.reply.bytes, tx.ReplyBytes)
	want("operations", len(r.operations), tx.Reads+tx.Writes)
	if !bytes.Equal(r.call.payload, tx.Call) {
		bad = append(bad, "call differs")
	}
	if !bytes.Equal(r.reply.payload, tx.Reply) {
		bad = append(bad, "reply differs")
	}
	if !bytes.Equal(r.read, tx.Read) {
		bad = append(bad, "data of the Read chunk differ")
	}
	for i, w := range tx.Written {
		if i >= len(r.written) || !bytes.Equal(r.written[i], w) {
			bad = append(bad, fmt.Sprintf("data of Write chunk %d differ", i))
		}
	}
	want("invalidated handle", r.reply.handle, tx.Invalidated)
	p := r.phases
	want("phases", r.phased, true)
	want("sum of the phases", p.CallTransfer+p.ArgumentPull+p.Server+p.ResultPush+p.ReplyTransfer, p.Total)
	want("total", int64(p.Total), r.reply.last.Time-r.call.first.Time)
	for _, d := range []any{p.CallTransfer, p.ArgumentPull, p.Server, p.ResultPush, p.ReplyTransfer, p.PullWait} {
		if strings.HasPrefix(fmt.Sprint(d), "-") {
			bad = append(bad, fmt.Sprintf("negative phase in %+v", p))
		}
	}
	if exact {
		want("call", seen{r.call.first, r.call.last}, at[roleOf{tx, rocetest.CallSend}])
		want("reply", seen{r.reply.first, r.reply.last}, at[roleOf{tx, rocetest.ReplySend}])
		want("first Read", r.times.FirstRead, at[roleOf{tx, rocetest.ReadRequest}].first)
		want("last response", r.times.LastRead, at[roleOf{tx, rocetest.ReadResponse}].last)
		pushed := at[roleOf{tx, rocetest.Write}]
		want("first Write", r.times.FirstPush, pushed.first)
		want("last Write", r.times.LastPush, pushed.last)
		want("retransmits", r.retransmits, 0)
	}
	if len(bad) > 0 {
		t.Errorf("%v:\n %s\n call %v to %v, reply %v to %v, times %v, %d retransmits", tx, strings.Join(bad, "\n "),
			r.call.first, r.call.last, r.reply.first, r.reply.last, r.times, r.retransmits)
	}
}

// checkAll wants all transactions of the model, complete and in the order of
// their first packets.
func checkAll(t *testing.T, traffic *rocetest.Traffic, records []rocetest.Record, results []*result, exact bool) {
	t.Helper()
	m := index(t, results)
	at := sightings(records)
	for _, tx := range traffic.Transactions {
		r := m[keyOf(traffic, tx)]
		if r == nil {
			t.Errorf("%v is missing", tx)
			continue
		}
		check(t, tx, r, at, exact)
	}
	if len(results) != len(traffic.Transactions) {
		t.Errorf("%d transactions, want %d", len(results), len(traffic.Transactions))
	}
	inOrder(t, results)
	if t.Failed() {
		t.FailNow()
	}
}

func inOrder(t *testing.T, results []*result) {
	t.Helper()
	for i := 1; i < len(results); i++ {
		if first(results[i-1]) > first(results[i]) {
			t.Errorf("packet %d is reported after packet %d", first(results[i]), first(results[i-1]))
		}
	}
}

func first(r *result) uint64 {
	if r.call.seen {
		return r.call.first.Number
	}
	return r.reply.first.Number
}

// variants are kinds of traffic that every property has to hold for.
var variants = []struct {
	name   string
	config rocetest.Config
}{
	{"plain", rocetest.Config{}},
	{"set up", rocetest.Config{CM: true}},
	{"Linux", rocetest.Config{CM: true, Invalidate: true, XIDInOffset: true, OnePort: true, Callbacks: 8, Segment: 16384, Transfer: 20480}},
	{"callbacks", rocetest.Config{CM: true, Callbacks: 10, SameXID: true}},
	{"callbacks without setup", rocetest.Config{Callbacks: 10, SameXID: true}},
	{"small MTU", rocetest.Config{MTU: 256, Inline: 2000, Segment: 1000, Transfer: 700}},
	{"large MTU", rocetest.Config{MTU: 4096, Inline: 9000, Data: 60000, Segment: 20000, Transfer: 65536, Invalidate: true}},
	{"PSN wrap", rocetest.Config{PSN: [2]uint32{0xffffff - 60, 0xffffff - 200}}},
	{"equal PSNs", rocetest.Config{CM: true, PSN: [2]uint32{1, 1}, Connections: 3}},
	{"equal PSNs without setup", rocetest.Config{PSN: [2]uint32{1, 1}, Connections: 4, OnePort: true}},
	{"several connections", rocetest.Config{Connections: 5, Calls: 12}},
	{"several set up", rocetest.Config{Connections: 5, Calls: 12, CM: true}},
	{"one handle", rocetest.Config{SameHandle: true, Segment: 3000, Outstanding: 8}},
	{"handles again", rocetest.Config{ReuseHandle: true, Outstanding: 8, Segment: 4000}},
	{"one host", rocetest.Config{CM: true, LocalHost: true, Callbacks: 4}},
	{"many Reads", rocetest.Config{Kinds: []rocetest.Kind{rocetest.WriteData, rocetest.LongCall}, Transfer: 512, Depth: 64, Data: 60000}},
}

// seeds is how many runs of each kind there are.
const seeds = 3

func each(t *testing.T, change func(*rocetest.Config), do func(*testing.T, *rocetest.Traffic)) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			for seed := range uint64(sampled.Rounds(seeds)) {
				c := v.config
				c.Seed = seed + 1
				if change != nil {
					change(&c)
				}
				do(t, rocetest.Make(c))
				if t.Failed() {
					t.Fatalf("with seed %d", c.Seed)
				}
			}
		})
	}
}

var keepData = transaction.Options{KeepData: true}
