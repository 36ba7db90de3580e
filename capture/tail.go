package capture

import "io"

// tail is between a Writer's buffer and its stream. It knows which records the stream accepted: after an
// error, the Writer's own count includes those lost with the buffer.
type tail struct {
	w       io.Writer
	taken   int64 // bytes
	whole   int64 // of them, up to the end of the last record that is whole
	packets uint64

	ends []recordEnd // of records that the stream has not taken; from next on
	next int
}

// recordEnd is where a record ends.
type recordEnd struct {
	at     int64
	packet bool
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	n, err := t.w.Write(b)
	t.taken += int64(max(n, 0))
	for t.next < len(t.ends) && t.ends[t.next].at <= t.taken {
		t.settle(t.ends[t.next])
		t.next++
	}
	return n, err
}

// end notes that a record has been written to the buffer.
func (t *tail) end(at int64, packet bool) {
	e := recordEnd{at, packet}
	if at <= t.taken { // a long one, which was not buffered
		t.settle(e)
		return
	}
	if t.next == len(t.ends) {
		t.ends, t.next = t.ends[:0], 0
	} else if len(t.ends) == cap(t.ends) && t.next > 0 {
		n := copy(t.ends, t.ends[t.next:])
		t.ends, t.next = t.ends[:n], 0
	}
	t.ends = append(t.ends, e)
}

func (t *tail) settle(e recordEnd) {
	t.whole = e.at
	if e.packet {
		t.packets++
	}
}
