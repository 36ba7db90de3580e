package truth

import (
	"io"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// event is one line of ftrace text, such as
//
//	nfsd-225 [000] .N... 24.048435: svcrdma_decode_rqst: cq.id=2 cid=143 …
type event struct {
	name   string
	fields []string // what follows the name, split at blanks
}

// scanTrace calls f for each event and reports whether the ring buffer has overwritten events, which the
// header of the file says.
func scanTrace(r io.Reader, f func(event)) (overwritten bool, err error) {
	s, err := ftrace.Scan(r, func(e *ftrace.Event) { f(event{string(e.Name), strings.Fields(string(e.Rest))}) })
	return s.Lost > 0, err
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
