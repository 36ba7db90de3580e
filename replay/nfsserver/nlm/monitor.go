package nlm

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/portmap"
)

// The Network Status Monitor tells peers of restarts. A host that restarts says so with
// SM_NOTIFY, and its locks end. Other procedures are for programs of the same machine, which
// this server has none of: nobody can have hosts monitored here, or simulate a crash.

type statusForm struct {
	name   nsm.SmName
	mon    nsm.Mon
	monID  nsm.MonId
	myID   nsm.MyId
	change nsm.StatChge
}

// monitor is NSM.
func (s *Server) monitor() nfsserver.Program {
	p := nfsserver.Program{
		Name: "nsm", Number: nsm.SM_PROG, Version: nsm.SM_VERS,
		NewState: func() any { return new(statusForm) },
		Procedures: []nfsserver.Procedure{
			nsm.SM_NULL: {Do: nfsserver.Null, Inline: true},
			nsm.SM_STAT: {Do: func(c *nfsserver.Call) {
				if c.Decode(&c.State.(*statusForm).name) {
					c.Reply(&nsm.SmStatRes{ResStat: nsm.StatFail, State: s.opt.State})
				}
			}},
			nsm.SM_MON: {Do: func(c *nfsserver.Call) {
				if c.Decode(&c.State.(*statusForm).mon) {
					c.Reply(&nsm.SmStatRes{ResStat: nsm.StatFail, State: s.opt.State})
				}
			}},
			nsm.SM_UNMON: {Do: func(c *nfsserver.Call) {
				if c.Decode(&c.State.(*statusForm).monID) {
					c.Reply(&nsm.SmStat{State: s.opt.State})
				}
			}},
			nsm.SM_UNMON_ALL: {Do: func(c *nfsserver.Call) {
				if c.Decode(&c.State.(*statusForm).myID) {
					c.Reply(&nsm.SmStat{State: s.opt.State})
				}
			}},
			nsm.SM_SIMU_CRASH: {Do: nfsserver.Null},
			nsm.SM_NOTIFY: {Do: func(c *nfsserver.Call) {
				a := &c.State.(*statusForm).change
				if c.Decode(a) {
					s.restarted(c.Peer().Remote.Addr().Unmap(), string(a.MonName), a.State)
					c.Send()
				}
			}},
		},
	}
	for i := range p.Procedures {
		p.Procedures[i].Name = nsm.Programs[0].Procedures[i].Name
	}
	return p
}

// restarted ends the locks of a host that says that it has restarted. Only its own address may
// say so. The number is the same if the host says it again, because it has had no reply.
func (s *Server) restarted(addr netip.Addr, name string, number int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		if h.addr != addr || !sameName(h.name, name) && name != addr.String() || h.state == number && number != 0 {
			continue
		}
		h.state = number
		s.count.Restarts++
		s.release(h)
	}
}

// sameName compares names of hosts, of which one may have its domain.
func sameName(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	x, _, longA := strings.Cut(a, ".")
	y, _, longB := strings.Cut(b, ".")
	return longA != longB && x != "" && strings.EqualFold(x, y)
}

// announce tells the hosts that have had locks before a restart that there was one, so that they
// reclaim them in the grace period.
func (s *Server) announce() {
	const atOnce = 8
	slots := make(chan struct{}, atOnce)
	for i := range s.opt.Recovered {
		select {
		case slots <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		m := &s.opt.Recovered[i]
		s.wg.Go(func() {
			defer func() { <-slots }()
			s.notify(m)
		})
	}
}

func (s *Server) notify(m *Monitored) {
	for wait := time.Second; ; wait *= 2 {
		if s.sendNotify(m) == nil || wait > time.Minute {
			break
		}
		select {
		case <-time.After(wait):
		case <-s.ctx.Done():
			return
		}
	}
	// Who has reclaimed nothing by the end of the grace period need not be told again.
	for s.table.Grace.Active() {
		select {
		case <-time.After(time.Second):
		case <-s.ctx.Done():
			return
		}
	}
	s.mu.Lock()
	h := s.hosts[hostKey{m.Addr, m.Name}]
	back := h != nil && h.stable
	s.mu.Unlock()
	if !back && s.opt.Stable != nil {
		s.opt.Stable.RemoveHost(m)
	}
}

func (s *Server) sendNotify(m *Monitored) error {
	ctx, cancel := context.WithTimeout(s.ctx, 2*s.opt.Timeout)
	defer cancel()
	network, at, err := portmap.Find(ctx, s.opt.Dial, m.Addr, nsm.SM_PROG, nsm.SM_VERS)
	if err != nil {
		return err
	}
	r, err := s.opt.Dial(ctx, network, at)
	if err != nil {
		return err
	}
	defer r.Close()
	h := oncrpc.Call{Program: nsm.SM_PROG, Version: nsm.SM_VERS, Procedure: nsm.SM_NOTIFY}
	return portmap.Do(ctx, r, h, &nsm.StatChge{MonName: []byte(s.opt.Name), State: s.opt.State}, nil, s.opt.Timeout)
}
