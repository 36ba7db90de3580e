package tcp

import "github.com/rpcrdma/toolkit/decode/rdma"

// Reason is why bytes of a stream cannot be delivered.
type Reason uint8

// Reasons.
const (
	Cut     Reason = iota + 1 // the capture holds only the start of the segment
	Lost                      // the capture lacks the segment: the receiver has acknowledged it
	Overrun                   // the segment is missing, and no more can be buffered after it
	Late                      // the segment has been missing for a long time, and no acknowledgments were captured
	Over                      // the segment is missing, and the stream or the capture has ended
)

var reasonNames = [...]string{"", "cut", "lost", "overrun", "late", "over"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return ""
}

// Ending says how a stream ended.
type Ending uint8

// Endings.
const (
	ByFIN   Ending = iota + 1 // all of the stream is before it
	ByReset                   // by an RST of the sender
)

// Consumer receives the stream. Data and Skip together cover it in order and without holes: the offset of
// each call is where the previous one ended. Offset 0 is the first byte after the SYN, or of the first
// segment seen if there was no SYN. A Consumer must not call the Stream that is calling it.
type Consumer interface {
	// Data delivers bytes; p is valid during the call. first is the packet that carried them, ready the one
	// that made them readable in order. The two differ only if the bytes had to wait for others.
	Data(offset uint64, p []byte, first, ready rdma.Ref)
	// Skip stands for n bytes that the capture lacks. first is the packet that carried them if it was seen
	// (Cut), ready the one that made the loss certain.
	Skip(offset uint64, n int, why Reason, first, ready rdma.Ref)
	// Again reports retransmitted bytes. They are not delivered again. Bytes that were skipped and arrive
	// late count too.
	Again(offset uint64, n int, ref rdma.Ref)
	// Differs reports bytes that were retransmitted with other values. The first ones have been delivered, or
	// will be; Again follows. If the next segment differs as well, they belong to another connection, and
	// Reset follows.
	Differs(offset uint64, n int, ref rdma.Ref)
	// End reports that the sender closed the stream. Only Again and Reset can follow.
	End(offset uint64, how Ending, ref rdma.Ref)
	// Reset reports that another connection replaced this one: the same addresses and ports with new sequence
	// numbers. Offsets start at 0 again.
	Reset(ref rdma.Ref)
}

// Stats counts what a Stream has seen. Reset does not clear them.
type Stats struct {
	Segments   uint64 // with payload, SYN, FIN or RST
	OutOfOrder uint64 // pieces of segments that had to wait
	Again      uint64 // bytes seen again
	Cut        uint64 // bytes that the capture cut off
	Lost       uint64 // bytes of segments that the capture lacks
	Early      uint64 // bytes before the first segment seen
	Late       uint64 // bytes that arrived after they had been given up; only the last gaps are known
	KeepAlives uint64
	Differing  uint64 // segments seen again with other bytes
	Ignored    uint64 // segments and acknowledgments far from the stream, or after its end
	Resets     uint64
}

// displaced is how many bytes must have come too late: a few are retransmissions of what was sent before the
// capture began, or of what it lacks.
const displaced = 16 << 10

// Displaced returns how many bytes came too late to be delivered, if there are so many that the capture must hold the
// stream out of order; otherwise 0.
func (s Stats) Displaced() uint64 {
	if n := s.Early + s.Late; n >= displaced {
		return n
	}
	return 0
}
