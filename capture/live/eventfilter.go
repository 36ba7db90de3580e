package live

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// EventFilter chooses calls by the events at their end. Where an event has the fields that a filter asks for, the kernel drops other calls
// itself, which costs one comparison each.
type EventFilter struct {
	Slower     time.Duration // least time: of the whole call in a client, of the execution in a server
	Programs   []string      // as transactions have them: nfs, mount
	Procedures []string      // as the kernel calls them: READ; COMPOUND in a server
	Hosts      []netip.Addr  // the other end
}

// ParseEventFilter reads terms that are joined by "and": slower TIME, program NAME, procedure NAME, host ADDRESS; names and addresses may
// be several, with commas. An empty expression is nil.
func ParseEventFilter(expr string) (*EventFilter, error) {
	if strings.TrimSpace(expr) == "" {
		return nil, nil
	}
	f := new(EventFilter)
	for term := range strings.SplitSeq(expr+" ", " and ") {
		key, value, _ := strings.Cut(strings.TrimSpace(term), " ")
		for v := range strings.SplitSeq(value, ",") {
			v = strings.TrimSpace(v)
			var err error
			switch key {
			case "slower":
				if f.Slower, err = time.ParseDuration(v); err != nil || f.Slower <= 0 || strings.Contains(value, ",") {
					err = errors.New("slower needs one time above 0, such as 10ms")
				}
			case "program":
				f.Programs, err = named(f.Programs, v)
			case "procedure":
				f.Procedures, err = named(f.Procedures, v)
			case "host":
				var a netip.Addr
				if a, err = netip.ParseAddr(v); err != nil {
					err = errors.New("host needs an IP address")
				}
				f.Hosts = append(f.Hosts, a.Unmap())
			default:
				err = errors.New("a term is slower TIME, program NAME, procedure NAME or host ADDRESS")
			}
			if err != nil {
				return nil, fmt.Errorf("filter of events: %q: %w", strings.TrimSpace(term), err)
			}
		}
	}
	return f, nil
}

// named appends a name that needs no quoting.
func named(list []string, s string) ([]string, error) {
	if s == "" || strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) >= 0 {
		return nil, errors.New("a name of letters and digits is expected")
	}
	return append(list, s), nil
}

// kernel is the filter of an event in the language of trace event filters; empty if all pass. taken is false for events that are not needed:
// with a filter, nothing is taken of a call before its end.
func (f *EventFilter) kernel(k ftrace.Kind) (expr string, taken bool) {
	if f == nil {
		return "", true
	}
	slower := strconv.FormatInt(f.Slower.Microseconds(), 10)
	var terms []string
	add := func(t string) {
		if t != "" {
			terms = append(terms, t)
		}
	}
	switch k {
	case ftrace.Latency:
		add(equal("progname", f.Programs))
		add(equal("procname", f.Procedures))
		if f.Slower > 0 {
			add("execute >= " + slower)
		}
	case ftrace.Served:
		add(equal("procedure", f.Procedures))
		if f.Slower > 0 {
			add("execute >= " + slower)
		}
	case ftrace.Process:
		var programs, hosts []string
		for _, p := range f.Programs {
			programs = append(programs, p, ftrace.ServiceName(p))
		}
		for _, a := range f.Hosts {
			hosts = append(hosts, a.String())
		}
		add(equal("service", programs))
		add(equal("procedure", f.Procedures))
		add(equal("addr", hosts))
		if f.Slower > 0 && len(f.Programs) == 0 {
			return "", false // it would come for every call
		}
	case ftrace.CallbackCall, ftrace.CallbackReply:
		return "", false // they have neither a time nor a name
	}
	return strings.Join(terms, " && "), true
}

// chooser applies the terms of a filter that the kernel cannot compare.
type chooser struct {
	*EventFilter
	servers map[uint32]netip.Addr // of a client's transports
	begun   map[uint32]uint32     // XIDs of calls of the programs that are executed, by thread
}

// maxThreads bounds the threads that are remembered.
const maxThreads = 1 << 16

// takes reports whether an event is about a call that is chosen.
func (c *chooser) takes(e *ftrace.Event) bool {
	if c.EventFilter == nil {
		return true
	}
	switch e.Kind {
	case ftrace.Latency:
		return len(c.Hosts) == 0 || slices.Contains(c.Hosts, c.servers[e.Transport])
	case ftrace.Process:
		if c.begun == nil || len(c.begun) >= maxThreads {
			c.begun = make(map[uint32]uint32)
		}
		c.begun[e.Thread] = e.XID
	case ftrace.Served:
		xid, ok := c.begun[e.Thread]
		delete(c.begun, e.Thread)
		return (len(c.Programs) == 0 || ok && xid == e.XID) && (len(c.Hosts) == 0 || slices.Contains(c.Hosts, e.Peer.Addr()))
	}
	return true
}

// equal compares a text of an event with each of a list.
func equal(field string, list []string) string {
	var alternatives []string
	for _, s := range list {
		alternatives = append(alternatives, field+` == "`+s+`"`)
	}
	if len(alternatives) < 2 {
		return strings.Join(alternatives, "")
	}
	return "(" + strings.Join(alternatives, " || ") + ")"
}
