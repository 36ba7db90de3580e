package fabric_test

import (
	"container/heap"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// flow is a sender of TCP that has messages to send over a network with a delay. Times are in nanoseconds.
type flow struct {
	before, after int     // segments of the congestion window before and after the loss
	room          int     // segments of the receiver's window
	shrinks       int     // of it after the loss, if not 0
	messages      []int   // segments of each
	pause         int64   // between the acknowledgement of a message and the next, if not 0
	lose          int     // the segment that is lost; -1 for none
	hiccup        int     // the sender pauses before each of so many segments, without any need; 0 for none
	later         int     // not before this segment
	most          float64 // part of the time that may be taken for the window's; 0 for 0.002
	late          int64   // until then, what the loss has held up is still sent
	every         int64   // time between two messages, whether they were acknowledged or not, if not 0
	delay         int64   // one way
	pace          int64   // between two segments that are sent back to back
	far           bool    // the capture point is at the receiver
	noStamps      bool    // no timestamps
	noSetup       bool    // the setup of TCP was not captured
	grows         float64 // segments by which the window grows for each acknowledged one after the loss
	slowStart     bool    // the window grows by each acknowledged segment until the loss
	tiny          int     // bytes of the segments of all messages but the first; 0 for mss
	short         bool    // every other segment of the first ten of each thirty has four bytes
	still         int64   // the sender's machine stands still for so long every stillEvery, the capture included
	stillEvery    int64
}

// standing is when something happens at the sender's machine that would happen at a time if the machine did not
// stand still.
func (f *flow) standing(at int64) int64 {
	if f.still > 0 && at%f.stillEvery < f.still && at > f.stillEvery {
		return at - at%f.stillEvery + f.still
	}
	return at
}

// offset is where a segment begins.
func (f *flow) offset(i int) uint64 {
	if n := f.messages[0]; f.tiny > 0 && i > n {
		return uint64(n*mss + (i-n)*f.tiny)
	}
	if f.short {
		n := i / 30 * 5
		n += min(i%30, 10) / 2
		return uint64(i*mss - n*(mss-4))
	}
	return uint64(i * mss)
}

const mss = 1000

type event struct {
	at   int64
	what func()
	seq  int
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// run plays the flow to a Recorder, and returns when the last byte was acknowledged, and what time was lost
// to until then.
func (f *flow) run(t *testing.T) (end int64, lost fabric.Share, list []fabric.Stall) {
	t.Helper()
	rec := fabric.New(fabric.Options{Lean: true})
	c := &rdma.Connection{ID: 1, Fabric: rdma.IWARP}
	var h events
	n, number := 0, uint64(0)
	at := func(when int64, what func()) { n++; heap.Push(&h, event{when, what, n}) }
	now := int64(0)
	const base = int64(1e18)
	see := func(s rdma.Sighting, when, echo int64) {
		stamp := now
		if !f.far {
			when = f.standing(when)
		}
		at(when, func() {
			number++
			s.Ref = rdma.Ref{Time: base + now, Number: number}
			s.Class, s.Placed = rdma.ClassSegment, true
			s.WindowScale = 10
			if f.noSetup {
				s.WindowScale = -1
			}
			c.Stamp = rdma.Stamp{}
			if !f.noStamps {
				c.Stamp = rdma.Stamp{Present: true, Value: uint32(stamp / 1e6), Echo: uint32(echo / 1e6)}
			}
			rec.Saw(c, &s)
		})
	}
	total := 0
	first := map[int]bool{} // segments that begin a message
	for _, m := range f.messages {
		first[total] = true
		total += m
	}
	toTap, fromTap := int64(0), f.delay // of data, since the sender sent it; of acknowledgements, since the receiver sent them
	if f.far {
		toTap, fromTap = f.delay, 0
	}
	var (
		next, acked, posted int // sender: segments
		window              = float64(f.before)
		dups                int
		recovering          = -1
		got                 = map[int]bool{} // receiver
		expected, unacked   int
		echo                int64 // the receiver's newest timestamp, as the sender has it
		busy                int64
		wake                bool
	)
	rwnd := f.room
	if rwnd == 0 {
		rwnd = 1024
	}
	var send func()
	arrive := func(i int, sent int64) {
		tsval := now
		ack := func() {
			a := expected
			see(rdma.Sighting{From: 1, HasAck: true, Acked: f.offset(a), Window: uint16(rwnd * mss >> 10)}, now+fromTap, sent)
			at(f.standing(now+f.delay), func() {
				echo = max(echo, tsval)
				if a > acked {
					gained := a - acked
					acked, dups = a, 0
					switch {
					case recovering >= 0 && a > recovering:
						recovering = -1
						window = float64(f.after)
					case recovering >= 0:
					case f.lose >= 0 && a > f.lose:
						window += f.grows * float64(gained)
					case f.slowStart:
						window += float64(gained)
					}
				} else if dups++; dups == 3 && recovering < 0 {
					recovering = next - 1
					i := a
					see(rdma.Sighting{From: 0, Start: f.offset(i), End: f.offset(i + 1), Bytes: mss}, now+toTap, echo)
					at(now+f.delay, func() {
						if f.shrinks > 0 {
							rwnd = f.shrinks
						}
						got[i] = true
						for got[expected] {
							expected++
						}
						unacked = 2
					})
					at(now+f.delay+1, func() {
						a := expected
						see(rdma.Sighting{From: 1, HasAck: true, Acked: f.offset(a), Window: uint16(rwnd * mss >> 10)}, now+fromTap, echo)
						tsval := now
						at(now+f.delay, func() { echo, acked, dups, recovering, window = tsval, a, 0, -1, float64(f.after); send() })
					})
				}
				send()
			})
		}
		got[i] = true
		before := expected
		for got[expected] {
			expected++
		}
		if unacked++; unacked >= 2 || f.after == 1 || f.tiny > 0 || expected == before || expected == total || first[expected] {
			unacked = 0
			ack()
		}
	}
	send = func() {
		if wake {
			return
		}
		if f.every == 0 && next >= posted && acked >= posted && posted < total {
			i := 0
			for s := 0; s < posted; i++ {
				s += f.messages[i]
			}
			m := f.messages[i]
			if f.pause > 0 && posted > 0 {
				wake = true
				at(now+f.pause, func() { wake = false; posted += m; send() })
				return
			}
			posted += m
		}
		for f.pause == 0 && f.every == 0 && posted < total {
			posted = total
		}
		if next >= posted || next-acked >= min(int(window), rwnd) || recovering >= 0 {
			return
		}
		if f.tiny > 0 && next > f.messages[0] && next > acked {
			return // Nagle's algorithm (RFC 1122, section 4.2.3.4)
		}
		if busy = f.standing(max(busy, now)); busy > now {
			wake = true
			at(busy, func() { wake = false; send() })
			return
		}
		i := next
		next++
		busy = now + f.pace
		if f.hiccup > 0 && next%f.hiccup == 0 && next > f.later {
			busy += 20 * f.pace
		}
		see(rdma.Sighting{From: 0, Start: f.offset(i), End: f.offset(i + 1), Bytes: mss, Inside: !first[i]}, now+toTap, echo)
		sent := now
		if i != f.lose {
			at(now+f.delay, func() { arrive(i, sent) })
		}
		send()
	}
	at(0, send)
	for i, m := range f.messages {
		if f.every > 0 {
			at(int64(i)*f.every, func() { posted += m; send() })
		}
	}
	for h.Len() > 0 {
		e := heap.Pop(&h).(event)
		now = e.at
		e.what()
	}
	if acked != total {
		t.Fatalf("%d of %d segments acknowledged", acked, total)
	}
	before, ok := rec.Stalls(c, 0, 0, func(s *fabric.Stall) { list = append(list, *s) })
	if !ok || before != 0 {
		t.Fatal(before, ok)
	}
	if f.late > 0 {
		list = slices.DeleteFunc(list, func(s fabric.Stall) bool { return s.Cause != rdma.CauseRecovery && s.To < base+f.late })
	}
	lost, _ = fabric.Divide(base, base+now, list, 0, nil)
	return now, lost, list
}

// TestWindow compares a flow with a loss with the same flow without: what the loss and the smaller window cost
// must be found, and nothing else.
func TestWindow(t *testing.T) {
	const ms = 1_000_000
	for name, f := range map[string]flow{
		"window":             {before: 40, after: 10, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms},
		"far":                {before: 40, after: 10, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms, far: true},
		"no timestamps":      {before: 40, after: 10, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms, noStamps: true},
		"no setup":           {before: 40, after: 10, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms, noSetup: true},
		"pace was the limit": {before: 150, after: 20, messages: []int{1200}, lose: 300, delay: 5 * ms, pace: 0.1 * ms, noSetup: true},
		"recovers":           {before: 40, after: 8, grows: 0.02, messages: []int{1500}, lose: 200, delay: 5 * ms, pace: 0.1 * ms},
		"slow start":         {before: 10, after: 10, slowStart: true, messages: []int{1000}, lose: 60, delay: 5 * ms, pace: 0.05 * ms},
		"a segment at once":  {before: 30, after: 1, messages: []int{300}, lose: 150, delay: 2 * ms, pace: 0.1 * ms},
		"short segments":     {before: 40, after: 10, short: true, messages: []int{1200}, lose: 210, delay: 5 * ms, pace: 0.1 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			clean := f
			clean.lose = -1
			without, none, _ := clean.run(t)
			if none[rdma.CauseRest] != without {
				t.Errorf("lost without a loss: %v", none)
			}
			with, lost, _ := f.run(t)
			found := with - lost[rdma.CauseRest]
			part := float64(found) / float64(with-without)
			t.Logf("%v to %v ms, of it recovery %v, window %v, unknown %v: %.1f %%", without/ms, with/ms, lost[rdma.CauseRecovery]/ms, lost[rdma.CauseCongestion]/ms, lost[rdma.CauseUnknown]/ms, 100*part)
			if part < 0.9 || part > 1.03 || lost[rdma.CauseUnknown] > 0 {
				t.Errorf("%.3f", part)
			}
		})
	}
}

// TestStandsStill: the sender's machine stands still again and again, so that acknowledgements which had been sent in
// time are seen late. That is not the window's: without the loss it would have stood still as often.
func TestStandsStill(t *testing.T) {
	const ms = 1_000_000
	for _, after := range []int{20, 35, 55} {
		f := flow{before: 60, after: after, still: 6 * ms, stillEvery: 37 * ms, messages: []int{3000}, lose: 1000, delay: 2 * ms, pace: 0.1 * ms}
		clean := f
		clean.lose = -1
		without, none, _ := clean.run(t)
		if none[rdma.CauseRest] != without {
			t.Errorf("lost without a loss: %v", none)
		}
		with, lost, _ := f.run(t)
		// Whatever takes longer is interrupted more often.
		still := (with - without) * f.still / f.stillEvery
		found, caused := with-lost[rdma.CauseRest], with-without-still
		t.Logf("window of %d: %v to %v ms, more often interrupted %v, of it recovery %v, window %v", after, without/ms, with/ms, still/ms, lost[rdma.CauseRecovery]/ms, lost[rdma.CauseCongestion]/ms)
		if slack := 2*f.still + caused/20; found > caused+slack || found < caused-slack {
			t.Errorf("%d ns of %d", found, caused)
		}
	}
}

// TestNotTheWindow: after the loss, something else limits the sender.
func TestNotTheWindow(t *testing.T) {
	const ms = 1_000_000
	short := make([]int, 300)
	for i := range short {
		short[i] = 5
	}
	short[0] = 200
	eights := make([]int, 200)
	for i := range eights {
		eights[i] = 8
	}
	eights[0] = 200
	for name, f := range map[string]flow{
		"nothing to send":     {before: 40, after: 10, messages: short, pause: 3 * ms, lose: 150, delay: 5 * ms, pace: 0.1 * ms},
		"nothing, far":        {before: 40, after: 10, messages: short, pause: 3 * ms, lose: 150, delay: 5 * ms, pace: 0.1 * ms, far: true},
		"receiver's window":   {before: 40, after: 40, room: 12, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms},
		"receiver's, far":     {before: 40, after: 40, room: 12, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms, far: true},
		"receiver's, unknown": {before: 40, after: 40, room: 12, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms, noSetup: true},
		"shrinks":             {before: 40, after: 40, shrinks: 10, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms},
		"shrinks, far":        {before: 40, after: 40, shrinks: 10, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms, far: true},
		"Nagle's algorithm":   {before: 40, after: 10, messages: short, tiny: 100, pause: 3 * ms, lose: 150, delay: 5 * ms, pace: 0.1 * ms},
		"a few at once":       {before: 40, after: 30, messages: short, pause: 3 * ms, hiccup: 2, lose: 150, delay: 5 * ms, pace: 0.6 * ms},
		"now and then":        {before: 40, after: 30, messages: eights, every: 4 * ms, late: 200 * ms, lose: 150, delay: 5 * ms, pace: 0.1 * ms},
		"now and then, far":   {before: 40, after: 30, messages: eights, every: 4 * ms, late: 200 * ms, lose: 150, delay: 5 * ms, pace: 0.1 * ms, far: true},
		// Seen from the receiver, pauses in bursts look much as if each waited for the acknowledgements of the one
		// before.
		"interrupted":        {most: 0.03, before: 200, after: 100, hiccup: 10, later: 330, messages: []int{1200}, lose: 300, delay: 2 * ms, pace: 0.1 * ms},
		"interrupted, far":   {most: 0.31, before: 200, after: 100, hiccup: 10, later: 330, messages: []int{1200}, lose: 300, delay: 2 * ms, pace: 0.1 * ms, far: true},
		"as large as before": {before: 40, after: 40, messages: []int{800}, lose: 200, delay: 5 * ms, pace: 0.1 * ms},
		"busy elsewhere":     {before: 200, after: 150, hiccup: 10, messages: []int{1200}, lose: 300, delay: 2 * ms, pace: 0.1 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			clean := f
			clean.lose = -1
			if without, none, list := clean.run(t); none[rdma.CauseRest] != without {
				t.Errorf("lost without a loss: %v, %+v", none, list[:min(len(list), 5)])
			}
			with, lost, list := f.run(t)
			other := lost[rdma.CauseCongestion] + lost[rdma.CauseUnknown]
			t.Logf("%v ms, recovery %v, window %v", with/ms, lost[rdma.CauseRecovery]/ms, other/ms)
			if float64(other) > float64(with)*max(f.most, 0.002) {
				t.Errorf("%v of %v: %+v", lost, with, list[:min(len(list), 5)])
			}
			if lost[rdma.CauseRecovery] == 0 {
				t.Error("no loss")
			}
		})
	}
}

// TestStreamAllocations: once rings have grown, segments, acknowledgements and losses allocate nothing.
func TestStreamAllocations(t *testing.T) {
	rec := fabric.New(fabric.Options{Lean: true})
	c := &rdma.Connection{ID: 1, Fabric: rdma.IWARP}
	now, number, end := int64(0), uint64(0), uint64(0)
	see := func(from rdma.Side, start, stop, acked uint64) {
		number++
		now += 50_000
		c.Stamp = rdma.Stamp{Present: true, Value: uint32(now / 1e6), Echo: uint32(now / 1e6)}
		rec.Saw(c, &rdma.Sighting{
			Ref: rdma.Ref{Time: now, Number: number}, From: from, Class: rdma.ClassSegment, Placed: true, HasAck: true, Inside: start%9000 != 0,
			Start: start, End: stop, Acked: acked, Bytes: uint32(stop - start), Window: 1000, WindowScale: 10,
		})
	}
	round := func() {
		from := end
		for range 12 {
			see(0, end, end+1000, 0)
			end += 1000
		}
		for range 4 {
			see(1, 0, 0, from+2000)
		}
		see(0, from+2000, from+3000, 0)
		for at := from + 3000; at <= end; at += 1000 {
			see(1, 0, 0, at)
		}
	}
	for range 3000 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	if n := rec.Totals().Episodes; n < 3000 {
		t.Errorf("%d episodes", n)
	}
}
