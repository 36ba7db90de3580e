package duplicates

import (
	"io"
	"slices"

	"github.com/rpcrdma/toolkit/capture"
)

// Delay says how often each packet comes, and how long after the first time, in nanoseconds.
type Delay struct {
	Times     int   // from 2 to 4
	Low, High int64 // least and greatest time from the first one to a copy
	Typical   int64 // median time from the first one to the last copy
}

// What is looked at, and what it takes to be sure.
const (
	lookPackets = 1 << 17
	lookLeast   = 4 << 20 // bytes of packets
	lookMost    = 16 << 20
	// lookTime is how much time is looked at, in nanoseconds, on links so fast that the bytes above pass sooner: the clocks of two capture
	// points differ by milliseconds. It may take lookTimes as many bytes.
	lookTime   = 1e9
	lookTimes  = 8
	lookShare  = 128     // part of the file that is looked at, between these: reading and looking cost about as much as decoding
	lookAll    = 1 << 11 // packets at the beginning; of the following ones, one in 16 is looked at, chosen by content
	minPairs   = 16      // packets with copies
	minEachWay = 4       // of them in each direction between two hosts
	// minShare is the percentage of packets that must have the same number of copies. All capture points lose some packets.
	minShare = 80
	// minShareEachWay is the percentage in each direction between two hosts: packets that are sent again go in one.
	minShareEachWay = 60
	// slack is the least tolerance, in nanoseconds, for the time between copies, and for packets out of order.
	slack = 2e6
	// queued is how much longer than at the beginning of the capture packets may be under way, in nanoseconds, where a link fills up or a path stands still.
	queued = 10e6
	// maxSpread bounds how much the time between copies may vary, in nanoseconds, since timestamps have jitter. If that time is more
	// than four times as long, it may vary by a quarter.
	maxSpread = 50e6
)

// beginning tallies the beginning of a capture.
func beginning(r capture.Reader, file int64) (map[uint16]*tally, error) {
	most := int(min(max(file/lookShare, lookLeast), lookMost))
	taps := map[uint16]*tally{}
	var b capture.Batch
	var s printer
	packets, size := 0, 0
	var first, last int64
	for packets < lookPackets && (size < most || last-first < lookTime && size < lookTimes*most) {
		if err := r.Read(&b); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		for i := range b.Packets {
			p := &b.Packets[i]
			n := len(p.Data)
			if last = p.Time; packets == 0 {
				first = last
			}
			size += n
			packets++
			chosen := n > 0 && p.Data[n-1]&15 == 0
			if !chosen && packets > lookAll {
				continue
			}
			if x, ok := s.of(p); ok {
				t := taps[p.Tap]
				if t == nil {
					t = newTally(len(taps))
					taps[p.Tap] = t
				}
				t.add(seen{print: x, time: p.Time, chosen: chosen}, packets <= lookAll)
			}
		}
	}
	return taps, nil
}

// same reports whether two captures show the same packets at their beginnings.
func same(a, b map[uint64]bool) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := 0
	for sum := range a {
		if b[sum] {
			n++
		}
	}
	return n >= minPairs && n*10 >= len(a)
}

// tally is what was seen at one tap.
type tally struct {
	at   map[uint64]int // in seen, by print
	seen []seen
	last int64 // time of the last packet
	all  int64 // time of the last of the lookAll packets
	back bool  // the time went back, so the packets are not in the order of time
}

// seen is a packet that came once or more.
type seen struct {
	print
	time, next, last int64 // of the first two, and of the last one
	count            int
	chosen           bool
}

// newTally makes a tally beside others. The first one is most often the only one, and has room for all packets that are looked at.
func newTally(others int) *tally {
	if others > 0 {
		return &tally{at: map[uint64]int{}}
	}
	const room = 1 << 13
	return &tally{at: make(map[uint64]int, room), seen: make([]seen, 0, room)}
}

func (t *tally) add(x seen, all bool) {
	t.back = t.back || x.time < t.last-slack
	if t.last = x.time; all {
		t.all = x.time
	}
	i, again := t.at[x.sum]
	if !again {
		x.count = 1
		t.at[x.sum] = len(t.seen)
		t.seen = append(t.seen, x)
		return
	}
	p := &t.seen[i]
	p.last = x.time
	if p.count++; p.count == 2 {
		p.next = x.time
	}
}

// mostTimes is how often a packet may come: at a network interface, at the bond that it belongs to, and at two VLANs of that, say.
const mostTimes = 4

// times is the most frequent number of times that a packet came, among packets that came more than once.
func (t *tally) times() int {
	var n [mostTimes + 1]int
	for i := range t.seen {
		if c := t.seen[i].count; c <= mostTimes {
			n[c]++
		}
	}
	best := 2
	for c := best; c <= mostTimes; c++ {
		if n[c] > n[best] {
			best = c
		}
	}
	return best
}

// delay describes the copies, if nearly all packets have the same number of them.
func (t *tally) delay() (d Delay, ok bool) {
	var next, last []int64
	var firsts []int
	d.Times = t.times()
	for i := range t.seen {
		if p := &t.seen[i]; p.count == d.Times {
			next = append(next, p.next-p.time)
			last = append(last, p.last-p.time)
			firsts = append(firsts, i)
		}
	}
	if len(firsts) < minPairs || t.back {
		return d, false
	}
	slices.Sort(next)
	slices.Sort(last)
	at := func(of []int64, percent int) int64 { return of[len(of)*percent/100] }
	low, high := at(next, 5), at(last, 95)
	// One point may begin later than the other, or end earlier. Some packets come twice on their own: announcements of hosts, say.
	few := len(firsts) / 20
	from, to := firsts[few], firsts[len(firsts)-1-few]
	d.Typical = at(last, 50)
	spread := max(at(next, 95)-low, high-at(last, 5))
	if low < 0 || spread > max(maxSpread, d.Typical/4) {
		return d, false
	}
	more := max(queued, 2*spread, d.Typical/8)
	d.Low, d.High = max(0, low-more), high+more
	// Hosts of which no packet comes twice do not pass by the other point.
	type counted struct{ packets, pairs [2]int }
	hosts := map[uint64]*counted{}
	for i := range t.seen[from : to+1] {
		p := &t.seen[from+i]
		end := t.all
		if p.chosen {
			end = t.last
		}
		if p.time > end-high {
			continue // its copy may come later
		}
		c := hosts[p.hosts]
		if c == nil {
			c = new(counted)
			hosts[p.hosts] = c
		}
		way := 0
		if p.up {
			way = 1
		}
		c.packets[way]++
		if p.count != d.Times || p.next-p.time < d.Low || p.last-p.time > d.High {
			continue
		}
		c.pairs[way]++
	}
	packets, pairs, both := 0, 0, false
	for _, c := range hosts {
		if c.pairs == [2]int{} {
			continue
		}
		for way, n := range c.pairs {
			if n*100 < c.packets[way]*minShareEachWay {
				return d, false // one side sends again
			}
			packets, pairs = packets+c.packets[way], pairs+n
		}
		both = both || min(c.pairs[0], c.pairs[1]) >= minEachWay
	}
	return d, both && pairs >= minPairs && pairs*100 >= packets*minShare
}
