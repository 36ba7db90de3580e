// Package edge is the part of an agent that meets packets. It is split in two
// processes. The observer captures and decodes, and is locked in: it can open no file
// and reach no network. The other one has the network, and no privilege; it never sees
// a packet.
//
//	observer: packets ─► live.Observer ─► Record ─► pipe ─► agent: live.Spool ─► NATS
//	                  └► Parts ─► files in a folder ─────► agent: Uploader ─► store
package edge
