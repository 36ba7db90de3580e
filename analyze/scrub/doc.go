// Package scrub writes captures that may leave the house: the same packets, with the same lengths, times and headers, but without
// what they tell of those who sent them. Everything is zero that is not known to be harmless.
//
//	packet ─► window: what was captured, and a copy that is zero but for known headers
//	  │
//	  └─► decoder: a message, or a part of one, is known ─► its copy, redacted ─► into the packets that carried it
//
//	leaving the window: addresses, checksums ─► writer
//
// What the decoder has not explained by then leaves as zeros behind its headers.
package scrub
