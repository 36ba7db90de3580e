package verbs

import "time"

// Tap sees each packet that a soft provider sends or receives, as an IP packet
// (link type RAW), in the order in which it happened. The packet is valid
// during the call; calls come from several goroutines, one at a time for each
// connection.
type Tap interface {
	Packet(t time.Time, ip []byte)
}

// Link is a model of a network that soft providers put into their sending side.
// The zero Link adds nothing.
type Link struct {
	Delay     time.Duration // one way
	Bandwidth int64         // bits a second; 0 is unlimited
}
