package monitor

import (
	"slices"
	"time"
)

// Alarm names a threshold.
type Alarm uint8

// Alarms. Those up to AlarmFatal belong to one RDMA connection, the others to all transactions that the
// filter lets pass.
const (
	AlarmAgain   Alarm = iota // share of packets sent again
	AlarmMarked               // share of packets marked
	AlarmCNP                  // CNPs a second
	AlarmRNR                  // RNR NAKs a second
	AlarmStalled              // share of the time that the connection stalled
	AlarmFatal                // NAKs that end a connection
	AlarmP99                  // 99th percentile of the latency, seconds
	AlarmErrors               // share of transactions that failed
	AlarmStuck                // stuck calls, whatever the filter
	NumAlarms    = iota
)

var alarmNames = [NumAlarms]string{"again", "marked", "cnp", "rnr", "stalled", "fatal", "p99", "errors", "stuck"}

func (a Alarm) String() string { return alarmNames[a] }

// ParseAlarm finds an alarm by its name.
func ParseAlarm(s string) (Alarm, bool) {
	i := slices.Index(alarmNames[:], s)
	return Alarm(max(i, 0)), i >= 0
}

// Thresholds are the values from which there is an alarm: shares of 1, numbers a second, seconds or a number,
// as each Alarm says. Zero is off.
type Thresholds [NumAlarms]float64

// DefaultThresholds are for networks that are meant to lose nothing. How slow is too slow, nobody knows but
// the user.
var DefaultThresholds = Thresholds{AlarmAgain: 0.001, AlarmMarked: 0.05, AlarmCNP: 1000, AlarmRNR: 1, AlarmStalled: 0.05, AlarmFatal: 1e-9, AlarmStuck: 1}

// alarmSet is a set of alarms.
type alarmSet uint16

func (s alarmSet) list() (list []Alarm) {
	for a := range Alarm(NumAlarms) {
		if s&(1<<a) != 0 {
			list = append(list, a)
		}
	}
	return list
}

// passed are the thresholds that values reach.
func (t *Thresholds) passed(have *Thresholds) (s alarmSet) {
	for a := range t {
		if t[a] > 0 && have[a] >= t[a] {
			s |= 1 << a
		}
	}
	return s
}

// wire are the alarms of a connection in an interval.
func (t *Thresholds) wire(w *Wire, span time.Duration) alarmSet {
	if w.Packets == 0 || span <= 0 {
		return 0
	}
	seconds := span.Seconds()
	return t.passed(&Thresholds{
		AlarmAgain: float64(w.Again) / float64(w.Packets), AlarmMarked: float64(w.Marked) / float64(w.Packets),
		AlarmCNP: float64(w.CNPs) / seconds, AlarmRNR: float64(w.RNRs) / seconds,
		AlarmStalled: float64(w.Stalled()) / float64(span), AlarmFatal: float64(w.Fatal) / seconds,
	})
}

// alarms are those that an interval passes.
func (t *Thresholds) alarms(w *Wire, span time.Duration) []Alarm { return t.wire(w, span).list() }

// Raised says how often there was an alarm.
type Raised struct {
	Intervals uint64
	First     int64 // start of the first of them, ns since 1970
}

// alarmSpan is the length of time that counts are divided by. The last interval of an input may be cut to a
// few packets: one CNP in a microsecond is not a million a second.
func (m *Model) alarmSpan() time.Duration { return max(m.span, m.opt.Interval) }

// raise looks for alarms in the interval that has just ended.
func (m *Model) raise() {
	t := &m.opt.Alarms
	m.over = 0
	if *t == (Thresholds{}) {
		return
	}
	for _, w := range m.wires.passed {
		m.over |= t.wire(&w, m.alarmSpan())
	}
	st := m.counted()
	slot := &st.slots.slots[st.slots.last()]
	m.over |= t.passed(&Thresholds{
		AlarmP99: float64(slot.P99) / 1e9, AlarmErrors: float64(slot.Errors) / float64(max(slot.Count, 1)), AlarmStuck: float64(m.stuck),
	})
	for a := range m.raised {
		if m.over&(1<<a) == 0 {
			continue
		}
		r := &m.raised[a]
		if r.Intervals++; r.Intervals == 1 {
			r.First = m.start
		}
	}
}
