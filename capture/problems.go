package capture

import (
	"fmt"
	"sync"
)

// problems collects what was damaged. It is safe for concurrent use, so that a
// display can show problems while another goroutine reads.
type problems struct {
	mu    sync.Mutex
	list  []*Problem
	total int
}

// add counts a problem and keeps it if there is room. The text is formatted
// only if it is kept: a file that is damaged everywhere costs nothing more.
func (ps *problems) add(file string, packet uint64, offset int64, err error, format string, args ...any) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.total++
	if len(ps.list) >= MaxProblems {
		return
	}
	ps.list = append(ps.list, &Problem{
		File:   file,
		Packet: packet,
		Offset: offset,
		Text:   fmt.Sprintf(format, args...),
		Err:    err,
	})
}

// get returns a copy of the list, and the number of all problems.
func (ps *problems) get() ([]*Problem, int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return append([]*Problem(nil), ps.list...), ps.total
}

// merge adds what other has collected.
func (ps *problems) merge(other *problems) {
	list, total := other.get()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.total += total
	room := MaxProblems - len(ps.list)
	ps.list = append(ps.list, list[:min(room, len(list))]...)
}
