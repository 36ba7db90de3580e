// Package ftrace reads the text of kernel trace events: what the file "trace" of tracefs holds, what
// `trace-cmd report` and `perf script` print.
//
//	nfsd-225 [000] .N... 24.048435: svcrdma_decode_rqst: cq.id=2 cid=143 …   tracefs
//	nfsd-225 [000]       24.048435: svcrdma_decode_rqst: cq.id=2 …           trace-cmd
//	nfsd 225 [000]       24.048435: rpcrdma:svcrdma_decode_rqst: cq.id=2 …   perf
//
// It is independent of the rest of the module, so that the two sides of the comparison with the kernel cannot
// share a mistake.
package ftrace

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Event is one line.
type Event struct {
	Time   int64 // of the traced machine's trace clock, in nanoseconds since its zero
	Name   string
	Fields []string // what follows the name, split at blanks
}

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

// Scan calls f for each event in turn. The Event and its Fields are f's.
func Scan(r io.Reader, f func(Event)) (Stats, error) {
	var s Stats
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
		s.line(string(line), f)
		if err != nil {
			return s, err
		}
	}
}

func (s *Stats) line(line string, f func(Event)) {
	line = strings.TrimRight(line, "\r\n")
	if strings.TrimSpace(line) == "" {
		return
	}
	if rest, ok := strings.CutPrefix(line, "#"); ok {
		s.comment(rest)
		return
	}
	// CPU:0 [LOST 17 EVENTS]
	if _, rest, ok := strings.Cut(line, "[LOST "); ok && strings.HasSuffix(line, "EVENTS]") {
		word, _, _ := strings.Cut(rest, " ")
		n, _ := strconv.ParseUint(word, 10, 64)
		s.Lost += max(n, 1)
		return
	}
	e, ok := Parse(line)
	if !ok {
		s.Other++
		return
	}
	s.Events++
	f(e)
}

// comment looks at a line of the header:
//
//	# entries-in-buffer/entries-written: 2375/2375   #P:1
func (s *Stats) comment(line string) {
	_, rest, ok := strings.Cut(line, "entries-in-buffer/entries-written: ")
	if !ok {
		return
	}
	word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	a, b, _ := strings.Cut(word, "/")
	in, err1 := strconv.ParseUint(a, 10, 64)
	written, err2 := strconv.ParseUint(b, 10, 64)
	if err1 == nil && err2 == nil && written > in {
		s.Lost += written - in
	}
}

// Parse splits one line. The name of the task may hold blanks, colons and
// brackets, so the line is taken apart at the CPU number: "[000] ".
func Parse(line string) (Event, bool) {
	for at := 0; ; {
		i := strings.Index(line[at:], "] ")
		if i < 0 {
			return Event{}, false
		}
		i += at
		at = i + 2
		j := i - 1
		for j >= 0 && line[j] >= '0' && line[j] <= '9' {
			j--
		}
		if j < 0 || j == i-1 || line[j] != '[' {
			continue
		}
		if e, ok := afterCPU(line[i+2:]); ok {
			return e, true
		}
	}
}

// afterCPU parses what follows the CPU number: flags, which may be missing,
// time, name and fields.
func afterCPU(rest string) (Event, bool) {
	first, rest := word(rest)
	t, ok := parseTime(first)
	if !ok {
		var stamp string
		stamp, rest = word(rest)
		if t, ok = parseTime(stamp); !ok {
			return Event{}, false
		}
	}
	name, rest := word(rest)
	name, ok = strings.CutSuffix(name, ":")
	if _, own, grouped := strings.Cut(name, ":"); grouped { // as perf shows it
		name = own
	}
	if !ok || name == "" {
		return Event{}, false
	}
	return Event{Time: t, Name: name, Fields: strings.Fields(rest)}, true
}

func word(s string) (first, rest string) {
	s = strings.TrimLeft(s, " \t")
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// parseTime reads "24.048435:", seconds with six or nine decimals.
func parseTime(s string) (int64, bool) {
	s, ok := strings.CutSuffix(s, ":")
	if !ok {
		return 0, false
	}
	sec, frac, ok := strings.Cut(s, ".")
	if !ok || !digits(sec) || !digits(frac) || len(frac) > 9 {
		return 0, false
	}
	n, err := strconv.ParseInt(sec, 10, 64)
	if err != nil || n > 1<<62/1_000_000_000 {
		return 0, false
	}
	f, _ := strconv.ParseInt(frac, 10, 64)
	for i := len(frac); i < 9; i++ {
		f *= 10
	}
	return n*1e9 + f, true
}

func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Value returns what follows "key=" or "key:" in the first field that starts
// so.
func (e *Event) Value(key string) string {
	for _, f := range e.Fields {
		if rest, ok := strings.CutPrefix(f, key); ok && rest != "" && (rest[0] == '=' || rest[0] == ':') {
			return rest[1:]
		}
	}
	return ""
}

// Number reads a decimal or 0x number of up to bits bits.
func (e *Event) Number(key string, bits int) (uint64, bool) {
	n, err := strconv.ParseUint(e.Value(key), 0, bits)
	return n, err == nil
}

// XID reads "xid=0x…".
func (e *Event) XID() (uint32, bool) {
	n, ok := e.Number("xid", 32)
	return uint32(n), ok
}
