package monitor

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rpcrdma/toolkit/capture"
)

// talk is a call and its reply every 100 ms.
func talk(n int) (list []capture.Packet) {
	var x traffic
	for i := range n {
		now := at(int64(i) * 100e6)
		list = append(list, x.call(now, 1, 700, uint32(i), 7), x.reply(now+2e6, 1, 700, uint32(i)))
	}
	return list
}

// TestPace compares the time that a replay takes with its speed.
func TestPace(t *testing.T) {
	for _, speed := range []float64{0.5, 1, 10, 1000, 0} {
		synctest.Test(t, func(t *testing.T) {
			list := talk(100)
			span := time.Duration(list[len(list)-1].Time - list[0].Time)
			begin := time.Now()
			f := Start(New(Options{}), &memory{packets: list, batch: 30}, FeedOptions{Speed: speed})
			if err := f.Wait(); err != nil {
				t.Error(err)
			}
			want := time.Duration(0)
			if speed > 0 {
				want = time.Duration(float64(span) / speed)
			}
			if d := time.Since(begin) - want; d < 0 || d > time.Millisecond*20 {
				t.Errorf("speed %v: took %v, want %v", speed, time.Since(begin), want)
			}
			s := f.Latest()
			if !s.Ended || s.Total.Count != 100 {
				t.Errorf("speed %v: %d transactions", speed, s.Total.Count)
			}
			f.Stop()
		})
	}
}

// TestPause stops a replay, goes on by one packet, changes its speed, and lets
// it go.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Start(New(Options{}), &memory{packets: talk(100), batch: 7}, FeedOptions{Speed: 1})
		time.Sleep(2 * time.Second)
		f.Pause(true)
		time.Sleep(time.Second)
		s := f.Latest()
		n := s.Decoder.Packets
		if !s.Paused || n < 36 || n > 44 {
			t.Fatalf("%d packets after two seconds, paused %v", n, s.Paused)
		}
		time.Sleep(time.Minute)
		if s := f.Latest(); s.Decoder.Packets != n || s.Ended {
			t.Errorf("%d packets in a minute of pause", s.Decoder.Packets-n)
		}
		f.Skip()
		time.Sleep(time.Second)
		if s := f.Latest(); s.Decoder.Packets != n+1 {
			t.Errorf("%d packets instead of one", s.Decoder.Packets-n)
		}
		f.SetSpeed(100)
		f.Pause(false)
		time.Sleep(time.Second)
		if s := f.Latest(); !s.Ended || s.Speed != 100 {
			t.Errorf("%d packets, speed %v", s.Decoder.Packets, s.Speed)
		}
		f.Stop()
	})
}

// TestTimeGoesOn wants calls to grow old without packets.
func TestTimeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x traffic
		list := []capture.Packet{x.call(at(0), 1, 700, 1, 7), x.reply(at(60*second), 1, 700, 1)}
		f := Start(New(Options{Stuck: 5 * time.Second}), &memory{packets: list, batch: 2}, FeedOptions{Speed: 1})
		time.Sleep(10 * time.Second)
		s := f.Latest()
		if s.Stuck != 1 || s.Oldest < 9*second || s.Oldest > 11*second || len(s.History) != 9 && len(s.History) != 10 {
			t.Errorf("%d stuck, %d ns old, %d intervals", s.Stuck, s.Oldest, len(s.History))
		}
		f.Stop()
		if err := f.Wait(); err != nil {
			t.Error(err)
		}
		if s := f.Latest(); !s.Ended || s.Open != 0 {
			t.Error("not ended after Stop")
		}
	})
}

// TestSlowReader is a live input that falls silent and catches up: time continues with it.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make(slow, 1)
		f := Start(New(Options{}), r, FeedOptions{Live: true})
		list := talk(100)
		r <- list[:100]
		time.Sleep(time.Second)
		if s := f.Latest(); s.Decoder.Packets != 100 || s.Paced {
			t.Errorf("%d packets", s.Decoder.Packets)
		}
		time.Sleep(10 * time.Minute)
		r <- list[100:]
		close(r)
		if err := f.Wait(); err != nil {
			t.Error(err)
		}
		if s := f.Latest(); s.Total.Count != 100 {
			t.Errorf("%d transactions", s.Total.Count)
		}
		f.Stop()
	})
}

// slow is a capture.Reader that waits.
type slow chan []capture.Packet

func (s slow) Read(b *capture.Batch) error {
	list, ok := <-s
	b.Packets = list
	if !ok {
		return io.EOF
	}
	return nil
}

func (s slow) Problems() ([]*capture.Problem, int) { return nil, 0 }
func (s slow) Close() error                        { return nil }

// TestReadError wants the error of a reader told, and what came before it.
func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	f := Start(New(Options{}), &memory{packets: talk(10), batch: 4, end: broken}, FeedOptions{})
	if err := f.Wait(); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if s := f.Latest(); !s.Ended || !errors.Is(s.Err, broken) || s.Total.Count != 10 {
		t.Errorf("%+v", s.Err)
	}
	f.Stop()
}

// TestEnough ends a feed after an interval.
func TestEnough(t *testing.T) {
	var got []*Snapshot
	f := Start(New(Options{}), &memory{packets: talk(100), batch: 1000}, FeedOptions{Interval: func(s *Snapshot) bool {
		got = append(got, s)
		return len(got) < 3
	}})
	if err := f.Wait(); err != nil {
		t.Error(err)
	}
	if len(got) != 3 || got[2].Now.Start != at(2*second) || got[2].Now.Count != 10 {
		t.Errorf("%d intervals", len(got))
	}
	f.Stop()
}

// TestAfterTheEnd inspects a transaction when the input has ended.
func TestAfterTheEnd(t *testing.T) {
	f := Start(New(Options{}), &memory{packets: talk(10), batch: 100}, FeedOptions{})
	if err := f.Wait(); err != nil {
		t.Fatal(err)
	}
	s := f.Latest()
	for range len(f.Notice()) {
		<-f.Notice()
	}
	f.Watch(s.Rows[0].Serial, 100, false)
	<-f.Notice()
	if d := f.Latest().Detail; d == nil || !d.Found || d.Row.XID != s.Rows[0].XID {
		t.Errorf("%+v", d)
	}
	f.Stop()
}

// sluggish is a reader that takes long for each batch.
type sluggish struct{ memory }

func (s *sluggish) Read(b *capture.Batch) error {
	time.Sleep(2 * time.Second)
	return s.memory.Read(b)
}

// TestSluggishReader: what a replay says of calls does not depend on how fast its packets are read.
func TestSluggishReader(t *testing.T) {
	var raised [2][NumAlarms]Raised
	for i, speed := range []float64{1000, 0} {
		synctest.Test(t, func(t *testing.T) {
			opt := Options{}
			opt.Alarms[AlarmStuck] = 1
			again := func() (capture.Reader, error) { return nil, io.EOF }
			f := Start(New(opt), &sluggish{memory{packets: talk(100), batch: 7}}, FeedOptions{Speed: speed, Reopen: again})
			if err := f.Wait(); err != nil {
				t.Error(err)
			}
			raised[i] = f.Latest().Raised
			f.Stop()
		})
	}
	if raised[0] != raised[1] || raised[1][AlarmStuck].Intervals != 0 {
		t.Errorf("alarms at speed 1000: %v; without a pace: %v", raised[0], raised[1])
	}
}
