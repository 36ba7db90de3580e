package chrometrace

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Observer returns what reports troubles of connections to the Writer. It is for a Decoder without Options.Concurrent.
func (w *Writer) Observer() decode.Observer { return decode.Observer{Event: w.Event} }

// Event writes something that happened to a connection.
func (w *Writer) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	p := w.process(c.Resolve())
	if p == nil {
		w.stats.LeftOut++
		return
	}
	if !p.events {
		p.events = true
		w.meta(p.id, 0, "thread_name", "events of the connection")
		w.order(p.id, 0, "thread_sort_index", 0)
	}
	w.instant(p.id, 0, e, from, value, ref)
}

var eventNames = [...]string{
	rdma.EventNAKSequence: "NAK sequence error", rdma.EventNAKInvalid: "NAK invalid request",
	rdma.EventNAKAccess: "NAK access error", rdma.EventNAKOperation: "NAK operational error", rdma.EventNAKOther: "NAK of another code",
	rdma.EventRNR: "RNR", rdma.EventTerminate: "Terminate", rdma.EventGap: "gap in the capture",
	rdma.EventCNP: "CNP", rdma.EventECN: "ECN mark", rdma.EventRetransmit: "seen again",
}

func (w *Writer) instant(pid, tid int, e rdma.Event, from rdma.Side, value uint32, ref rdma.Ref) {
	name := "event " + strconv.Itoa(int(e))
	if int(e) < len(eventNames) && eventNames[e] != "" {
		name = eventNames[e]
	}
	w.stats.Events++
	b := w.event('i', pid, tid, ref.Time)
	b = str(b, "name", name)
	b = append(b, `,"cat":"trouble","s":"t","args":{"from_side":`...)
	b = strconv.AppendInt(b, int64(from), 10)
	b = num(b, "frame", ref.Number)
	if e != rdma.EventRetransmit {
		b = num(b, "value", uint64(value))
	}
	w.put(append(b, `}}`...))
}
