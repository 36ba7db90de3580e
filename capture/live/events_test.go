package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// perfRing is a ring of events as the kernel fills it.
type perfRing struct {
	eventRing
	written, read uint64
}

func newPerfRing(cpu int) *perfRing {
	p := &perfRing{eventRing: eventRing{cpu: cpu, data: make([]byte, 128)}}
	p.head, p.tail = &p.written, &p.read
	return p
}

func (p *perfRing) put(kind uint32, body []byte) {
	record := native.AppendUint16(native.AppendUint16(native.AppendUint32(nil, kind), 0), uint16(recordHeader+len(body)))
	for i, c := range append(record, body...) {
		p.data[(p.written+uint64(i))%uint64(len(p.data))] = c
	}
	p.written += uint64(recordHeader + len(body))
}

// event puts an event of a thread; those of kind 7 are known.
func (p *perfRing) event(at uint64, kind uint16, thread uint32) {
	body := native.AppendUint32(native.AppendUint64(nil, at), 12)
	p.put(recordSample, native.AppendUint32(native.AppendUint32(native.AppendUint16(native.AppendUint16(body, kind), 0), thread), 0))
}

func (p *perfRing) gap(n uint64) {
	p.put(recordLost, native.AppendUint64(native.AppendUint64(nil, 1), n))
}

func TestEventRings(t *testing.T) {
	f, err := ftrace.NewFormat("name: xprtrdma_reply\nID: 7\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n")
	if err != nil {
		t.Fatal(err)
	}
	one, two := newPerfRing(0), newPerfRing(3)
	e := &eventRings{rings: []*eventRing{&one.eventRing, &two.eventRing}, formats: map[uint16]*ftrace.Format{7: f}, wall: 1e9}
	var b capture.Batch
	read := func(until int64) string {
		t.Helper()
		for _, r := range e.rings {
			r.look()
		}
		b.Reset()
		e.fill(&b, until)
		var lines []string
		for _, p := range b.Packets {
			if p.Link != capture.LinkTrace || int(p.Length) != len(p.Data) {
				t.Errorf("%+v", p)
			}
			var e ftrace.Event
			if !e.Decode(p.Data) || e.Kind != ftrace.Reply {
				t.Errorf("%+v", e)
			}
			lines = append(lines, fmt.Sprint(e.Thread, " ", p.Time))
		}
		return strings.Join(lines, "|")
	}
	// Several times around the ring, in the order of the times.
	for i := range uint64(20) {
		at := 100 * i
		one.event(at+10, 7, 1)
		two.event(at+5, 7, 2)
		two.event(at+20, 8, 2) // unknown
		if i%4 == 3 {
			one.gap(3)
		}
		one.event(at+50, 7, 3)
		want := "2 1000000005|1 1000000010"
		if got := read(int64(at) + 30); i == 0 && got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := read(int64(at) + 99); i == 0 && got != "3 1000000050" {
			t.Error(got)
		}
		if one.read != one.written || two.read != two.written {
			t.Fatalf("round %d: %d of %d and %d of %d bytes are free", i, one.read, one.written, two.read, two.written)
		}
	}
	// A counter stands behind the events of its second, and does not change their times, though they are read later.
	one.event(5000, 7, 1)
	e.grown = []ftrace.Event{{Kind: ftrace.Counter}}
	b.Reset()
	one.look()
	e.fill(&b, 6000)
	if len(b.Packets) != 2 || b.Packets[0].Time != 1000005000 || b.Packets[1].Time != 1000006000 || b.Packets[1].Data[0] != byte(ftrace.Counter) {
		t.Errorf("%+v", b.Packets)
	}
	if n, lost := e.received.Load(), e.lost.Load(); n != 61 || lost != 15 {
		t.Errorf("%d events, %d lost", n, lost)
	}
	// Records that cannot be.
	one.put(recordSample, native.AppendUint32(native.AppendUint64(nil, 1), 4000))
	two.written += 3
	if got := read(1 << 40); got != "" {
		t.Error(got)
	}
	if list, n := e.problems.get(); n != 2 || one.read != one.written || two.read != two.written {
		t.Errorf("%d problems: %v", n, list)
	}
}
