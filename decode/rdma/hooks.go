package rdma

// Hooks are what a tracker of a fabric may call besides its Handler. Any may be nil: then a tracker saves the work for it.
type Hooks struct {
	// Watcher is told of each packet and each operation as the fabric carries it.
	Watcher Watcher
	// Runs, if set, is the Watcher again. It is told of packets of RoCE that are the next ones expected with fewer calls.
	Runs RunWatcher
	// Tracer lists packets. Only with one do trackers set Connection.Header, Send.Parts and Fragment.Parts.
	Tracer Tracer
	// Segment is shown the DDP segments of iWARP connections one by one, in the order of each stream, before the operations that
	// they are part of.
	Segment func(c *Connection, s *Segment)
	// FindMemory returns the side of c whose calls offer the memory. It helps to pair the two halves of a connection.
	FindMemory func(c *Connection, handle uint32, offset uint64, length uint32) (side Side, ok bool)
	// Differs reports whether data contradicts what is kept of the Send with the tag, from byte at on. It is false if nothing is kept.
	// The Send is from a side of c and has length bytes; 0 if the tracker does not know.
	Differs func(c *Connection, from Side, tag Tag, at, length int, data []byte) bool
}
