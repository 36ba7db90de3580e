package truth

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// event is one line of ftrace text, such as
//
//	nfsd-225 [000] .N... 24.048435: svcrdma_decode_rqst: cq.id=2 cid=143 …
type event struct {
	seconds float64 // uptime of the traced machine
	name    string
	fields  []string // what follows the name, split at blanks
}

// scanTrace calls f for each event and tells whether the ring buffer has
// overwritten events, which the header of the file says.
func scanTrace(r io.Reader, f func(event)) (overwritten bool, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), 1<<20)
	for s.Scan() {
		line := s.Text()
		if strings.HasPrefix(line, "#") {
			if rest, ok := strings.CutPrefix(line, "# entries-in-buffer/entries-written: "); ok {
				var in, written uint64
				if n, _ := fmt.Sscanf(rest, "%d/%d", &in, &written); n == 2 && in < written {
					overwritten = true
				}
			}
			continue
		}
		if e, ok := parseEvent(line); ok {
			f(e)
		}
	}
	return overwritten, s.Err()
}

// parseEvent splits one line. The name of the task may hold blanks, colons and
// brackets, so the line is taken apart at the CPU number: "[000] ".
func parseEvent(line string) (event, bool) {
	for at := 0; ; {
		i := strings.Index(line[at:], "] ")
		if i < 0 {
			return event{}, false
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
		fields := strings.Fields(line[i+2:])
		if len(fields) < 3 {
			return event{}, false
		}
		stamp, ok1 := strings.CutSuffix(fields[1], ":")
		name, ok2 := strings.CutSuffix(fields[2], ":")
		t, err := strconv.ParseFloat(stamp, 64)
		if !ok1 || !ok2 || err != nil {
			continue
		}
		return event{seconds: t, name: name, fields: fields[3:]}, true
	}
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// value returns what follows "key=" or "key:" in the first field that starts
// so.
func (e event) value(key string) string {
	for _, f := range e.fields {
		if rest, ok := strings.CutPrefix(f, key); ok && rest != "" && (rest[0] == '=' || rest[0] == ':') {
			return rest[1:]
		}
	}
	return ""
}

// number reads a decimal or 0x number, 0 if there is none.
func (e event) number(key string) uint32 {
	n, _ := strconv.ParseUint(e.value(key), 0, 32)
	return uint32(n)
}

// xid reads "xid=0x…".
func (e event) xid() (XID, bool) {
	n, err := strconv.ParseUint(e.value("xid"), 0, 32)
	return XID(n), err == nil
}

// segment finds the field of the form length@0xoffset:0xhandle.
func (e event) segment() (Segment, bool) {
	for _, f := range e.fields {
		l, rest, ok := strings.Cut(f, "@")
		if !ok || !isDigits(l) {
			continue
		}
		o, h, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		length, err1 := strconv.ParseUint(l, 10, 32)
		offset, err2 := strconv.ParseUint(o, 0, 64)
		handle, err3 := strconv.ParseUint(h, 0, 32)
		if err1 == nil && err2 == nil && err3 == nil {
			return Segment{Handle: uint32(handle), Length: uint32(length), Offset: offset}, true
		}
	}
	return Segment{}, false
}
