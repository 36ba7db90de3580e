package rdma

import "testing"

// counter counts, in Connection.Watched, what it is told on a connection.
type counter struct{ merged number }

type number int

func (number) WatchedConnection() {}

func (w *counter) count(c *Connection) {
	n, _ := c.Watched.(number)
	c.Watched = n + 1
}

func (w *counter) Saw(c *Connection, _ *Sighting) { w.count(c) }

func (w *counter) WorkStarted(c *Connection, _ *Work, _ Ref) { w.count(c) }

func (w *counter) WorkData(c *Connection, _ Side, _ uint64, _ uint32, _ bool, _ Ref) { w.count(c) }

func (w *counter) WorkDone(c *Connection, _ Side, _ uint64, _ uint32, _ []byte, _ Ref) { w.count(c) }

func (w *counter) WorkAcked(c *Connection, _ Side, _ uint64, _ Ref) { w.count(c) }

func (w *counter) Paused(*Pause, Ref) {}

func (w *counter) Merged(into *Connection, _ Side, from *Connection, _ Side) {
	a, _ := into.Watched.(number)
	b, _ := from.Watched.(number)
	into.Watched, from.Watched = a+b, nil
}

func (w *counter) Closed(c *Connection, _ Ref) { w.merged, _ = c.Watched.(number) }

// TestWatchers: each of several has Connection.Watched for itself.
func TestWatchers(t *testing.T) {
	if Watchers() != nil || Watchers(nil, nil) != nil {
		t.Error("nobody watches")
	}
	one := &counter{}
	if Watchers(nil, one) != Watcher(one) {
		t.Error("one alone needs nobody between")
	}
	two := &counter{}
	w := Watchers(one, nil, two)
	a, b := &Connection{}, &Connection{}
	w.Saw(a, &Sighting{})
	w.WorkStarted(b, &Work{}, Ref{})
	w.WorkData(b, 0, 0, 0, false, Ref{})
	one.Saw(&Connection{}, &Sighting{}) // of no concern to the others
	w.WorkDone(b, 0, 0, 0, nil, Ref{})
	w.WorkAcked(b, 0, 0, Ref{})
	w.Merged(a, 1, b, 0)
	w.Closed(a, Ref{})
	if one.merged != 5 || two.merged != 5 || b.Watched != nil {
		t.Errorf("%d and %d, %v", one.merged, two.merged, b.Watched)
	}
}
