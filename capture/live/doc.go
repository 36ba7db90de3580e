// Package live captures packets from network interfaces of Linux, through
// rings that the kernel shares with the program (AF_PACKET, TPACKET_V3). It
// needs neither libpcap nor cgo.
//
//	r, err := live.Open(live.Options{Interfaces: []string{"eth0"}, Filter: pcapfilter.Traffic{}.Expr()})
//	// …
//	err = decoder.Run(r) // until r.Stop() is called, by a signal handler for example
//
// Packets are copied out of the ring, which is never handed out. On other
// systems Open returns ErrUnsupported.
package live
