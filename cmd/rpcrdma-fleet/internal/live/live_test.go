package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/testtools/natstest"
)

func sample(tap, agent string, number uint64) *Summary {
	s := &Summary{
		Schema: Schema, Tap: tap, Agent: agent, Number: number, Start: int64(number) * 1e9, Span: 1e9, Packets: 100,
		Counts: Counts{Transactions: 10, Time: 1e6, Max: 5e5, Bytes: 4096}, P50: 1e5, P99: 5e5,
		Heat: []HeatBand{{20, 7}, {24, 3}},
		Slow: []Slow{{XID: 7, Operation: "nfs3 READ", Subject: "a/b", Latency: 5e5, Status: "ok"}},
	}
	s.Lists()
	return s
}

const agentA, agentB = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"

func encoded(t testing.TB, s *Summary) []byte {
	t.Helper()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestQuiet: a tap whose agent lives, and sees no packets.
func TestQuiet(t *testing.T) {
	var f Fleet
	now := time.Unix(1000, 0)
	for i, packets := range []uint64{5, 0, 0, 5, 0} {
		s := sample("a", agentA, uint64(i+1))
		s.Packets = packets
		now = now.Add(time.Second)
		f.Add(Message{Subject: SubjectOf(s), Data: encoded(t, s), Time: now})
		want := map[int]time.Time{1: time.Unix(1001, 0), 2: time.Unix(1001, 0), 4: time.Unix(1004, 0)}[i]
		if got := f.Tap("a").Quiet; !got.Equal(want) || f.Totals(now).Quiet == 0 != want.IsZero() {
			t.Errorf("summary %d: quiet since %v, want %v", i+1, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	good := string(encoded(t, sample("nfs-7", agentA, 1)))
	if _, err := Decode([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		old, new string
		want     error
	}{
		{`rpcrdma.live/1`, `rpcrdma.live/2`, ErrSchema},
		{`"number":1`, `"number":0`, ErrForm},
		{`"number":1`, `"number":-1`, ErrForm},
		{agentA, "../../etc", ErrForm},
		{`"nfs-7"`, `""`, ErrForm},
		{`"nfs-7"`, `"a\u0000b"`, ErrForm},
		{`"span_ns":1000000000`, `"span_ns":0`, ErrForm},
		{`"p99_ns":500000`, `"p99_ns":-1`, ErrForm},
		{`"p99_ns":500000`, `"p99_ns":9223372036854775807`, ErrForm},
		{`"band":24`, `"band":20`, ErrForm},
		{`"band":24`, `"band":1000000`, ErrForm},
		{`"packets":100`, `"packets":18446744073709551615`, ErrForm},
		{`"transactions":10`, `"transactions":281474976710657`, ErrForm},
		{`"connections":[]`, `"connections":[{"stuck":-1}]`, ErrForm},
		{`"calls":0`, `"calls":9223372036854775807`, ErrForm},
		{`"alarms":[]`, `"alarms":["\u001b[2J"]`, ErrForm},
		{`"alarms":[]`, `"alarms":[],"more":1`, ErrForm},
		{`"clients":[]`, `"clients":[` + strings.Repeat(`{"name":"x"},`, 10) + `{"name":"x"}]`, ErrForm},
		{`{"schema"`, ` {"schema"`, nil},
		{`{"schema"`, `{} {"schema"`, ErrForm},
	} {
		b := strings.Replace(good, c.old, c.new, 1)
		if b == good {
			t.Fatalf("%s is not in the summary", c.old)
		}
		if _, err := Decode([]byte(b)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.new, err, c.want)
		}
	}
	if _, err := Decode(append([]byte(good), bytes.Repeat([]byte{' '}, MaxSummary)...)); !errors.Is(err, ErrForm) {
		t.Errorf("too long: %v", err)
	}
}

// A summary that is too long loses elements of its lists, and says how many.
func TestShorten(t *testing.T) {
	s := sample("t", agentA, 1)
	name := strings.Repeat("\x01", maxText) // six bytes each in JSON
	for range maxOperations {
		s.Ops = append(s.Ops, Operation{Name: name})
	}
	for range maxUsages {
		s.Files = append(s.Files, Usage{Name: name})
		s.Clients = append(s.Clients, Usage{Name: name})
	}
	x, err := Decode(encoded(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(x.Ops) + x.Rest.Operations; n != maxOperations {
		t.Errorf("%d operations are accounted for, want %d", n, maxOperations)
	}
	if n := len(x.Files) + x.Rest.Files; n != maxUsages {
		t.Errorf("%d files are accounted for, want %d", n, maxUsages)
	}
}

func FuzzFleet(f *testing.F) {
	f.Add(encoded(f, sample("nfs-7", agentA, 1)))
	f.Add([]byte(`{"schema":"rpcrdma.live/1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x Fleet
		s, err := Decode(b)
		if err != nil {
			x.Add(Message{Subject: "", Data: b})
			if x.Refused != 1 {
				t.Fatal("not counted")
			}
			return
		}
		for range 2 {
			x.Add(Message{Subject: subject(s.Tap, s.Agent), Data: b, Time: time.Unix(0, 0)})
		}
		if tap := x.Tap(s.Tap); tap == nil || tap.Missing != min(s.Dropped, s.Number-1) || len(tap.History) != 1 {
			t.Fatalf("%+v", tap)
		}
		x.Totals(time.Unix(0, 0))
	})
}

// Orders of delivery, repetitions and gaps.
func TestFleet(t *testing.T) {
	var f Fleet
	at := time.Unix(100, 0)
	add := func(s *Summary) { f.Add(Message{Subject: subject(s.Tap, s.Agent), Data: encoded(t, s), Time: at}) }
	for _, n := range []uint64{1, 2, 2, 1, 5, 4} {
		add(sample("a", agentA, n))
	}
	a := f.Tap("a")
	if a.Last.Number != 5 || a.Missing != 2 || len(a.History) != 3 || a.Agents != 1 {
		t.Errorf("%+v", a)
	}
	next := sample("a", agentB, 2)
	next.Start = 10e9
	add(next)
	if a.Agents != 2 || a.Missing != 0 || a.Last.Agent != agentB {
		t.Errorf("after a restart: %+v", a)
	}
	add(sample("a", agentA, 6)) // from before
	if a.Last.Agent != agentB {
		t.Error("an old agent has taken the tap back")
	}
	slow := sample("b", agentB, 1)
	slow.P99 = 9e8
	add(slow)
	if l := f.Taps(ByP99, at); len(l) != 2 || l[0].Name != "b" {
		t.Errorf("order %v", l)
	}
	forged := sample("c", agentA, 1)
	f.Add(Message{Subject: subject("a", agentA), Data: encoded(t, forged), Time: at})
	if f.Tap("c") != nil || f.Refused != 1 {
		t.Error("an agent speaks for another tap")
	}
	x := f.Totals(at)
	if x.Taps != 2 || x.Transactions != 20 || x.Missing != 0 || x.Max != 5e5 || x.P99 == 0 || x.P99 > x.Max {
		t.Errorf("%+v", x)
	}
	later := at.Add(time.Minute)
	if x := f.Totals(later); x.Taps != 0 || x.Silent != 2 || x.Transactions != 0 {
		t.Errorf("%+v", x)
	}
	end := sample("b", agentB, 2)
	end.End = true
	add(end)
	if x := f.Totals(later); x.Silent != 1 || x.Ended != 1 {
		t.Errorf("%+v", x)
	}
}

// TestAgents: which agent speaks for a tap, and how many of its summaries are missing.
func TestAgents(t *testing.T) {
	type sent struct {
		agent           string
		number, dropped uint64
		start           int64 // of its clock, in seconds
		at              int64 // of the clock of NATS, in seconds
		end             bool
	}
	const a, b = agentA, agentB
	for _, test := range []struct {
		name    string
		sent    []sent
		agent   string
		number  uint64
		missing uint64
		agents  int
	}{
		{"the first summaries were stored too long ago", []sent{{a, 1000, 0, 0, 0, false}, {a, 1001, 0, 1, 1, false}}, a, 1001, 0, 1},
		{"the agent has dropped some of them", []sent{{a, 1000, 3, 0, 0, false}, {a, 1003, 5, 3, 3, false}}, a, 1003, 5, 1},
		{"the clock was set back before the agent began again", []sent{{a, 9, 0, 7200, 0, false}, {b, 1, 0, 1, 1, false}, {b, 2, 0, 2, 2, false}}, b, 2, 0, 2},
		{"likewise, and its first summary was dropped", []sent{{a, 9, 0, 7200, 0, false}, {b, 2, 1, 1, 60, false}}, b, 2, 1, 2},
		{"an older capture is replayed", []sent{{a, 1, 0, 7200, 0, true}, {b, 5, 0, 1, 1, false}}, b, 5, 0, 2},
		{"what the spool of an agent that has ended still had", []sent{{b, 1, 0, 9, 0, false}, {a, 7, 0, 8, 0, false}}, b, 1, 0, 2},
		{"two at once", []sent{
			{a, 1, 0, 1, 0, false}, {b, 1, 0, 2, 1, false}, {a, 2, 0, 3, 1, false}, {b, 2, 0, 4, 2, false}, {a, 3, 0, 5, 2, false}, {a, 5, 0, 6, 3, false},
		}, b, 2, 0, 2},
		{"two at once, one of which ends", []sent{
			{a, 1, 0, 1, 0, false}, {b, 1, 0, 2, 1, false}, {a, 2, 0, 3, 1, false}, {a, 4, 0, 4, 2, false}, {b, 2, 0, 5, 2, true}, {a, 5, 0, 6, 3, false},
		}, a, 5, 1, 2},
		{"two at once, one of which becomes silent", []sent{{a, 1, 0, 1, 0, false}, {b, 1, 0, 2, 1, false}, {a, 2, 0, 3, 60, false}}, a, 2, 0, 2},
		{"twice, and out of order", []sent{{a, 1, 0, 1, 0, false}, {a, 3, 0, 3, 1, false}, {a, 3, 0, 3, 1, false}, {a, 2, 0, 2, 1, false}}, a, 3, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f Fleet
			for _, x := range test.sent {
				s := sample("a", x.agent, x.number)
				s.Start, s.Dropped, s.End = x.start*1e9, x.dropped, x.end
				f.Add(Message{Subject: SubjectOf(s), Data: encoded(t, s), Time: time.Unix(x.at, 0)})
			}
			x := f.Tap("a")
			if x.Last.Agent != test.agent || x.Last.Number != test.number || x.Missing != test.missing || x.Agents != test.agents {
				t.Errorf("agent %.4s, number %d, missing %d, %d agents; want %.4s, %d, %d, %d",
					x.Last.Agent, x.Last.Number, x.Missing, x.Agents, test.agent, test.number, test.missing, test.agents)
			}
		})
	}
	var f Fleet
	for i := range 1000 { // an agent that pretends to be many
		s := sample("a", fmt.Sprintf("%032x", i), 1)
		f.Add(Message{Subject: SubjectOf(s), Data: encoded(t, s)})
	}
	if x := f.Tap("a"); len(x.sources) != maxSources || x.Agents != 1000 {
		t.Errorf("%d agents are remembered of %d", len(x.sources), x.Agents)
	}
}

// TestSeen: a tap that is idle shows from its first interval on, one that is dead after two.
func TestSeen(t *testing.T) {
	const span = 10 * time.Second
	begun := time.Unix(1000, 0)
	var f Fleet
	for n := range 3 {
		s := sample("idle", agentA, uint64(n+1))
		s.Packets, s.Span = 0, int64(span)
		came := begun.Add(time.Duration(n+1) * span)
		f.Add(Message{Subject: SubjectOf(s), Data: encoded(t, s), Time: came})
		if x := f.Tap("idle"); x == nil || !x.Quiet.Equal(begun) || x.Silent(came.Add(2*span)) || !x.Silent(came.Add(2*span+1)) {
			t.Errorf("after %d intervals: %+v", n+1, x)
		}
	}
}

// TestClocks: a tap is not silent because the clock of NATS is another one.
func TestClocks(t *testing.T) {
	here := time.Unix(10_000, 0)
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		c := clock{here, here.Add(ahead)}
		if got := c.local(here.Add(ahead - 3*time.Second)); !got.Equal(here.Add(-3 * time.Second)) {
			t.Errorf("%v: %v", ahead, got)
		}
	}
}

// natsServer is a server that can go away and come back with what it had stored.
type natsServer struct {
	*testing.T
	opt  server.Options
	gate *natstest.Gate
	s    *server.Server
}

func newServer(t *testing.T) *natsServer {
	t.Helper()
	n := &natsServer{T: t, gate: natstest.NewGate(t), opt: server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		// Of a disk that is nearly full the server would take a part, and refuse the stream.
		JetStreamMaxMemory: 32 << 20, JetStreamMaxStore: 4 << 30,
	}}
	n.start()
	t.Cleanup(n.stop)
	return n
}

func (n *natsServer) start() {
	n.Helper()
	opt := n.opt
	s, err := server.NewServer(&opt)
	if err != nil {
		n.Fatal(err)
	}
	go s.Start()
	if !s.ReadyForConnections(time.Minute) {
		n.Fatal("the server does not start")
	}
	n.s = s
	n.gate.Open(s.Addr().String())
}

func (n *natsServer) stop() {
	n.gate.Shut()
	n.s.Shutdown()
	n.s.WaitForShutdown()
}

func (n *natsServer) dial() *nats.Conn {
	n.Helper()
	// Addresses that the server tells of would lead past the gate.
	nc, err := nats.Connect("nats://"+n.gate.Address, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectBufSize(-1),
		nats.IgnoreDiscoveredServers())
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(nc.Close)
	return nc
}

// stored are the numbers of the summaries in the stream.
func (n *natsServer) stored(nc *nats.Conn, count int) (list []uint64, last *Summary) {
	n.Helper()
	ctx, cancel := context.WithCancel(n.Context())
	defer cancel()
	c := make(chan Message)
	ended := make(chan error, 1)
	go func() { ended <- Watch(ctx, nc, 24*time.Hour, c, n.Logf) }()
	for len(list) < count {
		var m Message
		select {
		case m = <-c:
		case err := <-ended:
			n.Fatalf("after %v: %v", list, err)
		case <-time.After(3 * time.Minute):
			n.Fatalf("nothing comes after %v", list)
		}
		if m.None {
			break
		}
		s, err := Decode(m.Data)
		if err != nil {
			n.Fatal(err)
		}
		list, last = append(list, s.Number), s
		if m.Last {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		n.Error(err)
	}
	return list, last
}

// TestAway: what was added while NATS was away is stored in order afterwards, once;
// what there was no room for is counted.
func TestAway(t *testing.T) {
	n := newServer(t)
	nc := n.dial()
	size := len(encoded(t, sample("a", agentA, 10)))
	var mu sync.Mutex
	var notes []string
	p := NewSpool(6*size, func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, fmt.Sprintf(format, args...))
	})
	sent := make(chan error)
	go func() { sent <- p.Send(t.Context(), nc, 1) }()
	add := func(from, to uint64) {
		for i := from; i <= to; i++ {
			if err := p.Add(sample("a", agentA, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(1, 3)
	wait(t, func() bool { return p.Waiting() == 0 })
	n.stop()
	// What is sent into a connection that nobody reads any more is given up after ten seconds only.
	wait(t, func() bool { return !nc.IsConnected() })
	add(4, 30)
	if p.Dropped() == 0 {
		t.Fatal("nothing was dropped")
	}
	n.start()
	wait(t, func() bool { return p.Waiting() == 0 })
	add(31, 31)
	p.End()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	list, last := n.stored(nc, 31)
	for i := range list {
		if i > 0 && list[i] <= list[i-1] {
			t.Errorf("%d after %d", list[i], list[i-1])
		}
	}
	if got, want := uint64(len(list))+p.Dropped(), uint64(31); got != want || last.Number != 31 || last.Dropped != p.Dropped() {
		t.Errorf("%d stored and %d dropped, want %d together; the last, %d, says %d dropped", len(list), p.Dropped(), want, last.Number, last.Dropped)
	}
	t.Logf("stored %v; notes %q", list, notes)
}

// TestAgain: a summary whose acknowledgement was lost is not stored twice, even long
// after, when the server has forgotten what it stored lately.
func TestAgain(t *testing.T) {
	n := newServer(t)
	nc := n.dial()
	for round := range 3 {
		p := NewSpool(1<<20, t.Logf)
		for i := uint64(1); i <= uint64(3+round); i++ {
			if err := p.Add(sample("a", agentA, i)); err != nil {
				t.Fatal(err)
			}
		}
		p.End()
		if err := p.Send(t.Context(), nc, 1); err != nil {
			t.Fatal(err)
		}
	}
	if list, _ := n.stored(nc, 100); fmt.Sprint(list) != "[1 2 3 4 5]" {
		t.Errorf("stored %v", list)
	}
}

// TestNothing: who watches before there is anything is told so, whether there is no stream yet or an empty one.
func TestNothing(t *testing.T) {
	n := newServer(t)
	nc := n.dial()
	if list, _ := n.stored(nc, 1); len(list) != 0 {
		t.Error(list)
	}
	p := NewSpool(1<<20, t.Logf)
	p.End()
	if err := p.Send(t.Context(), nc, 1); err != nil { // it makes the stream
		t.Fatal(err)
	}
	if list, _ := n.stored(nc, 1); len(list) != 0 {
		t.Error(list)
	}
}

// TestGone: a stream that has forgotten the messages of an agent takes its next ones.
func TestGone(t *testing.T) {
	n := newServer(t)
	nc := n.dial()
	p := NewSpool(1<<20, t.Logf)
	sent := make(chan error)
	go func() { sent <- p.Send(t.Context(), nc, 1) }()
	if err := p.Add(sample("a", agentA, 1)); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return p.Waiting() == 0 })
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), StreamName)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Add(sample("a", agentA, 2)); err != nil {
		t.Fatal(err)
	}
	p.End()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if list, _ := n.stored(nc, 100); fmt.Sprint(list) != "[2]" {
		t.Errorf("stored %v", list)
	}
}

// wait waits for what happens in another goroutine.
func wait(t *testing.T, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		}
	}
}

// TestQuantile compares with sorting.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var heat [monitor.HeatBands]uint64
		var list []int
		for range 1 + r.IntN(300) {
			b := r.IntN(monitor.HeatBands - 1)
			heat[b]++
			list = append(list, b)
		}
		slices.Sort(list)
		for _, p := range []uint64{1, 50, 99, 100} {
			rank := (uint64(len(list))*p + 99) / 100
			if got, want := quantile(&heat, p), monitor.HeatFrom(list[rank-1]+1); got != want {
				t.Fatalf("p%d of %v: %d, want %d", p, list, got, want)
			}
		}
	}
}
