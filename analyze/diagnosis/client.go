package diagnosis

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// readResponses finds adapters of clients that answer RDMA Reads late.
func (b *batch) readResponses() {
	for _, k := range b.order {
		if k.queued || k.samples[1] < 4 || k.delayedAcks() || k.fabric >= rdma.IWARP && !k.steady() {
			continue // over TCP, software hosts answer late for any reason
		}
		var extra []int64
		f := &finding{code: ClientReadResponse, side: Client, where: k.where(), clock: Calls, certainty: Likely}
		perKiB := float64(0)
		if l := b.lanesOf(k); l != nil {
			perKiB = l[k.client].fastest()
		}
		late := func(x *call) int64 {
			return x.pulled - max(k.near[1], 0) - int64(perKiB*float64(x.bytes)/1024)
		}
		k.each(func(x *call) {
			if x.firstRead == 0 || x.lost[rdma.CauseReadSlot] > 0 || x.lost[rdma.CauseRecovery] > 0 {
				return
			}
			extra = append(extra, late(x))
		})
		if len(extra) < 8 {
			continue
		}
		if f.typical = median(extra); f.typical < 150_000 || f.typical < 3*k.near[1] || nth(extra, len(extra)/10)*2 < f.typical {
			continue
		}
		k.each(func(x *call) {
			if x.firstRead != 0 {
				f.of(x, x.take(late(x)))
			}
		})
		b.Recorder.found(f)
	}
}

// soon is how long after a reply a call comes that has waited for what the reply freed, besides the way of the reply to the client and back.
const soon = 50_000

// windows finds calls that had to wait for a credit or a slot: all were in use, and the call came as soon as a reply had freed one.
func (b *batch) windows() {
	for _, k := range b.order {
		if k.gaps*200 > k.packets {
			continue
		}
		k.far()
		b.window(k, Credits, func(x *call) int64 { return x.credits })
		b.window(k, SessionSlots, func(x *call) int64 { return x.slots })
	}
}

// far finds the calls that waited for a credit although the capture point saw one free. It is far from the client: a call holds its credit
// until the client has the reply, and the next call takes as long to reach the capture point.
func (k *conn) far() {
	way := max(k.near[1], 0)
	if way < farLeast {
		return
	}
	var free []int64 // when the credits in use are free again, as the capture point sees it, in order
	for _, x := range k.calls {
		if x.backward || x.end == 0 {
			continue
		}
		n, _ := slices.BinarySearch(free, x.start+1)
		last := int64(0)
		if n > 0 {
			last = free[n-1]
		}
		free = free[n:]
		if len(free)+1 >= int(x.granted) && x.start-last <= soon && x.credits == 0 && last > 0 {
			x.credits = 1
		}
		at, _ := slices.BinarySearch(free, x.end+way-way/8)
		free = slices.Insert(free, at, x.end+way-way/8)
	}
}

// farLeast is the least round trip between the capture point and the client that counts for credits, in nanoseconds.
const farLeast = 1_000

func (b *batch) window(k *conn, code Code, of func(*call) int64) {
	f := &finding{code: code, side: Server, where: k.where(), clock: Wall, certainty: Likely, limit: -1}
	prompt, n := 0, 0
	last := int64(0)
	if !slices.ContainsFunc(k.calls, func(x *call) bool { return !x.backward && of(x) > 0 }) {
		return
	}
	// Replies in the order of their coming, to see which one was there before a call.
	var ends []int64
	k.each(func(x *call) { ends = append(ends, x.end) })
	slices.Sort(ends)
	zero, echo, told := 0, 0, 0
	for _, x := range k.calls {
		if x.backward {
			continue
		}
		if x.end != 0 && x.rawGrant == 0 {
			zero++
		}
		w := of(x)
		if w <= 0 {
			continue
		}
		n++
		i, _ := slices.BinarySearch(ends, x.start+1)
		if x.told {
			told++
			prompt++
		} else if i > 0 {
			last = ends[i-1]
			if x.start-last <= max(k.wayBack(), 0)+soon {
				prompt++
			}
		}
		f.of(x, w)
		f.limit = int64(x.granted)
		if x.end != 0 && x.asked == x.granted {
			echo++
		}
	}
	calls := len(k.calls)
	if n < 8 || prompt*10 < n*7 || prompt*2 < calls {
		return
	}
	if code == Credits {
		switch {
		case told == n:
			f.certainty = Certain
		case zero*2 > len(k.calls):
			f.what, f.limit = "zero", 0
			if prompt*10 >= n*9 {
				f.certainty = Certain
			}
		case echo*10 >= n*9:
			f.what, f.side = "echo", Client
		}
	} else {
		f.limit = 0
	}
	f.typical = f.time / int64(n)
	// The calls that waited would have gone out at once. How many the application has to make shows only where they may go: some time
	// is left.
	f.time = int64(float64(k.calls[calls-1].start-k.calls[0].start) * float64(prompt) / float64(calls) * 0.8)
	if k.queued {
		f.certainty = Possible // more calls would wait for what these wait for
	}
	b.Recorder.found(f)
}

// oneAtATime finds clients that send a call only when the one before has been answered.
func (b *batch) oneAtATime() {
	for c, calls := range b.apart(len(b.names.list), func(x *call) int {
		if x.end == 0 {
			return -1
		}
		return int(x.client)
	}) {
		if len(calls) < 32 {
			continue
		}
		var replied, end, open, data, bytes, held, app int64
		alone, window := 0, 0
		for _, x := range calls {
			if x.start >= replied {
				alone++
			}
			replied = max(replied, x.end)
			if x.granted <= 1 || x.slots > 0 {
				window++ // it may not send more
			}
			back := x.end + max(x.conn.wayBack(), 0) // when the client had the reply
			open += max(back-max(x.start, end), 0)
			end = max(end, back)
			held += max(x.app-b.least[x.work], 0)
			app += x.app
			if x.bytes > 0 {
				data++
				bytes += int64(x.bytes)
			}
		}
		if alone*20 < len(calls)*19 || open*2 < b.to-b.from || window*2 > len(calls) {
			continue
		}
		f := &finding{code: OneAtATime, side: Client, where: "client " + b.names.list[c], clock: Wall, certainty: Possible, calls: len(calls)}
		f.time, f.typical = open*15/16, open/int64(len(calls))
		if data*2 > int64(len(calls)) && bytes <= data*64<<10 && open*10 >= (b.to-b.from)*7 && held*10 < app*3 {
			f.certainty = Likely
		}
		for _, x := range calls[:min(len(calls), shown)] {
			f.show(x, 1)
		}
		b.Recorder.found(f)
	}
}
