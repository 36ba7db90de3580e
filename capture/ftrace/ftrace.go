// Package ftrace reads the text of kernel trace events: what the files "trace" and "trace_pipe" of tracefs hold, what
// `trace-cmd report` and `perf script` print.
//
//	nfsd-225 [000] .N... 24.048435: svcrdma_decode_rqst: cq.id=2 cid=143 …   tracefs
//	nfsd-225 [000]       24.048435: svcrdma_decode_rqst: cq.id=2 …           trace-cmd
//	nfsd 225 [000]       24.048435: rpcrdma:svcrdma_decode_rqst: cq.id=2 …   perf
//
// Parse reads one line, and Format.Read the record of a perf event; both give the same Event. Append and Decode are the form in recordings.
// What the events of sunrpc and rpcrdma say is in the fields of the Event; docs/kernel-events.md has which events there are, and which of
// them says what.
package ftrace

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// Stats tells what a text consisted of.
type Stats struct {
	Events uint64 // lines that are events
	Other  uint64 // lines that are neither events nor comments, or that the text ends within
	Long   uint64 // lines longer than MaxLine, which were left out
	// Lost is how many events the text itself says are missing: the ring
	// buffer was too small.
	Lost uint64
}

// MaxLine is how long a line may be, in bytes.
const MaxLine = 64 << 10

// Scan calls f for each event in turn. The Event is valid during the call.
func Scan(r io.Reader, f func(*Event)) (Stats, error) {
	var s Stats
	var e Event
	b := bufio.NewReaderSize(r, MaxLine)
	for {
		line, err := b.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			s.Long++
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = b.ReadSlice('\n')
			}
			line = nil
		}
		if errors.Is(err, io.EOF) {
			// All tools end lines. One without an end is cut, perhaps within a number.
			if len(bytes.TrimSpace(line)) > 0 {
				s.Other++
			}
			return s, nil
		}
		if s.Line(line, &e) {
			f(&e)
		}
		if err != nil {
			return s, err
		}
	}
}

// Line counts a line. It reports whether that is an event, which is then in e.
func (s *Stats) Line(line []byte, e *Event) bool {
	line = bytes.TrimRight(line, "\r\n")
	switch {
	case len(bytes.TrimSpace(line)) == 0:
	case line[0] == '#':
		s.comment(line)
	case s.lost(line):
	case e.Parse(line):
		s.Events++
		return true
	default:
		s.Other++
	}
	return false
}

// lost reads
//
//	CPU:0 [LOST 17 EVENTS]
func (s *Stats) lost(line []byte) bool {
	_, rest, ok := bytes.Cut(line, []byte("[LOST "))
	if !ok || !bytes.HasSuffix(line, []byte("EVENTS]")) {
		return false
	}
	first, _ := word(rest)
	n, _ := strconv.ParseUint(string(first), 10, 64)
	s.Lost += max(n, 1)
	return true
}

// comment looks at a line of the header:
//
//	# entries-in-buffer/entries-written: 2375/2375   #P:1
func (s *Stats) comment(line []byte) {
	_, rest, ok := bytes.Cut(line, []byte("entries-in-buffer/entries-written: "))
	if !ok {
		return
	}
	first, _ := word(rest)
	a, b, _ := bytes.Cut(first, []byte("/"))
	in, err1 := strconv.ParseUint(string(a), 10, 64)
	written, err2 := strconv.ParseUint(string(b), 10, 64)
	if err1 == nil && err2 == nil && written > in {
		s.Lost += written - in
	}
}

// Begins reports whether a text that begins with head is one of trace events: its first line that is neither empty nor a comment is an
// event. more says that head ends before that line does.
func Begins(head []byte) (yes, more bool) {
	var e Event
	for {
		line, rest, whole := bytes.Cut(head, []byte("\n"))
		if !whole {
			return false, true
		}
		var s Stats
		switch {
		case s.Line(line, &e):
			return true, false
		case bytes.HasPrefix(line, []byte("# tracer: ")), s.Lost > 0:
			return true, false
		case s.Other > 0 && !bytes.HasPrefix(line, []byte("cpus=")): // trace-cmd report begins so
			return false, false
		}
		head = rest
	}
}
