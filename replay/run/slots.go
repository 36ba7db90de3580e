package run

import "github.com/rpcrdma/toolkit/replay/internal/bindings"

// slots let calls wait for a slot of their session.
type slots struct {
	blocked map[*bindings.Session][]*call
	freed   []*bindings.Session // that have a slot for them
}

func (s *slots) wait(x *bindings.Session, c *call) { s.blocked[x] = append(s.blocked[x], c) }

// opened notes a session that is new, or was made again.
func (s *slots) opened(x *bindings.Session) { s.freed = append(s.freed, x) }

// next takes a call that has waited and has a slot now, or waits in vain; nil if there is none.
func (s *slots) next() *call {
	for len(s.freed) > 0 {
		x := s.freed[0]
		if list := s.blocked[x]; len(list) > 0 && (x.Lost || x.Vacant()) {
			s.blocked[x] = list[1:]
			return list[0]
		}
		s.freed = s.freed[1:]
	}
	return nil
}

// give gives the slot of a call back.
func (s *slots) give(c *call) {
	x := c.session()
	if x == nil || c.form.Slot < 0 {
		return
	}
	if c.lives.session == x.Lives {
		x.Give(c.form.Slot)
	}
	c.form.Slot = -1
	if len(s.blocked[x]) > 0 {
		s.freed = append(s.freed, x)
	}
}

// abandon gives up the slot of a call, whose state is no longer known.
func (s *slots) abandon(c *call) {
	x := c.session()
	if x == nil || c.form.Slot < 0 {
		return
	}
	if c.lives.session == x.Lives && x.Abandon(c.form.Slot) {
		s.freed = append(s.freed, x) // whoever waits for a slot waits in vain
	}
	c.form.Slot = -1
}
