package verbs

import "time"

// Tap receives each packet that a soft provider sends or receives, as an IP packet (link
// type RAW), in order. The packet is valid during the call. Calls come from several
// goroutines, one at a time for each connection.
type Tap interface {
	Packet(t time.Time, ip []byte)
}

// Link is a model of a network, which soft providers apply to what they send. The zero
// Link has no effect.
type Link struct {
	Delay     time.Duration // one way
	Bandwidth int64         // bits per second; 0 is unlimited
}
