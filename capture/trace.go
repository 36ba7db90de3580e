package capture

import (
	"bytes"
	"io"

	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// traceDecoder reads the text of kernel trace events: see package ftrace. A packet is the line of an event, its time that of the trace
// clock, which as a rule has begun when the machine was started.
type traceDecoder struct {
	tap     [1]Tap
	event   ftrace.Event
	stats   ftrace.Stats
	skips   bool // the rest of a line that is too long
	skipped int64
}

// textHead is how much of a text is looked at to find an event.
const textHead = 4 << 10

// isText reports whether a file can be a text.
func isText(head []byte) bool {
	for _, c := range head {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return len(head) > 0
}

// recogniseText reads on until it is clear whether a text is one of trace events. It returns what was read.
func (f *file) recogniseText(head []byte) ([]byte, error) {
	n := len(head)
	head = append(head, make([]byte, textHead-n)...)
	for isText(head[:n]) {
		yes, more := ftrace.Begins(head[:n])
		if yes {
			f.dec = &traceDecoder{tap: [1]Tap{{Link: LinkTrace, Description: TraceSchema}}}
		}
		if !more || n == len(head) {
			break
		}
		m, err := f.readOnce(head[n:])
		n += m
		if err != nil {
			return head[:n], err
		}
	}
	return head[:n], nil
}

func (d *traceDecoder) ifaces() []Tap { return d.tap[:] }
func (d *traceDecoder) highest() int  { return 0 }

func (d *traceDecoder) decode(f *file, b *Batch, data []byte, pos int, eof bool) int {
	for pos < len(data) {
		n := bytes.IndexByte(data[pos:], '\n')
		if n < 0 && !eof && !d.skips && len(data)-pos <= ftrace.MaxLine {
			return pos
		}
		at := f.base + int64(pos)
		if n < 0 || n > ftrace.MaxLine || d.skips {
			if n < 0 {
				n = len(data) - pos - 1
				d.skipped += int64(n + 1)
				d.skips = !eof
			} else {
				d.skipped += int64(n + 1)
				d.skips = false
			}
			if pos += n + 1; !d.skips {
				f.problem(f.count+1, at, nil, "no line of an event; skipped %d bytes", d.skipped)
				d.skipped = 0
			}
			continue
		}
		before := d.stats
		line := data[pos : pos+n : pos+n]
		pos += n + 1
		if d.stats.Line(line, &d.event) {
			f.count++
			f.last = d.event.Time
			b.Packets = append(b.Packets, Packet{Time: f.last, Number: f.count, Offset: at, Length: uint32(n), Link: LinkTrace, Data: line})
			continue
		}
		switch lost := d.stats.Lost - before.Lost; {
		case lost > 0:
			f.problem(f.count+1, at, nil, "%d events were lost: the kernel's buffer was full", lost)
		case d.stats.Other > before.Other && !bytes.HasPrefix(line, []byte("cpus=")):
			f.problem(f.count+1, at, nil, "no event in this line; skipped %d bytes", n+1)
		}
	}
	return pos
}

func (d *traceDecoder) place(*Place) bool { return !d.skips }

func (d *traceDecoder) goOn(*file, io.ReaderAt, *Place) error { return nil }
