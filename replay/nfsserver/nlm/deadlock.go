package nlm

import (
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
)

// want is a lock that an owner does not have.
type want struct {
	owner *owner
	key   state.Key
	state.Range
	write bool
}

// deadlockSteps bounds the search for a deadlock: how many byte ranges it looks at. Where they
// do not suffice, none is found, and the lock waits.
const deadlockSteps = 1 << 16

// deadlock reports whether a lock that waits would wait for its own owner: those who hold what it
// needs wait for others, and so on back to it. As in Linux, an owner is taken to wait as a whole,
// although a process may have several threads. Clients of NFSv4 never wait: they ask again. mu is
// held.
func (s *Server) deadlock(first want) bool {
	steps := deadlockSteps
	seen := map[*owner]struct{}{first.owner: {}}
	for list := []want{first}; len(list) > 0; {
		w := list[len(list)-1]
		list = list[:len(list)-1]
		found := false
		steps -= s.table.Outsiders.Holders(w.owner.locks, w.key, w.Range, w.write, func(by *state.Outsider) bool {
			o := by.Label.(*owner)
			found = o == first.owner
			if _, ok := seen[o]; ok {
				return !found
			}
			seen[o] = struct{}{}
			for x, key := range o.waits {
				if !x.granted {
					list = append(list, want{o, key, x.Range, x.write})
				}
			}
			return true
		})
		if found {
			return true
		}
		if steps < 0 {
			return false
		}
	}
	return false
}
