package rdma

// Run is what a RunWatcher knows of the requests of one side of a connection of RoCE. While packets are the next ones expected, the
// tracker notes them here, instead of telling the watcher of each: see RunWatcher.NextSend.
type Run struct {
	Sends    uint64 // that were noted here
	High     uint32 // PSN behind the newest request
	Acked    uint32 // all up to it is acknowledged
	LastSent Ref    // the newest request
	Progress Ref    // the newest acknowledgement
	Window   int32  // most PSNs that were under way
	Steps    []Step // the newest requests, by PSN: a power of two of them
	HasAcked bool   // Acked is known
	Begun    bool   // High is known
}

// Step is a packet that went by.
type Step struct {
	PSN uint32
	Ref Ref
}

// PSNDiff is a − b of two PSNs of 24 bits.
func PSNDiff(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

// PSNAdd is a PSN of 24 bits, n further on.
func PSNAdd(p, n uint32) uint32 { return (p + n) & (1<<24 - 1) }

// Room reports whether there is a Run, with room for a request at psn, the next one. Room and Send are two, so that both are inlined.
func (x *Run) Room(psn uint32) bool {
	return x != nil && uint32(PSNDiff(psn, x.Acked)) < uint32(len(x.Steps))
}

// Send notes the next request, of one packet, for which there is room.
func (x *Run) Send(psn uint32, ref Ref) {
	// What Room has found out is still at hand: nothing has been stored since.
	if n := PSNDiff(psn, x.Acked) + 1; n > x.Window {
		x.Window = n
	}
	s := &x.Steps[psn&uint32(len(x.Steps)-1)]
	x.Sends++
	x.High, x.LastSent = PSNAdd(psn, 1), ref
	s.PSN, s.Ref = psn, ref
}

// Ack notes an acknowledgement of all up to psn.
func (x *Run) Ack(psn uint32, ref Ref) {
	if PSNDiff(psn, x.Acked) > 0 {
		x.Acked, x.Progress = psn, ref
	}
}
