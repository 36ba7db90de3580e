// Package live carries what taps see now: an agent beside each tap sends a Summary
// for every interval, and whoever watches the fleet keeps the latest ones.
//
//	packets ─► monitor.Model ─► Summary ─► Spool ─► NATS JetStream ─► Fleet ─► tables, screen
//
// Packets stay where they were captured. A Summary has a few kilobytes, whatever the
// rate of packets.
//
// # Delivered once
//
// A Spool holds summaries until the stream has stored them. When NATS is away it
// holds the latest, up to a number of bytes, and counts what it drops; the next
// summary that is sent has that count. Each agent has a subject of its own and
// names, with each message, the last one of that subject, so that the server refuses
// a message whose first delivery was stored although the answer was lost.
package live
