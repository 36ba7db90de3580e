package monitor

import (
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestAlarms passes each threshold, and just does not pass it.
func TestAlarms(t *testing.T) {
	var stalled [rdma.NumCauses]int64
	stalled[rdma.CauseRest+1] = 500e6 // a quarter of two seconds
	stalled[rdma.CauseRest] = 9e18    // is none
	w := Wire{Packets: 1000, Again: 20, Marked: 100, CNPs: 10, RNRs: 4, Fatal: 1, Lost: stalled}
	have := Thresholds{AlarmAgain: 0.02, AlarmMarked: 0.1, AlarmCNP: 5, AlarmRNR: 2, AlarmStalled: 0.25, AlarmFatal: 0.5}
	for a := range AlarmFatal + 1 { // those of a connection
		var one Thresholds
		one[a] = have[a]
		if got := one.alarms(&w, 2*time.Second); !slices.Equal(got, []Alarm{a}) {
			t.Errorf("%v at %v: %v", a, one[a], got)
		}
		one[a] *= 1.01
		if got := one.alarms(&w, 2*time.Second); got != nil {
			t.Errorf("%v at %v: %v", a, one[a], got)
		}
		if got, ok := ParseAlarm(a.String()); !ok || got != a {
			t.Errorf("%v is read as %v", a, got)
		}
	}
	if got := have.alarms(&w, 2*time.Second); len(got) != int(AlarmFatal)+1 {
		t.Errorf("all: %v", got)
	}
	if got := have.alarms(&Wire{}, time.Second); got != nil {
		t.Errorf("silence: %v", got)
	}
	if got := have.alarms(&w, 0); got != nil {
		t.Errorf("no time: %v", got)
	}
	if got := new(Thresholds).alarms(&w, time.Second); got != nil {
		t.Errorf("all off: %v", got)
	}
}

// TestAlarmFires replays losses: the connection has an alarm in the interval in which they were, and
// stands first; not with a threshold beyond them.
func TestAlarmFires(t *testing.T) {
	list := packets(t, "rocev2-nfs3-loss.both.pcapng.zst")
	for _, test := range []struct {
		again float64
		fires bool
	}{{0.001, true}, {0.999, false}, {0, false}} {
		m := New(Options{Interval: 100 * time.Millisecond, Alarms: Thresholds{AlarmAgain: test.again}})
		fired := 0
		m.Every(func() {
			s := m.Snapshot()
			for i, x := range s.Fabric {
				if len(x.Alarms) == 0 {
					continue
				}
				fired++
				if i >= s.Alarms || x.Alarms[0] != AlarmAgain || float64(x.Now.Again)/float64(x.Now.Packets) < test.again {
					t.Errorf("%d of %d alarms: %+v", i, s.Alarms, x)
				}
			}
		})
		m.Packets(list)
		if fired > 0 != test.fires {
			t.Errorf("threshold %v: %d alarms", test.again, fired)
		}
	}
}

// TestRaised counts intervals with alarms of all transactions, and those of connections.
func TestRaised(t *testing.T) {
	list := packets(t, "rocev2-nfs3-loss.both.pcapng.zst")
	run := func(alarms Thresholds) *Snapshot {
		m := New(Options{Interval: 100 * time.Millisecond, Alarms: alarms})
		m.Packets(list)
		m.Flush(nil)
		return m.Snapshot()
	}
	var slowest, failed float64
	var slow, wrong uint64
	for _, slot := range run(Thresholds{}).History {
		slowest = max(slowest, float64(slot.P99)/1e9)
		if slot.Count > 0 {
			failed = max(failed, float64(slot.Errors)/float64(slot.Count))
		}
		if float64(slot.P99)/1e9 >= 0.01 {
			slow++
		}
		if slot.Errors > 0 {
			wrong++
		}
	}
	if slow == 0 || wrong == 0 {
		t.Fatal("the sample has no slow and no failed transactions")
	}
	s := run(Thresholds{AlarmP99: 0.01, AlarmErrors: 1e-9, AlarmAgain: 0.001})
	if r := s.Raised; r[AlarmP99].Intervals != slow || r[AlarmErrors].Intervals != wrong || r[AlarmAgain].Intervals == 0 || r[AlarmRNR].Intervals != 0 || r[AlarmP99].First < s.First {
		t.Errorf("%+v; want %d slow, %d failed", r, slow, wrong)
	}
	if r := run(Thresholds{AlarmP99: slowest * 1.01, AlarmErrors: failed + 0.01}).Raised; r != ([NumAlarms]Raised{}) {
		t.Errorf("beyond the greatest: %+v", r)
	}
}

// TestAlarmSpan does not take the last packets of an input for a flood.
func TestAlarmSpan(t *testing.T) {
	m := New(Options{Interval: time.Second})
	if m.span = time.Microsecond; m.alarmSpan() != time.Second {
		t.Error(m.alarmSpan())
	}
}
