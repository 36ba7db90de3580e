package truth

import (
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// clientTrace collects the events of trace.client.
type clientTrace struct {
	overwritten bool
	connections []Connection
	calls       []*Call
	byXID       map[XID]*Call
	others      []Other
	callbacks   []Callback
	pending     map[string]*Send // chunks registered so far, by task
	seq         int
}

func newClientTrace() *clientTrace {
	return &clientTrace{byXID: make(map[XID]*Call), pending: make(map[string]*Send)}
}

func (c *clientTrace) read(r io.Reader) (err error) {
	c.overwritten, err = scanTrace(r, c.event)
	return err
}

// task returns the key of an event's task and the number of its rpc_clnt.
func (e event) task() (task, client string) {
	task = e.value("task")
	_, client, _ = strings.Cut(task, "@")
	client = strings.TrimLeft(client, "0")
	if client == "" {
		client = "0"
	}
	return task, client
}

func (c *clientTrace) chunk(e event) *Send {
	task, _ := e.task()
	s := c.pending[task]
	if s == nil {
		s = new(Send)
		c.pending[task] = s
	}
	return s
}

// abort sets aside the segments of an attempt that failed, for lack of memory regions, before the message was
// complete. The client registers the same memory again from the start, so the first offset comes a second
// time. The transport's counters in mountstats have counted the failed attempt.
func (s *Send) abort() {
	a := s.Aborted
	if a == nil {
		a = new(Aborted)
	}
	a.Attempts++
	a.Read += len(s.Read)
	a.Write += len(s.Write)
	a.Reply += len(s.Reply)
	for _, seg := range append(s.Write, s.Reply...) {
		a.Offered += uint64(seg.Length)
	}
	*s = Send{Aborted: a}
}

func (c *clientTrace) event(e event) {
	switch e.name {
	case "xprtrdma_inline_thresh":
		if k, ok := parseThresholds(e); ok {
			c.connections = append(c.connections, k)
		}
	case "xprtrdma_chunk_read":
		if seg, ok := e.segment(); ok {
			s := c.chunk(e)
			if len(s.Read) > 0 && s.Read[0].Offset == seg.Offset {
				s.abort()
			}
			s.Read = append(s.Read, ReadSegment{Position: e.number("pos"), Segment: seg})
		}
	case "xprtrdma_chunk_write", "xprtrdma_chunk_wp":
		if seg, ok := e.segment(); ok {
			s := c.chunk(e)
			if len(s.Write) > 0 && s.Write[0].Offset == seg.Offset {
				s.abort()
			}
			s.Write = append(s.Write, seg)
		}
	case "xprtrdma_chunk_reply":
		if seg, ok := e.segment(); ok {
			s := c.chunk(e)
			if len(s.Reply) > 0 && s.Reply[0].Offset == seg.Offset {
				s.abort()
			}
			s.Reply = append(s.Reply, seg)
		}
	case "xprtrdma_marshal":
		c.marshal(e)
	case "xprtrdma_reply":
		c.reply(e)
	case "rpc_stats_latency":
		c.finished(e)
	case "xprtrdma_cb_call":
		if x, ok := e.xid(); ok {
			c.callbacks = append(c.callbacks, Callback{XID: x, Connection: len(c.connections)})
		}
	case "xprtrdma_cb_reply":
		if x, ok := e.xid(); ok {
			for i := len(c.callbacks) - 1; i >= 0; i-- {
				if c.callbacks[i].XID == x {
					c.callbacks[i].Replied, c.callbacks[i].After = true, c.seq
					break
				}
			}
		}
	}
}

// marshal closes the chunk events of its task: they precede it.
func (c *clientTrace) marshal(e event) {
	x, ok := e.xid()
	if !ok {
		return
	}
	task, client := e.task()
	s := c.pending[task]
	delete(c.pending, task)
	if s == nil {
		s = new(Send)
	}
	c.seq++
	s.Seq, s.By, s.Connection, s.Header = c.seq, "m", len(c.connections), e.number("hdr")
	for i, p := range strings.SplitN(e.value("xdr"), "/", 3) {
		n, _ := strconv.ParseUint(p, 10, 32)
		s.XDR[i] = uint32(n)
	}
	for i, f := range e.fields {
		if strings.HasPrefix(f, "xdr=") {
			s.Kind = strings.Join(e.fields[i+1:], " ")
		}
	}
	s.NoMsg = strings.HasPrefix(s.Kind, "*")
	call := c.byXID[x]
	if call == nil || (call.finished() && call.Client != client) {
		// An XID that comes again for another client's call is a new call.
		call = &Call{XID: x, Client: client}
		c.byXID[x] = call
		c.calls = append(c.calls, call)
	}
	call.Sends = append(call.Sends, s)
}

// finished reports that the client counted the call as done.
func (c *Call) finished() bool { return c.Procedure != "" }

// reply belongs to the last marshalling that has no reply yet.
func (c *clientTrace) reply(e event) {
	x, ok := e.xid()
	call := c.byXID[x]
	if !ok || call == nil {
		return
	}
	for i := len(call.Sends) - 1; i >= 0; i-- {
		if s := call.Sends[i]; !s.Answered() {
			s.By += "r"
			s.Granted = e.number("credits")
			return
		}
	}
}

// finished handles rpc_stats_latency, the only event that names the procedure:
//
//	task:… xid=0x… nfsv3 READ backlog=…
func (c *clientTrace) finished(e event) {
	x, ok := e.xid()
	if !ok || len(e.fields) < 4 {
		return
	}
	program, version := splitService(e.fields[2])
	if call := c.byXID[x]; call != nil {
		call.Program, call.Version, call.Procedure = program, version, e.fields[3]
		call.RTT = e.number("rtt")
		return
	}
	c.others = append(c.others, Other{XID: x, Program: program, Version: version, Procedure: e.fields[3]})
}

// splitService takes "nfsaclv3" apart and gives the program the name that it
// has in the ndjson.
func splitService(s string) (program string, version uint32) {
	if i := strings.LastIndexByte(s, 'v'); i > 0 && isDigits(s[i+1:]) {
		n, _ := strconv.ParseUint(s[i+1:], 10, 32)
		s, version = s[:i], uint32(n)
	}
	return programName(s), version
}

// programName maps the names that the kernel gives to programs.
func programName(s string) string {
	switch s {
	case "nfsd":
		return "nfs"
	case "lockd":
		return "nlm"
	case "statd":
		return "nsm"
	}
	return s
}

// parseThresholds reads
//
//	192.0.2.2:50228 -> 192.0.2.1:20049 neg send/recv=4096/4096, calc …
//
// with brackets around IPv6 addresses.
func parseThresholds(e event) (k Connection, ok bool) {
	if len(e.fields) < 5 {
		return k, false
	}
	c, err1 := netip.ParseAddrPort(e.fields[0])
	s, err2 := netip.ParseAddrPort(e.fields[2])
	if err1 != nil || err2 != nil {
		return k, false
	}
	k = Connection{Client: c.Addr().String(), ClientPort: c.Port(), Server: s.Addr().String(), ServerPort: s.Port()}
	if rest, ok := strings.CutPrefix(e.fields[4], "send/recv="); ok {
		a, b, _ := strings.Cut(strings.TrimSuffix(rest, ","), "/")
		send, _ := strconv.ParseUint(a, 10, 32)
		recv, _ := strconv.ParseUint(b, 10, 32)
		k.SendInline, k.RecvInline = uint32(send), uint32(recv)
	}
	return k, true
}
