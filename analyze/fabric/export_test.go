package fabric

// Held is how much the rings and trails of all connections hold: nothing, once they
// are closed.
func (r *Recorder) Held() (slots, steps int) { return r.slots, r.steps }

// Stalled is the room for stalls of all connections.
func (r *Recorder) Stalled() int { return r.stalled }
