package live

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// Events stands for the kernel's own events of NFS over RDMA among Options.Interfaces, alone. They need no packets, so they work on
// adapters whose packets bypass the kernel. A packet is the record of an event, as package ftrace makes it.
const Events = "trace"

// Types of records in a ring of perf events, and what precedes their contents (linux/perf_event.h).
const (
	recordLost   = 2
	recordSample = 9
	recordHeader = 8
	sampleHeader = recordHeader + 12 // the time, and the size of the event
)

// eventRing is the ring of perf events of one processor.
type eventRing struct {
	cpu        int
	data       []byte // a power of two
	head, tail *uint64

	at, end uint64 // of what waits to be read
	size    uint64 // of the record at hand
	time    int64
	event   []byte // of the record at hand; nil: there is none
	joined  []byte // a record that goes on at the begin of the ring
}

// look finds out how far the kernel has written.
func (r *eventRing) look() { r.end = atomic.LoadUint64(r.head) }

// free lets the kernel write over what was read.
func (r *eventRing) free() { atomic.StoreUint64(r.tail, r.at) }

// peek makes the next event the one at hand. It counts what was lost before.
func (r *eventRing) peek(lost *atomic.Uint64) (bool, error) {
	for r.event == nil {
		if r.at == r.end {
			return false, nil
		}
		left := r.end - r.at
		head := r.bytes(r.at, min(left, recordHeader))
		if len(head) < recordHeader {
			return false, r.damaged(left)
		}
		kind := native.Uint32(head)
		if r.size = uint64(native.Uint16(head[6:])); r.size < recordHeader || r.size > left || r.size > uint64(len(r.data)) {
			return false, r.damaged(left)
		}
		record := r.bytes(r.at, r.size)
		switch {
		case kind == recordSample && len(record) >= sampleHeader:
			n := native.Uint32(record[recordHeader+8:])
			if uint64(n) > r.size-sampleHeader || n < 2 {
				return false, r.damaged(left)
			}
			r.time = int64(native.Uint64(record[recordHeader:]))
			r.event = record[sampleHeader : sampleHeader+n]
			return true, nil
		case kind == recordLost && len(record) >= recordHeader+16:
			lost.Add(native.Uint64(record[recordHeader+8:]))
		}
		r.at += r.size
	}
	return true, nil
}

// damaged drops what is in the ring.
func (r *eventRing) damaged(n uint64) error {
	r.at = r.end
	return fmt.Errorf("processor %d: damaged ring of events: %d bytes are left out", r.cpu, n)
}

// bytes returns n bytes of the ring from position at.
func (r *eventRing) bytes(at, n uint64) []byte {
	at &= uint64(len(r.data) - 1)
	if at+n <= uint64(len(r.data)) {
		return r.data[at : at+n]
	}
	r.joined = append(append(r.joined[:0], r.data[at:]...), r.data[:at+n-uint64(len(r.data))]...)
	return r.joined
}

// take goes on to the next record.
func (r *eventRing) take() {
	r.at += r.size
	r.event = nil
}

// eventRings merges the events of all processors.
type eventRings struct {
	rings    []*eventRing
	formats  map[uint16]*ftrace.Format
	wall     int64 // what has to be added to their times
	last     int64
	number   uint64
	event    ftrace.Event
	record   []byte
	chooser  chooser
	pending  []ftrace.Event // transports: before the calls over them
	grown    []ftrace.Event // counters: behind the events of the time for which they stand
	unknown  func(transport uint32)
	ended    [2]atomic.Uint64 // calls of NFS that have ended: of a client, of a server
	received atomic.Uint64
	lost     atomic.Uint64
	problems problems
}

// fill adds the events until a time, which the kernel has written by now, in the order of their times.
func (e *eventRings) fill(b *capture.Batch, until int64) {
	e.putPending(b)
	drained := false
	for b.Size() < batchBytes && len(b.Packets) < batchPackets {
		var first *eventRing
		for _, r := range e.rings {
			ok, err := r.peek(&e.lost)
			if err != nil {
				e.problems.add(Events, err)
			}
			if ok && r.time <= until && (first == nil || r.time < first.time) {
				first = r
			}
		}
		if first == nil {
			drained = true
			break
		}
		if f := e.formats[native.Uint16(first.event)]; f != nil {
			e.last = max(e.last, first.time+e.wall) // an interrupt may come between the time of an event and its place in the ring
			f.Read(first.event, &e.event)
			if x := &e.event; x.Kind == ftrace.Latency && x.Has(ftrace.Connected) && e.unknown != nil && !e.chooser.servers[x.Transport].IsValid() {
				e.unknown(x.Transport)
				e.putPending(b)
			}
			switch x := &e.event; {
			case x.Kind == ftrace.Latency && string(x.Program) == "nfs":
				e.ended[0].Add(1)
			case x.Kind == ftrace.Process && (string(x.Program) == "nfsd" || string(x.Program) == "nfsacl"): // counted together
				e.ended[1].Add(1)
			}
			if e.chooser.takes(&e.event) {
				e.put(b, &e.event)
				e.received.Add(1)
			}
		}
		first.take()
	}
	for _, r := range e.rings {
		r.free()
	}
	if drained && len(e.grown) > 0 {
		e.last = max(e.last, until+e.wall)
		for i := range e.grown {
			e.put(b, &e.grown[i])
		}
		e.grown = e.grown[:0]
	}
}

// putPending appends transports.
func (e *eventRings) putPending(b *capture.Batch) {
	for i := range e.pending {
		e.put(b, &e.pending[i])
	}
	e.pending = e.pending[:0]
}

// put appends the record of an event.
func (e *eventRings) put(b *capture.Batch, x *ftrace.Event) {
	e.number++
	e.record = x.Append(e.record[:0])
	b.Append(capture.Packet{Time: e.last, Number: e.number, Link: capture.LinkTrace, Length: uint32(len(e.record)), Data: e.record})
}

// packetsOnly says which options are of no use for events.
func (o *Options) packetsOnly() error {
	switch {
	case len(o.Interfaces) > 1:
		return errors.New(Events + " is captured alone: name no interface beside it")
	case o.SnapLen != 0, o.Promiscuous, o.HardwareTime, o.Rings > 1, o.Fanout != nil:
		return errors.New("the kernel's events are not packets: no snapshot length, promiscuous mode, adapter's time, rings or group")
	case o.EventFilter != nil && o.EventLevel > ftrace.Calls:
		return fmt.Errorf("a filter chooses by the end of a call, and level %s tells what comes before: use level %s", o.EventLevel, ftrace.Calls)
	}
	return nil
}

// level is how many events are taken.
func (o *Options) level() ftrace.Level {
	switch {
	case o.EventLevel != 0:
		return o.EventLevel
	case o.EventFilter != nil:
		return ftrace.Calls
	}
	return ftrace.Operations
}
