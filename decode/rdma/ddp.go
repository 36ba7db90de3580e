package rdma

// Segment is a DDP segment of iWARP (RFC 5041), as one FPDU carried it. It is
// valid during the call of Hooks.Segment.
type Segment struct {
	From   Side
	Data   []byte // header and payload, without markers; cut if the capture cut it
	Length int    // bytes of the whole, as the FPDU says
	// Sequence is the TCP sequence number of the first byte of its FPDU, and Marker how many bytes of the stream precede the first
	// marker from there on, which may be beyond the FPDU; −1 if there are no markers.
	Sequence uint32
	Marker   int
	// First carried its first byte, Last made all of it readable.
	First, Last Ref
	// Follows says that nothing is missing before it: the segment before it was
	// reported, or it is the first one after the MPA frame.
	Follows bool
	// Malformed says that it cannot be a segment, although one must begin here:
	// the stream has been followed from the MPA frame on. The rest of the stream
	// has to be searched for the next one.
	Malformed bool
	// Damaged says that the checksum of its FPDU is wrong, or that of a malformed one was not captured, although the connection's usually are
	// right.
	Damaged bool
	// Pointer is the first marker in its FPDU that does not point to the FPDU's
	// beginning, if HasPointer is set (RFC 5044, section 4.3).
	Pointer    uint16
	HasPointer bool
}
