package doubled

import (
	"io"
	"slices"

	"github.com/rpcrdma/toolkit/capture"
)

// Delay is the time between the two copies of a packet, in nanoseconds.
type Delay struct {
	Low, High int64 // copies are so far apart
	Typical   int64 // the median of those that were looked at
}

// What is looked at, and what it takes to be sure.
const (
	lookPackets = 1 << 17
	lookLeast   = 4 << 20 // bytes of packets
	lookMost    = 16 << 20
	lookShare   = 64      // part of the file that is looked at, between these: it takes as long as a hundredth of decoding
	lookAll     = 1 << 11 // packets that are all looked at; of those behind them, one in 16, chosen by content
	minPairs    = 16
	minEachWay  = 4 // pairs in each direction between two hosts
	// Of the packets that can have a copy in what was looked at, this share must have exactly one, in percent: both points lose some.
	minShare = 80
	// slack is how far the time between copies may differ from what was seen, in nanoseconds, at least, and how far packets may be out of order.
	slack = 2e6
	// maxSpread bounds the differences of the time between copies, in nanoseconds, for a time of up to 4 × as much: capture points
	// stamp packets with jitter. Above, a quarter of it.
	maxSpread = 50e6
)

// Look reads the beginning of a capture, of which the file has so many bytes, and tells which of its taps show packets twice, and how far apart.
func Look(r capture.Reader, file int64) (map[uint16]Delay, error) {
	most := int(min(max(file/lookShare, lookLeast), lookMost))
	taps := map[uint16]*tally{}
	var b capture.Batch
	var s printer
	packets, size := 0, 0
	for packets < lookPackets && size < most {
		if err := r.Read(&b); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		for i := range b.Packets {
			p := &b.Packets[i]
			n := len(p.Data)
			size += n
			packets++
			chosen := n > 0 && p.Data[n-1]&15 == 0
			if !chosen && packets > lookAll {
				continue
			}
			if x, ok := s.of(p); ok {
				t := taps[p.Tap]
				if t == nil {
					t = &tally{at: map[uint64]int{}}
					taps[p.Tap] = t
				}
				t.add(seen{print: x, time: p.Time, chosen: chosen}, packets <= lookAll)
			}
		}
	}
	found := map[uint16]Delay{}
	for tap, t := range taps {
		if d, ok := t.delay(); ok {
			found[tap] = d
		}
	}
	return found, nil
}

// tally is what was seen at one tap.
type tally struct {
	at   map[uint64]int // in seen, by print
	seen []seen
	last int64 // time of the last packet
	all  int64 // time of the last one before only those that are chosen are looked at
	back bool  // the time went back: the file is not one of packets in their order
}

// seen is a packet that came once or more.
type seen struct {
	print
	time, next int64 // of the first two
	count      int
	chosen     bool
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
	if p.count++; p.count == 2 {
		p.next = x.time
	}
}

// delay is the time between copies, if nearly every packet has one.
func (t *tally) delay() (d Delay, ok bool) {
	var times []int64
	var firsts []int
	for i := range t.seen {
		if p := &t.seen[i]; p.count == 2 {
			times = append(times, p.next-p.time)
			firsts = append(firsts, i)
		}
	}
	if len(times) < minPairs || t.back {
		return d, false
	}
	slices.Sort(times)
	at := func(percent int) int64 { return times[len(times)*percent/100] }
	low, high := at(5), at(95)
	// One point may begin later than the other, or end earlier. Some packets come twice on their own: announcements of hosts, say.
	few := len(firsts) / 20
	from, to := firsts[few], firsts[len(firsts)-1-few]
	d.Typical = at(50)
	spread := high - low
	if low < 0 || spread > max(maxSpread, d.Typical/4) {
		return d, false
	}
	more := max(slack, 2*spread, d.Typical/8)
	d.Low, d.High = max(0, low-more), high+more
	packets, pairs := 0, 0
	ways := map[uint64]*[2]int{}
	for i := range t.seen[from : to+1] {
		p := &t.seen[from+i]
		end := t.all
		if p.chosen {
			end = t.last
		}
		if p.time > end-d.High {
			continue // its copy may come later
		}
		packets++
		if p.count != 2 || p.next-p.time < d.Low || p.next-p.time > d.High {
			continue
		}
		pairs++
		w := ways[p.hosts]
		if w == nil {
			w = new([2]int)
			ways[p.hosts] = w
		}
		if p.up {
			w[1]++
		} else {
			w[0]++
		}
	}
	both := false
	for _, w := range ways {
		both = both || min(w[0], w[1]) >= minEachWay
	}
	return d, both && pairs >= minPairs && pairs*100 >= packets*minShare
}
