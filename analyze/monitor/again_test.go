package monitor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/capture"
)

// replayOf feeds packets that can be read again.
func replayOf(list []capture.Packet, speed float64) *Feed {
	open := func() (capture.Reader, error) { return &memory{packets: list, batch: 30}, nil }
	r, _ := open()
	return Start(New(Options{}), r, FeedOptions{Speed: speed, Reopen: open})
}

// settled is the snapshot once all goroutines wait.
func settled(f *Feed) *Snapshot {
	time.Sleep(time.Second)
	synctest.Wait()
	return f.Latest()
}

// TestFilterAtEnd sets a filter when all has been read: it counts from the
// beginning.
func TestFilterAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := replayOf(talk(100), 0)
		if err := f.Wait(); err != nil {
			t.Fatal(err)
		}
		x, err := filter.Compile("xid >= 40")
		if err != nil {
			t.Fatal(err)
		}
		f.SetFilter(x)
		if s := settled(f); !s.Ended || s.Total.Count != 60 || s.Filter == "" || s.Again {
			t.Errorf("%d transactions, ended %v", s.Total.Count, s.Ended)
		}
		f.SetFilter(nil)
		if s := settled(f); !s.Ended || s.Total.Count != 100 || s.Filter != "" {
			t.Errorf("%d transactions, ended %v", s.Total.Count, s.Ended)
		}
		if e := f.Ending(); e.Snapshot.Total.Count != 100 || e.Reader != f.r {
			t.Error("a later pass has changed what was known at the end")
		}
		f.Stop()
	})
}

// TestWishesTogether asks for another pass and for other changes at the same time: none may be lost.
func TestWishesTogether(t *testing.T) {
	some, err := filter.Compile("xid >= 40")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		again func(*wishes)
		count uint64
		paged bool
	}{
		{"filter", func(w *wishes) { w.filter, w.refilter = some, true }, 60, false},
		{"page", func(w *wishes) { w.page, w.repage = new(uint64), true }, 100, true},
		{"filter and page", func(w *wishes) {
			w.filter, w.refilter, w.page, w.repage = some, true, new(uint64), true
		}, 60, true},
		{"filter and time", func(w *wishes) {
			w.filter, w.refilter, w.seek, w.reseek = some, true, 1<<62, true
		}, 60, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := replayOf(talk(100), 0)
				if err := f.Wait(); err != nil {
					t.Fatal(err)
				}
				serial := f.Latest().Rows[0].Serial
				f.ask(func(w *wishes) {
					c.again(w)
					w.watch, w.width, w.rewatch = serial, 80, true
					w.interval = 10 * time.Millisecond
				})
				s := settled(f)
				if s.Total.Count != c.count || s.Paged != c.paged {
					t.Errorf("%d transactions, paged %v: want %d, %v", s.Total.Count, s.Paged, c.count, c.paged)
				}
				if d := s.Detail; d == nil || d.Row.Serial != serial || !d.Found {
					t.Errorf("the transaction that was opened is not shown: %+v", d)
				}
				if s.Interval != 10*time.Millisecond {
					t.Errorf("intervals of %v", s.Interval)
				}
				f.Stop()
			})
		})
	}
}

// TestPages lists all transactions of a capture with more than are held.
func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 2*maxPage + 100
		f := replayOf(talk(all), 0)
		if err := f.Wait(); err != nil {
			t.Fatal(err)
		}
		if n := len(f.Latest().Rows); n == 0 || n > maxRecent+maxSlow+maxOdd {
			t.Fatalf("%d rows", n)
		}
		next := uint32(0)
		for from := uint64(0); from < all; {
			f.Page(&from)
			s := settled(f)
			if !s.Ended || !s.Paged || s.PageFrom != from || s.PageAll != all || len(s.Rows) == 0 || len(s.Rows) > maxPage {
				t.Fatalf("from %d: %d rows of %d, from %d", from, len(s.Rows), s.PageAll, s.PageFrom)
			}
			for i := range s.Rows {
				if s.Rows[i].XID != next {
					t.Fatalf("row %d from %d: XID %d, want %d", i, from, s.Rows[i].XID, next)
				}
				next++
			}
			f.Watch(s.Rows[0].Serial, 80, true)
			if d := settled(f).Detail; d == nil || !d.Found || d.Row.XID != s.Rows[0].XID {
				t.Error("a transaction of the page cannot be looked into")
			}
			from += uint64(len(s.Rows))
		}
		f.Page(nil)
		if s := settled(f); s.Paged || len(s.Rows) > maxRecent+maxSlow+maxOdd {
			t.Errorf("%d rows", len(s.Rows))
		}
		f.Stop()
	})
}

// TestJump goes forward and back in a replay, and back from its end.
func TestJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := talk(100)
		first := list[0].Time
		f := replayOf(list, 1)
		f.Jump(first + 5e9)
		if s := settled(f); s.Time < first+5e9 || s.Time > first+7e9 || s.Ended || s.Total.Count < 50 || s.Total.Count > 65 {
			t.Errorf("forward: %v after the first, %d transactions", time.Duration(s.Time-first), s.Total.Count)
		}
		f.Jump(first + 2e9)
		if s := settled(f); s.Time < first+2e9 || s.Time > first+4e9 || s.Total.Count < 20 || s.Total.Count > 35 {
			t.Errorf("back: %v after the first, %d transactions", time.Duration(s.Time-first), s.Total.Count)
		}
		f.SetSpeed(0)
		if err := f.Wait(); err != nil {
			t.Fatal(err)
		}
		f.Jump(first + 3e9)
		s := settled(f)
		if s.Ended || !s.Paused || s.Total.Count != 30 {
			t.Errorf("from the end: paused %v, ended %v, %d transactions", s.Paused, s.Ended, s.Total.Count)
		}
		f.Pause(false)
		if s := settled(f); !s.Ended || s.Total.Count != 100 {
			t.Errorf("ended %v, %d transactions", s.Ended, s.Total.Count)
		}
		f.Stop()
	})
}

// TestNotAgain asks for another pass where there is none.
func TestNotAgain(t *testing.T) {
	for name, reopen := range map[string]func() (capture.Reader, error){
		"none": nil, "failing": func() (capture.Reader, error) { return nil, errors.New("gone") },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := Start(New(Options{}), &memory{packets: talk(10), batch: 3}, FeedOptions{Reopen: reopen})
			if err := f.Wait(); err != nil {
				t.Fatal(err)
			}
			f.Jump(0)
			if s := settled(f); !s.Ended || s.Note == "" || s.Total.Count != 10 {
				t.Errorf("%s: %q, %d transactions", name, s.Note, s.Total.Count)
			}
			f.Stop()
		})
	}
}
