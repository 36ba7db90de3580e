package rdma

import "testing"

func TestNumbers(t *testing.T) {
	var n Numbers
	a, b := n.New(RoCEv2, Ref{}), n.New(RoCEv2, Ref{})
	c := &Connection{}
	n.Assign(c)
	n.Assign(c)
	if a.ID != 1 || b.ID != 2 || c.ID != 3 || n.Count() != 3 {
		t.Errorf("numbers %d, %d, %d of %d", a.ID, b.ID, c.ID, n.Count())
	}
	b.MergedInto, c.MergedInto = a, b
	if c.Resolve() != a || a.Resolve() != a {
		t.Error("Resolve does not follow to the end")
	}
}

func TestTapFilter(t *testing.T) {
	type step struct {
		tap   int32
		times int
		now   int64
		want  bool // for the last of them
	}
	for _, c := range []struct {
		name   string
		follow int32
		steps  []step
	}{
		{"the first packet decides", NoTap, []step{{5, 1, 0, true}, {6, 1, 0, false}, {5, 1, 0, true}}},
		{"the preferred point wins", NoTap, []step{{5, 1, 0, true}, {0, 1, 0, true}, {5, 1, 0, false}}},
		{"copies of a burst", 0, []step{{0, 1, 0, true}, {1, 1000, 1e8, false}, {0, 1, 2e8, true}}},
		{"the path has moved", 0, []step{{0, 1, 0, true}, {1, 64, 3e9, false}, {1, 1, 3e9, true}, {2, 1, 3e9, false}, {0, 1, 3e9, true}}},
		{"it never came this way", 0, []step{{1, 64, 0, false}, {1, 1, 0, true}}},
		{"clock set back", 0, []step{{0, 1, 9e9, true}, {1, 65, 1e9, true}}},
	} {
		var f TapFilter
		f.Follow(c.follow)
		for i, s := range c.steps {
			got := false
			for range s.times {
				got = f.Accept(s.tap, 0, s.now)
			}
			if got != s.want {
				t.Errorf("%s, step %d: %v", c.name, i, got)
			}
		}
	}
}

func TestTapFilterAlone(t *testing.T) {
	var call, reply TapFilter
	call.Follow(0)
	reply.Follow(0)
	call.Accept(0, 0, 0)
	reply.Alone(1, &call)
	if !reply.Accept(1, 0, 1) || !reply.Shown(1) {
		t.Error("a direction with a tap of its own is not followed there")
	}
	if reply.Alone(0, &call); !reply.Accept(0, 0, 2) || reply.Accept(1, 0, 3) {
		t.Error("the preferred point does not win")
	}
	reply.Follow(0)
	call.Accept(1, 0, 1)
	if reply.Alone(1, &call); reply.Accept(1, 0, 2) {
		t.Error("a copy is followed")
	}
}
