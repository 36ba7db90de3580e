package diagnosis

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// threadsMost is the most threads of a server that a queue before them is looked for with.
const threadsMost = 16

// manyInLine is how many calls show surely that they are served in line.
const manyInLine = 64

// queue is how the calls of a server waited in line.
type queue struct {
	calls []*call
	wait  []int64 // of each, before a thread took it
	took  []int64
	free  int // calls that found a free thread, and tell for how long one works
}

// arrived is when a call had reached the server, by the clock of the capture point; answered, when a thread was done with it.
func (x *call) arrived() int64  { return x.callEnd + x.toServer()/2 }
func (x *call) answered() int64 { return x.answer - x.toServer()/2 }

// threads finds servers that work on few calls at a time, while others wait in line. A server with n threads that take calls in the
// order of their coming answers none before all but n−1 of those ahead of it.
func (b *batch) threads() {
	for s, list := range b.apart(len(b.names.list), func(x *call) int {
		if x.end == 0 || x.from != x.conn.id {
			return -1
		}
		return int(x.server)
	}) {
		switch {
		case len(list) < 24:
		case slices.ContainsFunc(list, func(x *call) bool { return x.told && !x.opaque }):
			b.woken(uint16(s), list)
		default:
			b.threadsOf(uint16(s), list)
		}
	}
}

// woken does the same where the server's kernel has told how long calls waited for a thread.
func (b *batch) woken(server uint16, calls []*call) {
	f := &finding{code: ServerThreads, side: Server, where: "server " + b.names.name(server), clock: Calls, certainty: Certain}
	var waited, all int64
	var ends []int64 // of the calls that threads are at
	deep := 0
	inOrder(calls, func(x *call) int64 { return x.callEnd })
	for _, x := range calls {
		ends = append(slices.DeleteFunc(ends, func(at int64) bool { return at <= x.callEnd }), x.end)
		f.limit = max(f.limit, int64(len(ends)))
		if !x.told {
			continue
		}
		wait := x.callEnd - x.start
		waited += wait
		all += x.app
		if wait > x.end-x.callEnd {
			deep++
		}
	}
	if waited*2 < all || deep*3 < len(calls) {
		return
	}
	for _, x := range calls {
		if x.told {
			f.of(x, x.take(x.callEnd-x.start))
		}
	}
	b.Recorder.found(f)
}

// ahead counts how many other calls the server has when a call comes, and sorts them by that time.
func ahead(calls []*call) {
	inOrder(calls, (*call).arrived)
	done := make([]int64, len(calls))
	for i, x := range calls {
		done[i] = x.answered()
	}
	slices.Sort(done)
	n := 0 // of them are answered when the call comes
	for i, x := range calls {
		for n < len(done) && done[n] <= x.arrived() {
			n++
		}
		x.ahead = int32(max(i-n, 0))
	}
}

// before is how many calls the server had when a call came.
func (x *call) before() int64 { return int64(x.ahead) }

// middleOf is the median of what is measured of calls.
func middleOf(calls []*call, of func(*call) int64) int64 {
	list := make([]int64, len(calls))
	for i, x := range calls {
		list[i] = of(x)
	}
	return median(list)
}

// growth is how many times as long calls are with the server that find more others there than is usual: they wait, it does not work for so long.
func growth(calls []*call) float64 {
	mid := middleOf(calls, (*call).before)
	var few, many []int64
	for _, x := range calls {
		if int64(x.ahead) < mid {
			few = append(few, x.service())
		} else {
			many = append(many, x.service())
		}
	}
	if len(few) < fewCalls {
		return 1
	}
	return float64(median(many)) / float64(max(median(few), 1))
}

func (b *batch) threadsOf(server uint16, calls []*call) {
	for _, x := range calls {
		if x.conn.queued || x.conn.gappy() {
			return
		}
	}
	q, n, ok := lineUp(calls)
	if !ok {
		return
	}
	var waited, worked, busy, all, open, until int64
	deep := 0
	for i, x := range q.calls {
		waited += q.wait[i]
		worked += q.took[i]
		busy += max(q.took[i]-x.pulled, 0)
		open += max(x.end-max(x.start, until), 0)
		until = max(until, x.end)
		all += x.app
		if q.wait[i] > q.took[i] {
			deep++
		}
	}
	b.busy[server] = min(float64(busy)/float64(n)/float64(max(open, 1)), 1)
	if waited > worked {
		b.inLine[server] = true
	}
	if waited*2 < all || deep*3 < len(calls) {
		return
	}
	loud := b.neighbours(server, q, n)
	f := &finding{code: ServerThreads, side: Server, where: "server " + b.names.name(server), clock: Calls, certainty: Likely, limit: int64(n)}
	few := len(calls) < manyInLine
	reads := slices.ContainsFunc(calls, func(x *call) bool { return x.firstRead != 0 && x.conn.depth <= 1 }) // 0: not known
	carried := b.carried(calls)
	switch {
	case loud || carried > 0.5 || !q.explains():
		f.certainty = Possible
	case slices.ContainsFunc(calls, func(x *call) bool { return few && x.conn.restless() || x.firstRead != 0 && x.conn.depth == 1 }):
		f.certainty = Possible // they may wait for the Reads of others
	case n == 1 && !few && q.free > 0 && !reads:
		f.certainty = Certain
	}
	for i, x := range q.calls {
		f.of(x, x.take(q.wait[i]))
	}
	f.time = min(f.time, int64(float64(all)*(1-carried)))
	b.Recorder.found(f)
}

// lineUp finds the least number of threads that explains when calls were answered. ok is false if they seem not to wait for threads.
func lineUp(calls []*call) (q queue, n int, ok bool) {
	ahead(calls)
	behind, done := 0, int64(0) // calls that came while others were with the server
	for _, x := range calls {
		behind += b2i(x.arrived() < done)
		done = max(done, x.answered())
	}
	if behind*3 < len(calls) {
		return q, 0, false
	}
	for n = atOnce(calls); n <= threadsMost; n++ {
		if q, ok = inLine(calls, n); ok {
			return q, n, true
		}
	}
	return q, n, false
}

// carried is the share of the time in which calls were under way that the links to their server need for their data: threads do not shorten that.
func (b *batch) carried(calls []*call) float64 {
	var open, until, carry int64
	pairs := make(map[int]bool)
	for _, x := range calls {
		open += max(x.answered()-max(x.arrived(), until), 0)
		until = max(until, x.answered())
		if p := x.conn.pair; !pairs[p] {
			pairs[p] = true
			carry += b.carrying(&b.pairs[p])
		}
	}
	return min(float64(carry)/float64(max(open, 1)), 1)
}

// atOnce is the least number of threads that could have answered the calls in the order in which they were.
func atOnce(calls []*call) int {
	order := make([]int, len(calls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, c int) int { return cmp.Compare(calls[a].answered(), calls[c].answered()) })
	n := 1
	for done, rank := range order {
		n = max(n, rank-done+1)
	}
	return n
}

// inLine lets calls wait for one of n threads. ok is false if the threads would then have worked on them for much less time than they do on
// calls that need not wait: there are more threads.
func inLine(calls []*call, n int) (q queue, ok bool) {
	q = queue{calls: calls, wait: make([]int64, len(calls)), took: make([]int64, len(calls))}
	ends := make([]int64, len(calls))
	for i, x := range calls {
		ends[i] = x.answered()
	}
	slices.Sort(ends)
	least := make(map[uint16]int64)
	for _, x := range calls {
		d := max(x.answered()-x.arrived(), 1)
		if int(x.ahead) >= n {
			continue
		}
		if old, ok := least[x.op]; !ok || d < old {
			least[x.op] = d
		}
		q.free++
	}
	busy, quick := 0, 0
	for i, x := range calls {
		start := x.arrived()
		if i >= n {
			start = max(start, ends[i-n])
		}
		start = min(start, x.answered())
		q.wait[i], q.took[i] = start-x.arrived(), x.answered()-start
		if q.wait[i] > 0 {
			busy++
			if q.took[i]*10 < least[x.op]*6 {
				quick++
			}
		}
	}
	return q, quick*3 <= busy
}

// explains reports whether the line is most of the reason why some calls of an operation are longer with the server than others.
func (q *queue) explains() bool {
	whole, took := make(map[uint16][]int64), make(map[uint16][]int64)
	for i, x := range q.calls {
		whole[x.op] = append(whole[x.op], q.wait[i]+q.took[i])
		took[x.op] = append(took[x.op], q.took[i])
	}
	var before, after int64
	for op := range whole {
		before += apart(whole[op])
		after += apart(took[op])
	}
	return after*2 < before
}

// apart is the sum of how much times differ from their median.
func apart(times []int64) (sum int64) {
	mid := median(times)
	for _, n := range times {
		sum += max(n-mid, mid-n)
	}
	return sum
}

// neighbours finds clients that waited behind the calls of another one.
func (b *batch) neighbours(server uint16, q queue, threads int) (found bool) {
	work := make(map[uint16]int64)
	count := make(map[uint16]int)
	for i, x := range q.calls {
		work[x.client] += q.took[i]
		count[x.client]++
	}
	if len(work) < 2 {
		return false
	}
	var loud uint16
	sum := int64(0)
	for c, n := range work {
		sum += n
		if n > work[loud] || n == work[loud] && c < loud {
			loud = c
		}
	}
	if work[loud]*4 < sum*3 {
		return false
	}
	share := float64(work[loud]) / float64(sum)
	clients := make([]uint16, 0, len(work))
	for c := range work {
		if c != loud && count[c] >= 8 {
			clients = append(clients, c)
		}
	}
	slices.Sort(clients)
	for _, c := range clients {
		f := &finding{
			code: Neighbour, side: Client, where: "client " + b.names.name(c), clock: Calls, certainty: Likely, who: b.names.name(loud),
			what: b.names.name(server), limit: int64(threads),
		}
		for i, x := range q.calls {
			if x.client == c {
				f.of(x, x.take(int64(float64(q.wait[i])*share)))
			}
		}
		b.Recorder.found(f)
		found = found || f.time > 0
	}
	return found
}

// Times that a server may need for a call: less than the first is nothing to speak of, more than the second is long.
const (
	brisk = 300_000
	long  = 1_000_000
)

// alone are the servers that have one client.
func (b *batch) alone() map[uint16]bool {
	client := make(map[uint16]uint16)
	alone := make(map[uint16]bool)
	for i, x := range b.forward {
		if i > 0 && b.forward[i-1].client == x.client && b.forward[i-1].server == x.server {
			continue
		}
		if c, ok := client[x.server]; !ok {
			client[x.server], alone[x.server] = x.client, true
		} else if c != x.client {
			alone[x.server] = false
		}
	}
	return alone
}

// serverTime finds operations on which a server works long.
func (b *batch) serverTime() {
	all := b.apart(len(b.least), func(x *call) int {
		if x.end == 0 || x.conn.queued || x.opaque {
			return -1
		}
		return int(x.group)
	})
	found := make(map[uint16]*finding)
	var servers []uint16
	most, doubtful := make(map[uint16]int64), make(map[uint16]int64)
	alone, usual := b.alone(), usually(all)
	var times []int64
	for _, calls := range all {
		if len(calls) == 0 {
			continue
		}
		server := calls[0].server
		times = times[:0]
		sum, asked, known, quick := int64(0), int64(0), 0, 0
		for _, x := range calls {
			n := min(x.service(), x.left)
			times = append(times, n)
			sum += n
			asked += min(x.pullWait(), n)
			if w := x.acked(); w >= 0 {
				known++
				quick += b2i(w*10 < n)
			}
		}
		mean := sum / int64(len(times))
		if mean < brisk {
			continue
		}
		f := found[server]
		if f == nil {
			f = &finding{code: ServerTime, side: Server, where: "server " + b.names.name(server), clock: Calls, certainty: Possible}
			found[server] = f
			servers = append(servers, server)
		}
		for _, x := range calls {
			f.of(x, x.take(min(x.service(), x.left)))
		}
		sure := Possible
		if asked*2 < sum && !inTurn(calls, usual[server]) && known*10 >= len(times)*9 && (alone[server] || !b.loud(server)) { // else they wait until it asks for their data, or in line, or may wait for the calls of another client
			sure = b.surely(calls, times, quick, alone[server])
		}
		if sure != Certain {
			doubtful[server] += sum
		}
		if sum > most[server] {
			most[server], f.what, f.typical, f.certainty = sum, b.names.name(calls[0].op), mean, sure
		}
	}
	for _, s := range servers {
		if f := found[s]; f.certainty == Certain && doubtful[s]*4 > f.time {
			f.certainty = Likely // of other operations it is not
		}
		b.Recorder.found(found[s])
	}
}

// usually is how long the calls of each operation of a server are with it.
func usually(operations [][]*call) map[uint16][]int64 {
	usual := make(map[uint16][]int64)
	for _, calls := range operations {
		if len(calls) >= fewCalls {
			usual[calls[0].server] = append(usual[calls[0].server], middleOf(calls, (*call).service))
		}
	}
	return usual
}

// inTurn reports whether calls seem to wait in line, a WRITE once before its data are read and once more after that: others come before them, and no
// operation is much quicker, of those whose usual times are given.
func inTurn(calls []*call, usual []int64) bool {
	return len(usual) > 1 && middleOf(calls, (*call).before) >= fewAhead && middleOf(calls, (*call).service) < 3*slices.Min(usual)
}

// fewAhead is from how many calls on that a server has already others seem to wait behind them.
const fewAhead = 8

// fewCalls of an operation say nothing sure of a server.
const fewCalls = 8

// surely is how certain it is that the server worked for the times that calls were with it. quick is how many of them took ten times as
// long as the way to the server and back; alone says that no other client calls it.
func (b *batch) surely(calls []*call, times []int64, quick int, alone bool) Certainty {
	k, mid := calls[0].conn, median(times)
	switch {
	case b.inLine[calls[0].server] || k.depth == 1 && calls[0].firstRead != 0 || len(times) < fewCalls || b.soft(calls, quick) || k.waiting() || growth(calls) > 2 || behindData(calls): // their data may wait there as well
		return Possible
	case mid >= long && quick*2 >= len(times) && alone && !tailed(times) && !b.maybeBehindReads(k): // otherwise it may work on calls of other clients
		return Certain
	case k.fabric >= rdma.IWARP && quick*4 < len(times): // TCP's acknowledgements bound the way less well
		return Possible
	case b.answeredTogether(calls): // the path may have stood still
		return Possible
	case mid >= brisk || often(times):
		return Likely
	}
	return Possible
}

// maybeBehindReads reports whether calls may wait behind Reads: there are some, and the setup, which says how many may be under way, was not seen.
func (b *batch) maybeBehindReads(k *conn) bool {
	return slices.ContainsFunc(b.pairs[k.pair].calls, func(x *call) bool { return x.firstRead != 0 && x.conn.depth == 0 })
}

// answeredTogether reports whether most of the calls that were long with the server were answered at once with others that were: what let them go may be
// anything that all of them wait for.
func (b *batch) answeredTogether(calls []*call) bool {
	var at []int64
	for _, x := range b.pairs[calls[0].conn.pair].calls {
		if x.service() >= brisk {
			at = append(at, x.answer)
		}
	}
	slices.Sort(at)
	slow, near := 0, 0
	for _, x := range calls {
		if x.service() < brisk {
			continue
		}
		slow++
		i, _ := slices.BinarySearch(at, x.answer)
		near += b2i(i > 0 && x.answer-at[i-1] <= held || i+1 < len(at) && at[i+1]-x.answer <= held)
	}
	return near*2 > slow
}

// loud reports whether one client among several causes most of the time that calls are with a server.
func (b *batch) loud(server uint16) bool {
	times := make(map[uint16]int64)
	sum := int64(0)
	for _, x := range b.forward {
		if x.end != 0 && x.server == server {
			times[x.client] += x.end - x.start
			sum += x.end - x.start
		}
	}
	for _, n := range times {
		if len(times) > 1 && n*10 > sum*7 {
			return true
		}
	}
	return false
}

// often reports whether a server is slow on some calls, though not on most, and not by the same time on each, which would be a timeout.
func often(times []int64) bool {
	slices.Sort(times)
	i, _ := slices.BinarySearch(times, long)
	slow := times[i:]
	return len(slow) >= 8 && len(slow)*10 >= len(times) && slow[len(slow)*3/4]*10 > slow[len(slow)/4]*11
}

// tailed reports whether a few calls make up a quarter of the time, which something else may have held up. It sorts the times.
func tailed(times []int64) bool {
	slices.Sort(times)
	few, all := int64(0), int64(0)
	for i, n := range times {
		all += n
		if i >= len(times)-max(len(times)/16, 1) {
			few += n
		}
	}
	return few*4 > all
}

// paced reports whether calls with data are done as if one thing after the other carried them, at one rate: it may be a link.
func (k *conn) paced() bool {
	type done struct {
		at   int64
		call *call
	}
	var list []done
	k.each(func(x *call) {
		switch {
		case x.bytes < 4096:
		case x.firstRead != 0:
			list = append(list, done{x.answer, x})
		default:
			list = append(list, done{x.end, x})
		}
	})
	slices.SortStableFunc(list, func(a, b done) int { return cmp.Compare(a.at, b.at) })
	var pace []int64
	for i := 1; i < len(list); i++ {
		if x := list[i].call; x.callEnd < list[i-1].at {
			pace = append(pace, (list[i].at-list[i-1].at)*1024/int64(x.bytes))
		}
	}
	mid, near := median(pace), 0
	for _, n := range pace {
		if n*10 >= mid*6 && n*10 <= mid*15 {
			near++
		}
	}
	return len(pace) >= 24 && near*10 >= len(pace)*6
}

// behindData reports whether data of other calls of a connection moved for most of the time that calls were with the server: they may have
// waited for that.
func behindData(calls []*call) bool {
	k := calls[0].conn
	var moving []still
	k.each(func(x *call) {
		switch {
		case x.firstRead != 0:
			moving = append(moving, still{x.firstRead, x.lastRead})
		case x.pushed:
			moving = append(moving, still{x.answer, x.end})
		}
	})
	moving, _ = merge(moving)
	all, behind := int64(0), int64(0)
	for _, x := range calls {
		if x.conn != k {
			continue
		}
		for _, stage := range [2]still{{x.callEnd, x.act}, {x.lastRead, x.answer}} {
			if stage.from == 0 || stage.to <= stage.from {
				continue
			}
			all += stage.to - stage.from
			for _, s := range moving[firstAfter(moving, stage.from):] {
				if s.from >= stage.to {
					break
				}
				behind += min(s.to, stage.to) - max(s.from, stage.from)
			}
		}
	}
	return behind*2 > all
}

// soft reports whether the adapters of the calls need about as long for an acknowledgement as others for a call: they are made of software, and
// what the server takes may be theirs.
func (b *batch) soft(calls []*call, quick int) bool {
	k := calls[0].conn
	if k.paced() {
		return true
	}
	return k.restless() && quick*4 < len(calls)*3
}
